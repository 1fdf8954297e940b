"""Pi's compaction."""

import json

from inspect_ai.model import ChatMessage

from compression_eval.compressors.state import State
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed, session

BUDGET = {"keep_recent_tokens": 200}


def carrier(state: State) -> str:
    (message,) = (m for m in state.messages if "compression_eval_pi" in (m.metadata or {}))
    return message.text


def data(request: list[ChatMessage]) -> list[dict[str, object]]:
    return [json.loads(line) for line in request[-1].text.splitlines() if line.startswith("{")]


def test_recent_messages_stay_and_long_results_are_cut_for_the_model(fixture: Fixture) -> None:
    arguments = {**BUDGET, "tool_result_chars": 40}
    state, asked = compressed(fixture, "pi", arguments, lambda _: "The summary.")
    assert state.status == "ok", state.failure
    assert "The summary." in carrier(state)
    kept = [m.id for m, r in zip(state.messages, state.regions, strict=True) if r == "tail"]
    assert kept == [f"m{index}" for index in range(len(fixture.messages) - len(kept), 29)]
    assert 2 <= len(kept) <= 5
    tools = [str(line["text"]) for line in data(asked[0]) if line.get("role") == "tool"]
    assert tools[0].startswith("output line of step 0: code E000\n")
    assert all("characters left out here]" in text for text in tools)
    assert all(len(text) < 90 for text in tools)
    assert "detail" in state.messages[-2].text


def test_a_turn_that_is_parted_gets_a_summary_of_its_start(fixture: Fixture) -> None:
    replies = iter(["Before.", "Start of turn."])
    state, asked = compressed(fixture, "pi", BUDGET, lambda _: next(replies))
    assert len(asked) == 2
    history, turn = (data(request) for request in asked)
    assert [line["text"] for line in turn if line["role"] == "user"] == [
        "Please do step 8 with value V8."
    ]
    assert "step 8" not in json.dumps(history)
    assert carrier(state).index("Before.") < carrier(state).index("Start of turn.")
    assert state.cycles[0].model_calls == 2


def test_files_are_listed_by_code_over_all_cycles() -> None:
    pad = "word " * 300
    fixture = session(
        f"One. {pad}",
        ("", "read_file", {"path": "b.py"}, "x"),
        ("", "read_file", {"path": "a.py"}, "x"),
        ("", "write_file", {"path": "new.py", "content": "x"}, "Created"),
        ("", "bash", {"command": "rm gone.py"}, ""),
        f"Two. {pad}",
        ("", "edit_file", {"path": "a.py", "old": "x", "new": "y"}, "Edited"),
        f"Three. {pad}",
    )
    replies = iter(["First.", "Second."])
    cuts = (11, len(fixture.messages))
    arguments = {"keep_recent_tokens": 20}
    state, asked = compressed(fixture, "pi", arguments, lambda _: next(replies), cuts)
    assert state.status == "ok", state.failure
    assert carrier(state).endswith(
        "Second.\n\n<read-files>\nb.py\n</read-files>\n\n"
        "<modified-files>\na.py\nnew.py\n</modified-files>"
    )
    first, second = asked
    assert data(second)[0] == {"previous_summary": "First."}
    assert "previous_summary" not in data(first)[0]
    update = "covers both"
    assert update in second[-1].text
    assert update not in first[-1].text
    assert "First." not in "\n".join(message.text for message in state.messages)


def test_an_earlier_summary_is_not_lost_where_only_a_turn_start_is_new() -> None:
    many = [("", "bash", {"command": str(n)}, "word " * 60) for n in range(4)]
    fixture = session("Old. " + "word " * 300, ("", "bash", {"command": "x"}, "y"), "New.", *many)
    replies = iter(["First part.", "Second part."])
    cuts = (5, len(fixture.messages))
    arguments = {"keep_recent_tokens": 6}
    state, asked = compressed(fixture, "pi", arguments, lambda _: next(replies), cuts)
    assert state.status == "ok", state.failure
    assert "First part." in carrier(state)
    assert "Second part." in carrier(state)
    assert data(asked[1])[0]["text"] == "New."
    assert [message.text for message in state.messages[2:]] == ["Done for now."]
