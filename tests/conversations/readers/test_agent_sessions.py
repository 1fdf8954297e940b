"""Copilot CLI, Cursor, OpenCode and Qwen Code, through the import."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compression_eval.cli import main
from compression_eval.fixtures.loading import load_fixture
from compression_eval.fixtures.models import Fixture
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
from tests.conversations.readers.reading import json_file, json_lines

Said = list[tuple[str, str]]


def run(path: Path, *options: str) -> tuple[Result, list[Fixture]]:
    """Import a file; return what was said, and the fixtures by their names."""
    out = path.with_name(f"{path.name}-out")
    given = ["import", str(path), "--out", str(out), *options]
    done = CliRunner().invoke(main, given)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done, [load_fixture(file) for file in sorted(out.glob("*.json"))]


def one(path: Path, *options: str) -> tuple[Result, Fixture]:
    """Import a file that becomes one fixture, and see that no thinking came in."""
    done, fixtures = run(path, *options)
    assert done.exit_code == 0, done.output
    (fixture,) = fixtures
    assert "HIDDEN" not in fixture.model_dump_json()
    return done, fixture


def said(fixture: Fixture) -> Said:
    return [(message.role, message.text) for message in fixture.messages]


def injected(fixture: Fixture) -> list[bool]:
    return [message.injected for message in fixture.messages if message.role == "user"]


def calls(fixture: Fixture) -> list[tuple[str, dict[str, Any]]]:
    return [
        (call.function.name, call.function.parsed())
        for message in fixture.messages
        for call in message.calls
    ]


def state(fixture: Fixture) -> list[int | str]:
    """Return the state of the one recorded compaction: kept messages by number, texts made."""
    (compaction,) = fixture.recorded_compactions
    assert compaction.state is not None
    return [part if isinstance(part, int) else part.text for part in compaction.state]


def caveats(fixture: Fixture) -> str:
    assert fixture.source is not None
    return "\n".join(fixture.source.caveats)


def test_copilot_cli_goes_on_with_its_summary_and_what_came_while_it_was_written(
    tmp_path: Path,
) -> None:
    shown, fixture = one(json_lines(tmp_path / "events.jsonl", *COPILOT))
    assert "events.jsonl: copilot-cli, an event session.start" in shown.stdout
    assert said(fixture) == [
        ("system", "You are an agent."),
        ("user", "Find the port."),
        ("assistant", "Looking."),
        ("tool", "a.py"),
        ("tool", "PORT = 8123"),
        ("assistant", "It is 8123."),
        ("user", "Now change it."),
        ("assistant", "Done."),
    ]
    assert calls(fixture) == [("view", {"path": "a.py"}), ("bash", {"command": "ls"})]
    (compaction,) = fixture.recorded_compactions
    assert (compaction.cut, compaction.trigger, compaction.summary) == (
        6, "threshold", "The port is 8123.",
    )  # fmt: skip
    assert (compaction.tokens_before, compaction.tokens_after) == (1000, 300)
    assert state(fixture) == ["[Summary of the conversation so far]\nThe port is 8123.", 5]
    assert "a form that the file does not hold" in caveats(fixture)
    assert fixture.model == "m-2"
    assert "transformedContent: what the client put round the message" in shown.stdout
    assert "attachment file: only its name is there" in shown.stdout


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
        ("session.context_cleared", {"messagesCleared": 9, "initialMessage": "Start anew."}),
        ("assistant.message", {"content": "Fresh."}),
    )
    path = json_lines(tmp_path / "e.jsonl", *main_thread, *helper, *old_helper, *rest)
    _, fixtures = run(path)
    by_name = {fixture.name.split("-", 3)[-1]: said(fixture) for fixture in fixtures}
    assert by_name["agent-a-1"] == [("user", "Count the files."), ("assistant", "There is 1.")]
    assert by_name["agent-t2"] == [("user", "x"), ("assistant", "Old.")]
    assert by_name["after-clear-1"] == [("user", "Start anew."), ("assistant", "Fresh.")]
    (whole,) = (fixture for fixture in fixtures if said(fixture)[0][1] == "Ask for help.")
    assert said(whole)[2:] == [
        ("tool", "There is 1."),
        ("tool", "[no result was recorded for this call]"),
        ("user", '[The user carried out an action: bash]\n{"c": 1}\nseen'),
        ("user", "skill text"),
        ("user", "A job has ended."),
    ]
    assert injected(whole) == [False, False, True, True]
    assert "2 messages in the user's name were written by Copilot" in caveats(whole)
    assert "1 tool calls have no recorded result" in caveats(whole)


def test_qwen_code_is_compressed_to_the_history_that_it_records(tmp_path: Path) -> None:
    shown, fixture = one(json_lines(tmp_path / "chat.jsonl", *QWEN))
    assert "chat.jsonl: qwen-code, lines with uuid" in shown.stdout
    assert said(fixture) == [
        ("user", "Find the port."),
        ("assistant", "Looking."),
        ("tool", "PORT = 8123"),
        ("assistant", "It is 8123."),
        ("user", "Now change it."),
        ("user", "task 3 ended"),
        ("assistant", "Done."),
    ]
    (compaction,) = fixture.recorded_compactions
    assert (compaction.cut, compaction.tokens_before, compaction.tokens_after) == (4, 900, 200)
    assert state(fixture) == ["<state_snapshot>port 8123</state_snapshot>", "Got it.", 3]
    assert (
        "qwen-code, user: on a branch that the user left (first at chat.jsonl: line 6)"
        in shown.stdout
    )
    assert injected(fixture) == [False, False, True]
    assert "1 messages in the user's name were written by Qwen Code" in caveats(fixture)


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
    shown, fixture = one(write(tmp_path))
    assert said(fixture) == [
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
    assert [name for name, _ in calls(fixture)] == ["read", "bash", "bash"]
    (compaction,) = fixture.recorded_compactions
    assert (compaction.cut, compaction.trigger, compaction.summary) == (
        8, "auto", "The port is 8123.",
    )  # fmt: skip
    assert (compaction.tokens_before, compaction.tokens_after) == (965, 305)
    assert state(fixture) == [6, 7, "What did we do so far?", "The port is 8123."]
    assert injected(fixture) == [False, True, False, False]
    assert "1 messages in the user's name were written by OpenCode" in caveats(fixture)
    assert "1 results were cleared from the context later" in caveats(fixture)
    assert fixture.model == "p/m-1"
    assert "message:assistant: a failed request" in shown.stdout
    assert "unknown" not in shown.stdout


def test_a_cursor_transcript_has_calls_without_results(tmp_path: Path) -> None:
    shown, fixture = one(json_lines(tmp_path / "t.jsonl", *CURSOR))
    assert "t.jsonl: cursor, lines with role" in shown.stdout
    assert said(fixture) == [
        ("user", "Find the port."),
        ("assistant", "Looking."),
        ("tool", "[no result was recorded for this call]"),
        ("tool", "[no result was recorded for this call]"),
        ("assistant", "It is 8123."),
    ]
    assert calls(fixture) == [("Read", {"path": "a.py"}), ("Shell", {"command": "ls"})]
    assert "Cursor writes no results of tools into transcripts" in caveats(fixture)
    assert "notes: what the client put round the user's words" in shown.stdout
    assert "thinking: thinking is left out" in shown.stdout


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
    shown, fixtures = run(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("state.vscdb-")] == [
        "state.vscdb-out"
    ]
    by_length = sorted(fixtures, key=lambda each: (len(each.messages), each.name))
    assert said(by_length[0]) == [("user", "Hello."), ("assistant", "Hi.")]
    assert "bubble:other: it is not in the store (first at state.vscdb: bubble 6)" in shown.stdout
    (fixture,) = (f for f in by_length[1:] if f.recorded_compactions[0].summary != "All of it.")
    assert said(fixture) == [
        ("user", "Find the port."),
        ("assistant", "Looking."),
        ("tool", '{"contents": "PORT = 8123"}'),
        ("assistant", "It is 8123."),
        ("user", "Now change it."),
    ]
    assert calls(fixture) == [("read_file", {"path": "a.py"})]
    assert fixture.recorded_compactions[0].cut == 4
    assert state(fixture) == ["[Summary of the conversation so far]\nThe port is 8123.", 1, 2, 3]
    (other,) = (f for f in by_length[1:] if f is not fixture)
    assert other.recorded_compactions[0].cut == 4
    assert state(other) == ["[Summary of the conversation so far]\nAll of it."]
