"""OpenHands' summarising condenser."""

import json

import pytest
from inspect_ai.model import ChatMessage

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
        ({"max_size": 20}, 2, 13),
    ],
)
def test_the_range_lies_between_places_where_nothing_is_parted(
    arguments: dict[str, int], start: int, end: int
) -> None:
    assert forgotten(conversation_fixture(12), **arguments) == (start, end)
