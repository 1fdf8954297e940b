"""OpenHands runs of version 0, with ids and, as older files are, without."""

from pathlib import Path
from typing import Any

import pytest

from compression_eval.conversations.formats import formats
from compression_eval.conversations.sources import source_file
from tests.conversations.readers.reading import (
    calls,
    fates,
    json_file,
    json_lines,
    read_all,
    read_one,
    results,
    said,
    sample,
)

FORMAT = formats()["openhands-output"]


def _action(number: int, kind: str, source: str = "agent", **args: Any) -> dict[str, Any]:
    return {
        "id": number, "timestamp": "t", "source": source, "message": "SHOWN", "action": kind,
        "args": args,
    }  # fmt: skip


def _seen(number: int, kind: str, content: str, cause: int | None, **extras: Any) -> dict[str, Any]:
    event = {
        "id": number, "timestamp": "t", "source": "agent", "message": "SHOWN",
        "observation": kind, "content": content, "extras": extras,
    }  # fmt: skip
    return event if cause is None else {**event, "cause": cause}


def _noted(event: dict[str, Any], call: str, reply: str, *others: str) -> dict[str, Any]:
    """Add the note on the tool call: the model's reply with all its calls."""
    made = [
        {"id": name, "function": {"name": "execute_bash", "arguments": '{"command": "ls"}'}}
        for name in (call, *others)
    ]
    message = {"content": "looking", "tool_calls": made, "reasoning_content": "HIDDEN"}
    return {
        **event,
        "tool_call_metadata": {
            "function_name": "execute_bash", "tool_call_id": call,
            "model_response": {"id": reply, "model": "m-1", "choices": [{"message": message}]},
        },
    }  # fmt: skip


def _run(*history: Any, **fields: Any) -> dict[str, Any]:
    return {"instance_id": "task-1", "instruction": "go", "history": list(history), **fields}


GO = _action(0, "message", "user", content="go")


def test_calls_with_ids_keep_them(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "output.jsonl",
        _run(
            _action(9, "system", content="be good", tools=[
                {"type": "function", "function": {"name": "execute_bash", "parameters": {}}}]),
            GO,
            _noted(_action(1, "run", command="ls", thought="T"), "c1", "r1", "c2", "c3"),
            _noted(_action(2, "run", command="pwd"), "c2", "r1", "c1", "c3"),
            _noted(_seen(3, "run", "second", 2, exit_code=0), "c2", "r1"),
            _noted(_seen(4, "run", "first", 1, metadata={"exit_code": 1}), "c1", "r1"),
            _action(5, "change_agent_state", agent_state="finished"),
            _seen(6, "agent_state_changed", "", None),
            _noted(_action(7, "finish", final_thought="all done"), "c9", "r2"),
            metadata={"llm_config": {"model": "m-2"}},
        ),
    )  # fmt: skip
    assert FORMAT.recognise(source_file(path)) is not None
    built = read_one(FORMAT, path)
    assert said(built)[:3] == [("system", "be good"), ("user", "go"), ("assistant", "looking")]
    assert calls(built) == [
        ("c1", "execute_bash", {"command": "ls"}), ("c2", "execute_bash", {"command": "ls"}),
    ]  # fmt: skip
    assert results(built) == [("c2", "second\n[exit code: 0]"), ("c1", "first\n[exit code: 1]")]
    assert said(built)[-1] == ("assistant", "looking\nall done")
    assert not any(word in built.fixture.model_dump_json() for word in ("HIDDEN", "SHOWN"))
    entries = {entry.place: entry for entry in built.account.entries}
    assert entries["line 1, event 3"].left_out == (
        ("thinking", "thinking is left out"),
        ("tool call", "no event says that it was carried out"),
    )
    assert entries["line 1, event 4"].fate == "merged"
    assert entries["line 1, event 7"].reason == "state of the program, not of the conversation"
    assert entries["line 1, instruction"].messages == (1,)
    assert built.fixture.model == "m-2"
    assert [tool.function.name for tool in built.fixture.tools] == ["execute_bash"]


def test_events_with_ids_but_without_notes_are_paired_by_cause(tmp_path: Path) -> None:
    path = json_file(
        tmp_path / "events.json",
        [
            GO,
            _action(1, "run", command="ls", thought="looking", confirmation_state="confirmed"),
            _action(2, "read", path="/w/a.py"),
            _seen(3, "read", "text of a", 2),
            _seen(4, "run", "a.py", 1),
            _seen(5, "error", "the model made no call", None),
            _seen(6, "run", "nobody asked", 77),
            _action(7, "run", "user", command="whoami"),
            _seen(8, "run", "me", 7),
            _action(10, "message", "agent", content="anything else?"),
            _action(11, "message", "user", content="see", image_urls=["http://x/a.png"]),
            _action(12, "edit", "user", path="b.py"),
        ],
    )
    assert FORMAT.recognise(source_file(path)) is not None
    built = read_one(FORMAT, path)
    assert calls(built) == [
        ("event-1", "run", {"command": "ls"}), ("event-2", "read", {"path": "/w/a.py"}),
    ]  # fmt: skip
    assert results(built) == [("event-1", "a.py"), ("event-2", "text of a")]
    assert [text for role, text in said(built) if role == "user"] == [
        "go", "the model made no call", "[The user ran a command]\n$ whoami", "me",
        "see\n[image: image]", '[The user carried out an action: edit]\n{"path": "b.py"}',
    ]  # fmt: skip
    assert fates(built)[6] == (
        "event 7 (observation:run): skipped: a result whose call is not in the file"
    )
    assert built.fixture.source is not None
    assert any("named after the place" in caveat for caveat in built.fixture.source.caveats)


