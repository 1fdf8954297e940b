"""Which messages of a reply are the given ones."""

import json

import anyio
import pytest
from inspect_ai.model import ChatMessageUser, ContentImage, ContentReasoning, ContentText

from compression_eval.compressors.user_supplied.wire import from_wire, recognised, to_wire
from compression_eval.fixtures.conversation import conversation
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.loading import load_fixture


@pytest.mark.parametrize(
    ("reply", "given", "expected"),
    [
        ("sab", "sab", [0, 1, 2]),
        ("sXbc", "sabc", [0, None, 2, 3]),
        ("s", "sabc", [0]),
        ("Xab", "sabab", [None, 3, 4]),
        ("saXa", "saba", [0, 1, None, 3]),
        ("aaa", "sa", [None, None, 1]),
        ("bXa", "sab", [2, None, 1]),
        ("", "sa", []),
        ("XY", "sa", [None, None]),
        ("sab", "", [None, None, None]),
    ],
)
def test_recognised(reply: str, given: str, expected: list[int | None]) -> None:
    assert recognised(list(reply), list(given)) == expected


@pytest.mark.parametrize("name", list(shipped_fixtures()))
def test_every_message_of_a_shipped_conversation_survives_json(name: str) -> None:
    history = anyio.run(conversation, load_fixture(shipped_fixtures()[name]))
    there = json.loads(json.dumps(to_wire(history)))
    new = {"role": "user", "content": "a summary"}
    state = anyio.run(from_wire, [there[0], new, *there[2:]], history)
    assert [message.id for message in state if message.text != "a summary"] == [
        message.id for message in (history[0], *history[2:])
    ]
    assert [*state[:1], *state[2:]] == [history[0], *history[2:]]
    assert state[1].id not in {message.id for message in history}


def test_other_ways_to_write_the_same_message_are_known() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "name": "an exporter's addition",
        "tool_calls": [
            {
                "id": "a",
                "type": "function",
                "function": {"name": "f", "arguments": '{"x":1,  "y": "\\u00e9"}'},
            }
        ],
    }
    result = {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "r"}]}
    given = anyio.run(from_wire, [message, result], [])
    assert to_wire(given)[0]["tool_calls"][0]["function"]["arguments"] == '{"x": 1, "y": "é"}'
    assert anyio.run(from_wire, [message, result], given) == given


def test_what_has_no_text_form_is_named_and_comes_back_whole() -> None:
    message = ChatMessageUser(
        content=[
            ContentReasoning(reasoning="private"),
            ContentText(text="look"),
            ContentImage(image="data:image/png;base64,AAAA"),
        ]
    )
    there = to_wire([message])
    assert [part["text"] for part in there[0]["content"]] == ["look", "[image]"]
    assert anyio.run(from_wire, there, [message]) == [message]
