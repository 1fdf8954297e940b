"""OpenHands' summarising condenser."""

import json

import pytest
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model

from compression_eval.compressors.budget import groups
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed, messages_of
from tests.compressors.conftest import conversation_fixture


def data(request: list[ChatMessage]) -> list[dict[str, object]]:
    return [json.loads(line) for line in request[-1].text.splitlines() if line.startswith("{")]


def test_half_of_the_events_go_and_the_first_two_stay(fixture: Fixture) -> None:
    state, asked = compressed(fixture, "openhands", reply=lambda _: "Condensed.")
    assert state.status == "ok", state.failure
    assert [message.id for message in state.messages[:2]] == ["m0", "m1"]
    assert state.messages[2].text.endswith("Condensed.")
    # 29 events: 14 are the target, of which 2 are first, 1 is the summary and up to 11 are last.
    assert [message.id for message in state.messages[3:]] == [f"m{i}" for i in range(19, 29)]
    assert [line["index"] for line in data(asked[0])] == list(range(17))
    assert str(data(asked[0])[0]["text"]) == "Step 0."


def forgotten(fixture: Fixture, **arguments: int) -> tuple[int, int]:
    """Where the range that is forgotten begins and ends, in groups that stay together."""
    state, _ = compressed(fixture, "openhands", arguments, lambda _: "Condensed.")
    written = state.regions.index("summary")
    whole = len(groups(messages_of(fixture)))
    last = groups(state.messages[written + 1 :])
    return len(groups(state.messages[:written])), whole - len(last)


@pytest.mark.parametrize(
    ("arguments", "start", "end"),
    [
        ({}, 2, 11),  # 18 events would part a call from its result, so one more stays
        ({"keep_first": 0}, 1, 10),  # the system prompt is put back all the same
        ({"keep_first": 3}, 3, 11),
        ({"max_size": 20}, 2, 13),
    ],
)
def test_the_range_lies_between_places_where_nothing_is_parted(
    arguments: dict[str, int], start: int, end: int
) -> None:
    assert forgotten(conversation_fixture(12), **arguments) == (start, end)


def test_a_message_with_several_calls_is_several_events() -> None:
    def calling(number: int) -> Fixture:
        plain = conversation_fixture(4).model_dump(mode="json", exclude_none=True)
        extra = [
            {
                "id": f"x{n}",
                "type": "function",
                "function": {"name": "bash", "arguments": "{}"},
            }
            for n in range(number)
        ]
        plain["messages"][2]["tool_calls"] += extra
        plain["messages"][4:4] = [
            {"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in extra
        ]
        return Fixture.model_validate(plain)

    assert forgotten(calling(0))[1] == 6
    assert forgotten(calling(3))[1] == 4


def one_big_batch() -> Fixture:
    """A conversation that is nearly all one call with many results."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        for n in range(10)
    ]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": f"r{n} " + "word " * 100}
        for n, call in enumerate(calls)
    ]
    messages = [
        {"role": "system", "content": "s"},
        {"role": "assistant", "content": "go", "tool_calls": calls},
        *results,
        {"role": "user", "content": "fine"},
    ]
    return Fixture.model_validate({"name": "batch", "messages": messages})


def failing(times: int) -> tuple[Model, list[int]]:
    """A model that fails so often; the list collects the characters it was shown."""
    shown: list[int] = []

    def output(messages: list[ChatMessage], *_: object) -> ModelOutput:
        shown.append(len(messages[-1].text))
        result = ModelOutput.from_content("mockllm/model", "All of it.")
        result.choices[0].stop_reason = "model_length" if len(shown) <= times else "stop"
        result.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return result

    return get_model("mockllm/model", custom_outputs=output, memoize=False), shown


def test_where_no_range_can_go_everything_is_summarised_ever_shorter() -> None:
    model, shown = failing(2)
    state, _ = compressed(one_big_batch(), "openhands", model=model)
    assert state.status == "ok", state.failure
    assert [message.role for message in state.messages] == ["system", "user"]
    assert "All of it." in state.messages[1].text
    assert len(shown) == 3
    assert shown[0] > shown[1] > shown[2] > 0.5 * shown[0]
    model, shown = failing(9)
    state, _ = compressed(one_big_batch(), "openhands", model=model)
    assert state.status == "error"
    assert len(shown) == 5