def _old(**fields: Any) -> dict[str, Any]:
    return fields


def test_old_events_are_paired_by_order(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "output.jsonl",
        _run(
            [
                _old(action="message", content="go", wait_for_response=False),
                _old(observation="null", content=""),
            ],
            [
                _old(action="run", command="ls", thought="looking", keep_prompt=True),
                _old(observation="run", content="a.py", exit_code=0, command="ls"),
            ],
            [
                _old(action="run_ipython", code="1/0", kernel_init_code="x"),
                _old(observation="error", content="division"),
            ],
            [
                _old(action="message", content="what now?", wait_for_response=True),
                _old(observation="run", content="stray"),
            ],
            [_old(action="finish", outputs={"content": "bye"}, thought="done"), None],
        ),
    )
    built = read_one(FORMAT, path)
    assert [(name, arguments) for _, name, arguments in calls(built)] == [
        ("run", {"command": "ls"}), ("run_ipython", {"code": "1/0"}),
    ]  # fmt: skip
    assert [text for _, text in results(built)] == ["a.py\n[exit code: 0]", "division"]
    assert [pair for pair in said(built) if pair[0] != "tool"] == [
        ("user", "go"), ("assistant", "looking"), ("assistant", ""), ("assistant", "what now?"),
        ("user", "stray"), ("assistant", "done\nbye"),
    ]  # fmt: skip
    assert built.account.entries[9].fate == "unknown"
    assert built.fixture.source is not None
    assert any("given to the call before" in caveat for caveat in built.fixture.source.caveats)
    assert any("told from its form" in caveat for caveat in built.fixture.source.caveats)


@pytest.mark.parametrize(
    "forgotten",
    [
        {"forgotten_event_ids": [1, 2]},
        {"forgotten_events_start_id": 1, "forgotten_events_end_id": 2},
        {"forgotten_events_start_id": 1, "forgotten_events_end_id": 2, "x": 10**30},
    ],
)
def test_a_condensation_is_recorded_with_what_was_left(
    tmp_path: Path, forgotten: dict[str, Any]
) -> None:
    path = json_lines(
        tmp_path / "output.jsonl",
        _run(
            GO,
            _action(1, "run", command="ls"),
            _seen(2, "run", "a.py", 1),
            _action(3, "message", "user", content="on"),
            _action(4, "condensation_request"),
            _action(5, "condensation", **forgotten, summary="listed", summary_offset=1),
            _action(6, "message", "user", content="last"),
        ),
    )
    built = read_one(FORMAT, path)
    (compaction,) = built.fixture.recorded_compactions
    assert (compaction.cut, compaction.trigger, compaction.summary) == (4, "requested", "listed")
    assert compaction.state is not None
    assert [item if isinstance(item, int) else item.text for item in compaction.state] == [
        0, "listed", 3,
    ]  # fmt: skip
    assert built.fixture.source is not None
    assert not any("kept tail" in caveat for caveat in built.fixture.source.caveats)


def test_every_run_of_a_file_is_a_conversation_with_its_own_account(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "output.jsonl",
        b'{"torn',
        _run(GO),
        b"not json",
        _run(_action(1, "run", command="ls"), instance_id="task-2", instruction="only here"),
        {"something": "else"},
    )
    first, second = read_all(FORMAT, path)
    assert [entry.place for entry in first.account.entries] == [
        "line 1", "line 2, event 1", "line 2, instruction", "line 3",
    ]  # fmt: skip
    assert said(second)[0] == ("user", "only here")
    assert fates(second)[1] == "line 4, instruction (instruction): became message 0"
    assert second.account.entries[-1].fate == "unknown"
    assert first.fixture.name != second.fixture.name


def test_events_on_lines_of_their_own_are_one_run(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "e.jsonl", GO, _action(1, "think", thought="hm"), _action(2, "from_the_future"),
        _action(3, "rejoice"), _seen(4, "think", "noted", 1),
    )  # fmt: skip
    assert FORMAT.recognise(source_file(path)) is not None
    built = read_one(FORMAT, path)
    assert calls(built) == [("event-1", "think", {"thought": "hm"})]
    assert results(built) == [("event-1", "noted")]
    assert [entry.fate for entry in built.account.entries] == [
        "message", "message", "unknown", "unknown", "message",
    ]  # fmt: skip


def test_the_sample_agrees_with_its_table() -> None:
    runs = read_all(FORMAT, sample("openhands/openhands-resolver-output.jsonl"))
    entries = [entry for built in runs for entry in built.account.entries]
    events = [entry for entry in entries if "event" in entry.place]
    assert (len(runs), len(events)) == (2, 52)
    assert sum(entry.kind.startswith("action:") for entry in events) == 28
    assert sum(entry.kind.startswith("observation:") for entry in events) == 24
    silent = ("action:message", "action:finish")
    assert sum(entry.kind in silent for entry in events) == 4
    assert sum(len(calls(built)) for built in runs) == 24
    assert sum(len(results(built)) for built in runs) == 24
    assert all(built.account.unsettled() == [] and built.account.added == () for built in runs)
