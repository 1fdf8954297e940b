"""What holds for every strategy that has a model write a summary."""

import json
from typing import Any

import pytest

from compression_eval.compressors.registry import compressor_spec
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed, session

ARGUMENTS: dict[str, dict[str, Any]] = {
    "anchored": {"tail_tokens": 120, "summary_tokens": 300},
    "regenerative": {"tail_tokens": 120, "summary_tokens": 300},
    "claude-code": {},
    "codex": {},
    "openhands": {},
    "pi": {"keep_recent_tokens": 200},
}
"""With which each applies to the small conversation."""

TAGGED = ("regenerative", "claude-code")
LONG = "long " * 5_000


@pytest.mark.parametrize(
    ("name", "reply", "status"),
    [
        *[(name, " ", "empty") for name in ARGUMENTS],
        *[
            (name, LONG, "not_smaller")
            for name in ARGUMENTS
            if name not in ("anchored", "openhands")
        ],
        *[(name, "<summary> </summary>", "empty") for name in TAGGED],
        ("claude-code", "<analysis>only thoughts</analysis>", "empty"),
        ("anchored", '{"operations": []}', "empty"),
    ],
)
def test_a_bad_summary_fails_the_state(
    fixture: Fixture, name: str, reply: str, status: str
) -> None:
    state, _ = compressed(fixture, name, ARGUMENTS[name], lambda _: reply)
    assert (state.status, state.messages) == (status, [])


@pytest.mark.parametrize(
    ("name", "arguments", "turns"),
    [
        ("anchored", {"tail_tokens": 100_000}, ["Hi."]),
        ("regenerative", {"tail_tokens": 100_000}, ["Hi."]),
        ("pi", {}, ["Hi.", "There."]),
    ],
)
def test_where_there_is_nothing_to_do_no_model_is_called(
    name: str, arguments: dict[str, Any], turns: list[str]
) -> None:
    state, asked = compressed(session(*turns), name, arguments)
    assert (state.status, state.messages, asked) == ("not_applied", [], [])


@pytest.mark.parametrize("name", [name for name in ARGUMENTS if name != "anchored"])
def test_an_earlier_summary_is_read_and_not_kept(fixture: Fixture, name: str) -> None:
    replies = iter(["FIRST summary", *["SECOND summary"] * 3])
    state, asked = compressed(
        fixture, name, ARGUMENTS[name], lambda _: next(replies), (19, len(fixture.messages))
    )
    assert state.status == "ok", state.failure
    assert any("FIRST summary" in message.text for message in asked[-2] + asked[-1])
    said = "\n".join(message.text for message in state.messages)
    assert "SECOND summary" in said
    assert "FIRST summary" not in said or name == "pi", "Pi keeps what it only adds a turn to"


@pytest.mark.parametrize("name", ARGUMENTS)
def test_prompt_and_focus_reach_the_model(fixture: Fixture, name: str) -> None:
    focus = 'the {"blue"} one'
    given = {**ARGUMENTS[name], "prompt": "Keep {only} colours.", "focus_topic": focus}
    _, asked = compressed(fixture, name, given)
    system, told = asked[0][0].text, asked[0][-1].text
    if "tail_tokens" in compressor_spec(name).arguments.model_fields:
        assert system.startswith("Keep {only} colours.\n\n")
        assert json.dumps({"focus_topic": focus}) in told.splitlines()
    else:
        asks = f"Keep {{only}} colours.\n\nGive the most room to this topic: {focus}"
        assert told.endswith(asks)
