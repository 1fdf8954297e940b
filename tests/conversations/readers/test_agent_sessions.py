"""Copilot CLI, Cursor, OpenCode and Qwen Code, through the import."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conversations.readers.agent_sessions import (
    BUBBLES,
    COMPOSER,
    COPILOT,
    CURSOR,
    OPENCODE,
    QWEN,
    cursor_store,
    done,
    events,
    opencode_database,
    request,
)
from tests.conversations.readers.importing import Imported, imported, imported_all
from tests.conversations.readers.reading import json_file, json_lines


def one(path: Path) -> Imported:
    """Import a file that becomes one fixture, and see that no thinking came in."""
    found = imported(path, path.parent)
    assert "HIDDEN" not in found.fixture.model_dump_json()
    return found


def calls(found: Imported) -> list[tuple[str, dict[str, Any]]]:
    return [call[1:] for call in found.calls]


def state(found: Imported) -> list[int | str]:
    """Return the state of the one recorded compaction: kept messages by number, texts made."""
    (compaction,) = found.fixture.recorded_compactions
    assert compaction.state is not None
    return [part if isinstance(part, int) else part.text for part in compaction.state]


def test_copilot_cli_goes_on_with_its_summary_and_what_came_while_it_was_written(
    tmp_path: Path,
) -> None:
    found = one(json_lines(tmp_path / "events.jsonl", *COPILOT))
    assert "events.jsonl: copilot-cli, an event session.start" in found.stdout
    assert found.said == [
        ("system", "You are an agent."),
        ("user", "Find the port."),
        ("assistant", "Looking."),
        ("tool", "a.py"),
        ("tool", "PORT = 8123"),
        ("assistant", "It is 8123."),
        ("user", "Now change it."),
        ("assistant", "Done."),
    ]
    assert calls(found) == [("view", {"path": "a.py"}), ("bash", {"command": "ls"})]
    (compaction,) = found.fixture.recorded_compactions
    assert (compaction.cut, compaction.trigger, compaction.summary) == (
        6, "threshold", "The port is 8123.",
    )  # fmt: skip
    assert (compaction.tokens_before, compaction.tokens_after) == (1000, 300)
    assert state(found) == ["[Summary of the conversation so far]\nThe port is 8123.", 5]
    assert "a form that the file does not contain" in "\n".join(found.caveats)
    assert found.fixture.model == "m-2"
    assert "transformedContent: what the client put round the message" in found.stdout
    assert "attachment file: only its name is there" in found.stdout


def test_copilot_cli_keeps_agents_apart_and_a_cleared_context_too(tmp_path: Path) -> None:
    main_thread = events(
        ("session.start", {"sessionId": "s", "copilotVersion": "1"}),
        ("user.message", {"content": "Ask for help."}),
        ("assistant.message", {"content": "", "toolRequests": [
            request("t1", "task", prompt="Count the files."), request("t2", "task", prompt="x")]}),
        ("subagent.started", {"toolCallId": "t1", "agentName": "explore"}),
    )  # fmt: skip
    main_thread[3]["agentId"] = "a-1"
    helper = events(("assistant.message", {"content": "There is 1."}), agentId="a-1")
    old_helper = events(("assistant.message", {"content": "Old.", "parentToolCallId": "t2"}))
    rest = events(
        ("tool.execution_complete", done("t1", "There is 1.")),
        ("tool.user_requested", {"toolCallId": "u1", "toolName": "bash", "arguments": {"c": 1}}),
        ("tool.execution_start", {"toolCallId": "u1", "toolName": "bash"}),
        ("tool.execution_complete", done("u1", "seen")),
        ("user.message", {"content": "skill text", "source": "skill-x"}),
        ("system.notification", {"content": "A job has ended."}),
        ("session.context_cleared", {"messagesCleared": 9, "initialMessage": "Start again."}),
        ("assistant.message", {"content": "Fresh."}),
    )
    path = json_lines(tmp_path / "e.jsonl", *main_thread, *helper, *old_helper, *rest)
    agents = imported_all(path, tmp_path)
    by_name = {each.fixture.name.split("-", 3)[-1]: each.said for each in agents}
    assert by_name["agent-a-1"] == [("user", "Count the files."), ("assistant", "There is 1.")]
    assert by_name["agent-t2"] == [("user", "x"), ("assistant", "Old.")]
    assert by_name["after-clear-1"] == [("user", "Start again."), ("assistant", "Fresh.")]
    (whole,) = (each for each in agents if each.said[0][1] == "Ask for help.")
    assert whole.said[2:] == [
        ("tool", "There is 1."),
        ("tool", "[no result was recorded for this call]"),
        ("user", '[The user carried out an action: bash]\n{"c": 1}\nseen'),
        ("user", "skill text"),
        ("user", "A job has ended."),
    ]
    assert whole.injected == [False, False, True, True]
    assert "2 messages in the user's name were written by Copilot" in "\n".join(whole.caveats)
    assert "1 tool calls have no recorded result" in "\n".join(whole.caveats)


def test_qwen_code_is_compressed_to_the_history_that_it_records(tmp_path: Path) -> None:
    found = one(json_lines(tmp_path / "chat.jsonl", *QWEN))
    assert "chat.jsonl: qwen-code, lines with uuid" in found.stdout
    assert found.said == [
        ("user", "Find the port."),
        ("assistant", "Looking."),
        ("tool", "PORT = 8123"),
        ("assistant", "It is 8123."),
        ("user", "Now change it."),
        ("user", "task 3 ended"),
        ("assistant", "Done."),
    ]
    (compaction,) = found.fixture.recorded_compactions
    assert (compaction.cut, compaction.tokens_before, compaction.tokens_after) == (4, 900, 200)
    assert state(found) == ["<state_snapshot>port 8123</state_snapshot>", "Got it.", 3]
    assert (
        "qwen-code, user: on a branch that the user left (first at chat.jsonl: line 6)"
        in found.stdout
    )
    assert found.injected == [False, False, True]
    assert "1 messages in the user's name were written by Qwen Code" in "\n".join(found.caveats)


def _as_export(folder: Path) -> Path:
    return json_file(folder / "export.json", OPENCODE)


def _as_printed(folder: Path) -> Path:
    path = folder / "printed.json"
    shown = "Exporting session: ses_1\n\n" + json.dumps(OPENCODE, indent=2)
    path.write_text(shown, encoding="utf-8")
    return path


def _as_database(folder: Path) -> Path:
    return opencode_database(folder / "opencode.db", [OPENCODE])


@pytest.mark.parametrize("write", [_as_export, _as_printed, _as_database])
def test_opencode_in_both_forms(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    found = one(write(tmp_path))
    assert found.said == [
        ("user", "Find the port.\n[image: image/png, 3 bytes]"),
        ("user", "Called Read: a.py"),
        ("assistant", "Looking."),
        ("tool", "PORT = 8123"),
        ("tool", "no such command"),
        ("tool", "[no result was recorded for this call]"),
        ("user", "Go on."),
        ("assistant", "It is 8123."),
        ("user", "Now change it."),
        ("assistant", "Done."),
    ]
    assert [name for name, _ in calls(found)] == ["read", "bash", "bash"]
    (compaction,) = found.fixture.recorded_compactions
    assert (compaction.cut, compaction.trigger, compaction.summary) == (
        8, "auto", "The port is 8123.",
    )  # fmt: skip
    assert (compaction.tokens_before, compaction.tokens_after) == (965, 305)
    assert state(found) == [6, 7, "What did we do so far?", "The port is 8123."]
    assert found.injected == [False, True, False, False]
    assert "1 messages in the user's name were written by OpenCode" in "\n".join(found.caveats)
    assert "1 results were cleared from the context later" in "\n".join(found.caveats)
    assert found.fixture.model == "p/m-1"
    assert "message:assistant: a failed request" in found.stdout
    assert "unknown" not in found.stdout


def test_a_cursor_transcript_has_calls_without_results(tmp_path: Path) -> None:
    found = one(json_lines(tmp_path / "t.jsonl", *CURSOR))
    assert "t.jsonl: cursor, lines with role" in found.stdout
    assert found.said == [
        ("user", "Find the port."),
        ("assistant", "Looking."),
        ("tool", "[no result was recorded for this call]"),
        ("tool", "[no result was recorded for this call]"),
        ("assistant", "It is 8123."),
    ]
    assert calls(found) == [("Read", {"path": "a.py"}), ("Shell", {"command": "ls"})]
    assert "Cursor writes no results of tools into transcripts" in "\n".join(found.caveats)
    assert "notes: what the client put round the user's words" in found.stdout
    assert "thinking: thinking is left out" in found.stdout


def test_cursors_store_holds_many_conversations(tmp_path: Path) -> None:
    inline = {"conversation": [{"type": 1, "text": "Hello."}, {"type": 2, "text": "Hi."}]}
    latest = {**COMPOSER, "latestConversationSummary": {
        "lastBubbleId": "b5", "summary": {"summary": "All of it.",
                                          "truncationLastBubbleIdInclusive": "b4"}}}  # fmt: skip
    plain = {name: {**b, "conversationSummary": None} for name, b in BUBBLES.items()}
    empty: dict[str, Any] = {"fullConversationHeadersOnly": []}
    path = cursor_store(
        tmp_path / "state.vscdb",
        (COMPOSER, BUBBLES), (inline, {}), (empty, {}), (b"{torn", {}), (latest, plain),
    )  # fmt: skip
    before = path.read_bytes()
    composers = imported_all(path, tmp_path / "out", exit_code=1)  # one is torn
    assert path.read_bytes() == before
    assert {each.name for each in tmp_path.iterdir()} == {"state.vscdb", "out"}
    by_length = sorted(composers, key=lambda each: (len(each.said), each.fixture.name))
    assert by_length[0].said == [("user", "Hello."), ("assistant", "Hi.")]
    missing = "bubble:other: it is not in the store (first at state.vscdb: bubble 6)"
    assert missing in by_length[0].stdout
    both = {each.fixture.recorded_compactions[0].summary: each for each in by_length[1:]}
    found, other = both["The port is 8123."], both["All of it."]
    assert found.said == [
        ("user", "Find the port."),
        ("assistant", "Looking."),
        ("tool", '{"contents": "PORT = 8123"}'),
        ("assistant", "It is 8123."),
        ("user", "Now change it."),
    ]
    assert calls(found) == [("read_file", {"path": "a.py"})]
    assert found.fixture.recorded_compactions[0].cut == 4
    assert state(found) == ["[Summary of the conversation so far]\nThe port is 8123.", 1, 2, 3]
    assert other.fixture.recorded_compactions[0].cut == 4
    assert state(other) == ["[Summary of the conversation so far]\nAll of it."]
