"""Threads of Amp, through ``compression-eval import``."""

from pathlib import Path
from typing import Any

from compression_eval.fixtures.models import NO_RESULT
from tests.conversations.readers.importing import imported
from tests.conversations.readers.reading import json_file


def _thread(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    numbered = [{"messageId": number, **message} for number, message in enumerate(messages)]
    return {
        "v": 9, "id": "T-11111111-2222-3333-4444-555566667777", "created": 1, "messages": numbered,
        "env": {"initial": {"platform": {"client": "CLI", "clientVersion": "0.1"}}}, **more,
    }  # fmt: skip


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _user(*blocks: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks), **more}


def _turn(*blocks: Any) -> dict[str, Any]:
    return {
        "role": "assistant", "content": list(blocks), "usage": {"model": "m-1"},
        "state": {"type": "complete", "stopReason": "tool_use"},
    }  # fmt: skip


def _use(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {"cmd": name}, **more}


def _result(name: str, status: str = "done", **run: Any) -> dict[str, Any]:
    return {"type": "tool_result", "toolUseID": name, "run": {"status": status, **run}}


def test_results_hold_how_the_tool_ran(tmp_path: Path) -> None:
    image = {
        "type": "image",
        "source": {"type": "base64", "mediaType": "image/png", "data": "AAAA"},
    }
    shell = {"output": "a.py", "exitCode": 0, "discoveredGuidanceFiles": [{"content": "SECRET"}]}
    thread = _thread(
        _user(_text("Look."), image, userState={"activeEditor": "a.py"},
              fileMentions={"files": [{"uri": "file:///w/a.py", "content": "PORT = 1"}]}),
        _turn({"type": "thinking", "thinking": "SECRET", "signature": "s"}, _text("I will."),
              *map(_use, "abcdef"), _use("torn", complete=False)),
        _user(_result("b", result=shell), _result("a", result="plain"),
              _result("c", result=[{"type": "text", "text": "from MCP"}]),
              _result("d", "error", error={"message": "no such file"}),
              _result("e", "rejected-by-user"), _result("f", "in-progress"),
              _text("and quickly")),
    )  # fmt: skip
    done = imported(json_file(tmp_path / "a.json", thread), tmp_path)
    assert done.format == "amp"
    assert [name for name, _, _ in done.calls] == list("abcdef")
    assert dict(done.results) == {
        "a": "plain",
        "b": '{"output": "a.py", "exitCode": 0}',
        "c": "from MCP",
        "d": "no such file",
        "e": "[the user rejected this call]",
        "f": NO_RESULT,
    }
    assert done.said[0] == (
        "user", "[attached file: file:///w/a.py]\nPORT = 1\nLook.\n[image: image/png, 3 bytes]",
    )  # fmt: skip
    assert done.said[-1] == ("user", "and quickly")
    assert "SECRET" not in done.fixture.model_dump_json()
    assert (done.fixture.model, done.fixture.name) == ("m-1", "amp-555566667777")
    assert "1 x amp, tool call: it was cut off and not carried out" in done.stdout
    assert "1 x amp, userState: the state of the user's editor" in done.stdout


def test_after_a_summary_only_the_summary_is_left(tmp_path: Path) -> None:
    command = {
        "type": "manual_bash_invocation",
        "args": {"cmd": "ls", "cwd": "/w"},
        "toolRun": {"status": "done", "result": {"output": "a.py", "exitCode": 0}},
    }
    thread = _thread(
        _user(_text("First.")),
        _turn(_text("Done.")),
        {"role": "info", "content": [command, {**command, "hidden": True}]},
        {"role": "info",
         "content": [{"type": "summary", "summary": {"type": "message", "summary": "SUM"}}]},
        _user(_text("Second.")),
        {"role": "info", "content": [
            {"type": "summary", "summary": {"type": "thread", "thread": "T-2"}}]},
        {"role": "info", "content": [{**command, "hidden": True}]},
        relationships=[{"threadID": "T-2", "type": "handoff", "role": "child"}],
    )  # fmt: skip
    done = imported(json_file(tmp_path / "a.json", thread), tmp_path)
    assert done.said == [
        ("user", "First."),
        ("assistant", "Done."),
        ("user", "[The user ran a command]\n$ ls\na.py"),
        ("user", "Second."),
    ]
    first, second = done.fixture.recorded_compactions
    assert (first.cut, first.summary, second.kind, second.state) == (3, "SUM", "opaque", None)
    assert done.state(0) == [("assistant", "SUM")]
    assert "the thread is linked to another by handoff or fork" in done.caveats
