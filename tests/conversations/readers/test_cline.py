"""Tasks of Cline and Roo Code, through ``compression-eval import``."""

import json
from pathlib import Path
from typing import Any

import pytest

from compression_eval.fixtures.models import NO_RESULT
from tests.conversations.readers.importing import imported

_DETAILS = {
    "type": "text",
    "text": "<environment_details>\n# Current Mode\nACT MODE\n</environment_details>",
}
_MODEL = {"modelInfo": {"modelId": "m-1", "providerId": "p", "mode": "act"}}
_SUMMARY = "1. Primary Request: read the notes. The port is 8080."
_CONTINUATION = (
    "[summarize_task] Result:\nThis session is being continued from a previous conversation that "
    f"ran out of context. The conversation is summarized below:\n{_SUMMARY}.\n"
)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _user(*blocks: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [*blocks, _DETAILS], **more}


def _call(name: str, tool: str = "read_file", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": tool, "input": arguments, "call_id": name}


def _turn(*blocks: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks), **_MODEL, **more}


def _task(folder: Path, messages: list[Any], **beside: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for name, value in beside.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    path = folder / "api_conversation_history.json"
    path.write_text(json.dumps(messages))
    return path


def _opening() -> list[dict[str, Any]]:
    """Return a task whose calls are answered as text, in one block and in two."""
    return [
        _user(_text("<task>\nRead the notes.\n</task>")),
        _turn(
            {"type": "thinking", "thinking": "SECRET THOUGHT", "signature": "x", "summary": []},
            {**_text("I will."), "reasoning_details": [], "call_id": ""},
            _call("t1", path="notes.md"),
        ),
        _user(_text("[read_file for 'notes.md'] Result:\nport = 8080")),
        _turn(_call("t2", "use_subagents", prompt_1="look"), _call("t3", path="b.md")),
        _user(
            _text("[read_file for 'b.md'] Result:"),
            _text("Words of b."),
            _text("[subagents] Result:\nNothing found."),
        ),
    ]


def test_results_that_stand_in_texts_answer_the_calls(tmp_path: Path) -> None:
    done = imported(_task(tmp_path / "t", [*_opening(), _turn(_text("Done."))]), tmp_path)
    assert done.format == "cline"
    assert "environment_details, as Cline and Roo Code" in done.stdout
    assert done.calls == [
        ("t1", "read_file", {"path": "notes.md"}),
        ("t2", "use_subagents", {"prompt_1": "look"}),
        ("t3", "read_file", {"path": "b.md"}),
    ]
    assert dict(done.results) == {
        "t1": "[read_file for 'notes.md'] Result:\nport = 8080",
        "t2": "[subagents] Result:\nNothing found.",
        "t3": "[read_file for 'b.md'] Result:\nWords of b.",
    }
    assert [role for role, _ in done.said] == [
        "user", "assistant", "tool", "user", "assistant", "tool", "tool", "user", "assistant",
    ]  # fmt: skip
    assert "SECRET THOUGHT" not in done.fixture.model_dump_json()
    assert done.fixture.model == "m-1"
    assert done.fixture.source is not None
    assert done.fixture.source.origin == "Cline task"


def test_a_summary_is_recorded_and_the_state_is_what_cline_goes_on_with(tmp_path: Path) -> None:
    messages = _opening()
    asks = '<explicit_instructions type="summarize_task">\nSummarise.</explicit_instructions>'
    messages[-1]["content"].insert(-1, _text(asks))
    messages += [
        _turn(_call("s1", "summarize_task", context=_SUMMARY)),
        _user(_text(_CONTINUATION)),
        _turn(_text("Going on.")),
    ]
    usage = {"request": "r", "tokensIn": 10, "tokensOut": 5, "cacheWrites": 0, "cacheReads": 900}
    shown = [
        {"ts": 1, "type": "say", "say": "api_req_started", "text": json.dumps(usage)},
        {"ts": 2, "type": "say", "say": "tool",
         "text": json.dumps({"tool": "summarizeTask", "content": _SUMMARY}),
         "conversationHistoryIndex": 5, "conversationHistoryDeletedRange": [2, 4]},
    ]  # fmt: skip
    path = _task(tmp_path / "t", messages, ui_messages=shown)
    done = imported(path, tmp_path)
    assert not any(_SUMMARY in text for _, text in done.said)
    assert not any("Summarise." in text for _, text in done.said)
    assert done.said[-1] == ("assistant", "Going on.")
    (compaction,) = done.fixture.recorded_compactions
    assert (compaction.cut, compaction.kind, compaction.summary) == (8, "summary", _SUMMARY)
    assert compaction.tokens_before == 910
    first, second, result, behind = done.state(0)
    assert [first, second] == done.said[:2]
    assert result == ("tool", NO_RESULT)
    assert behind[0] == "user"
    assert _SUMMARY in behind[1]
    assert done.fixture.cuts == [8]


def test_a_condensed_summary_counts_if_the_user_accepted_it(tmp_path: Path) -> None:
    asked = _user(_text("/smol"))
    call = _turn(_text(f"<condense>\n<context>{_SUMMARY}</context>\n</condense>"))
    accepted = _user(
        _text("[condense] Result:"),
        _text("The user has accepted the condensed conversation summary you generated."),
    )
    refused = _user(
        _text("[condense] Result:"),
        _text("The user provided feedback on the condensed conversation summary:\nToo short."),
    )
    opening = _opening()[:3]
    done = imported(_task(tmp_path / "a", [*opening, asked, call, accepted]), tmp_path / "1")
    (compaction,) = done.fixture.recorded_compactions
    assert compaction.summary == _SUMMARY
    assert [text for _, text in done.state(0)][-3:] == [
        "/smol\n" + _DETAILS["text"],
        call["content"][0]["text"],
        "\n".join([*(block["text"] for block in accepted["content"])]),
    ]
    done = imported(_task(tmp_path / "b", [*opening, asked, call, refused]), tmp_path / "2")
    assert done.fixture.recorded_compactions == []
    assert "Too short." in done.said[-1][1]
    assert done.injected[-1] is False
    assert _SUMMARY in done.said[-2][1]


def test_messages_that_cline_dropped_are_a_cut_of_their_own(tmp_path: Path) -> None:
    messages: list[Any] = [_user(_text("<task>start</task>"))]
    for number in range(6):
        messages += [_turn(_text(f"answer {number}")), _user(_text(f"more {number}"))]
    shown = [
        {"ts": 1, "type": "say", "say": "text", "conversationHistoryIndex": 10},
        {"ts": 2, "type": "say", "say": "text", "conversationHistoryIndex": 10,
         "conversationHistoryDeletedRange": [2, 5]},
        {"ts": 3, "type": "say", "say": "text", "conversationHistoryIndex": 12,
         "conversationHistoryDeletedRange": [2, 5]},
    ]  # fmt: skip
    done = imported(_task(tmp_path / "t", messages, ui_messages=shown), tmp_path)
    (compaction,) = done.fixture.recorded_compactions
    assert (compaction.cut, compaction.kind) == (11, "clear")
    assert compaction.state == [0, 1, 6, 7, 8, 9, 10]
    assert len(done.said) == 13


def _roo(role: str, text: str, ts: int, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": [_text(text)], "ts": ts, **more}


@pytest.mark.parametrize("shown", [True, False])
def test_roo_hides_what_a_summary_stands_for(tmp_path: Path, shown: bool) -> None:
    """The older form: an assistant message before the last three, the first message is kept."""
    summary = {
        "role": "assistant", "ts": 39, "isSummary": True, "condenseId": "x",
        "content": [{"type": "reasoning", "text": "Condensing."}, _text("SUM")],
    }  # fmt: skip
    messages = [
        _roo("user", "<task>t</task>", 10),
        _roo("assistant", "hidden", 20, condenseParent="x"),
        _roo("user", "hidden too", 30, condenseParent="x"),
        summary,
        _roo("assistant", "kept 1", 40),
        _roo("user", "kept 2", 50),
        _roo("assistant", "kept 3", 60),
        _roo("user", "after", 70),
    ]
    event = {"ts": 65, "type": "say", "say": "condense_context", "contextCondense": {
        "cost": 0.1, "prevContextTokens": 900, "newContextTokens": 90, "summary": "SUM",
        "condenseId": "x"}}  # fmt: skip
    done = imported(_task(tmp_path / "t", messages, ui_messages=[event] if shown else []), tmp_path)
    assert [text for _, text in done.said] == [
        "<task>t</task>", "hidden", "hidden too", "kept 1", "kept 2", "kept 3", "after",
    ]  # fmt: skip
    (compaction,) = done.fixture.recorded_compactions
    assert (compaction.cut, compaction.summary) == (6, "SUM")
    assert compaction.tokens_before == (900 if shown else None)
    assert compaction.tokens_after == (90 if shown else None)
    assert [text for _, text in done.state(0)] == [
        "<task>t</task>", "SUM", "kept 1", "kept 2", "kept 3",
    ]  # fmt: skip
    assert done.fixture.source is not None
    assert done.fixture.source.origin == "Roo Code task"
