"""Spans and events of OpenTelemetry, through ``compression-eval import``."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compression_eval.cli import main
from tests.conversations.readers.importing import imported, imported_all
from tests.conversations.readers.reading import json_file, json_lines

_TRACE = "0123456789abcdef0123456789abcdef"
_TOOL = {
    "type": "function", "name": "read", "description": "Reads.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}  # fmt: skip


def _said(role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    found = [{"type": "text", "content": p} if isinstance(p, str) else p for p in parts]
    return {"role": role, "parts": found, **more}


def _call(name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": name, "name": "read", "arguments": arguments}


def _response(name: str, response: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": name, "response": response}


def _value(value: Any) -> dict[str, Any]:
    """Return a value as OTLP has it."""
    if isinstance(value, dict):
        return {
            "kvlistValue": {"values": [{"key": k, "value": _value(v)} for k, v in value.items()]}
        }
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _span(number: int, operation: str = "chat", **more: Any) -> dict[str, Any]:
    return {
        "traceId": _TRACE, "spanId": f"{number:016x}", "name": operation,
        "startTimeUnixNano": str(1000 + number), **more,
    }  # fmt: skip


def _otlp(*spans: Any) -> dict[str, Any]:
    scope = {"scope": {"name": "x"}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [scope]}]}


_ASKED = _said("user", "Find the port.")
_CALLED = _said(
    "assistant",
    {"type": "reasoning", "content": "SECRET THOUGHT"},
    "Looking.\n",
    _call("c1", {"path": "a.py"}),
    _call("c2", {"path": "b.py"}),
)
_GIVEN = _said("tool", _response("c2", {"text": "none"}), _response("c1", "PORT = 8123"))
_ANSWER = _said("assistant", "It is 8123.", finish_reason="stop")

REQUESTS: list[tuple[list[Any], list[Any]]] = [
    ([_ASKED], [{**_CALLED, "finish_reason": "tool_call"}]),
    # Sent again, an answer lacks its reasoning, is trimmed, and has its arguments as text.
    ([_ASKED, _said("assistant", "Looking.", _call("c1", '{"path": "a.py"}'),
                    _call("c2", '{"path":"b.py"}')), _GIVEN], [_ANSWER]),
]  # fmt: skip


def _details(number: int) -> dict[str, Any]:
    sent, back = REQUESTS[number]
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m", "gen_ai.response.model": "m-1",
        "gen_ai.system_instructions": [{"type": "text", "content": "You are careful."}],
        "gen_ai.tool.definitions": [_TOOL],
        "gen_ai.input.messages": sent, "gen_ai.output.messages": back,
    }  # fmt: skip


def _as_text(details: dict[str, Any]) -> dict[str, Any]:
    """Return attributes as most SDKs write them on spans: JSON in a text."""
    return {k: json.dumps(v) if isinstance(v, list) else v for k, v in details.items()}


def _forms() -> dict[str, list[Any]]:
    """Return the lines of files that hold the same two requests in different forms."""
    tool = _span(
        7, "execute_tool", attributes=_attributes({"gen_ai.operation.name": "execute_tool"})
    )
    agent = _span(0, "invoke_agent", attributes=_attributes(
        {"gen_ai.operation.name": "invoke_agent",
         "gen_ai.input.messages": json.dumps([_ASKED]),
         "gen_ai.output.messages": json.dumps([_ANSWER])}))  # fmt: skip
    text = [_span(n + 1, attributes=_attributes(_as_text(_details(n)))) for n in (0, 1)]
    whole = [_span(n + 1, attributes=_attributes(_details(n))) for n in (0, 1)]
    event = "gen_ai.client.inference.operation.details"
    on_event = [
        _span(n + 1, events=[{"name": event, "attributes": _attributes(_details(n))}])
        for n in (0, 1)
    ]
    logs = [
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [
            {"traceId": _TRACE, "spanId": f"{n + 1:016x}", "timeUnixNano": str(n + 1),
             "eventName": event, "attributes": _attributes(_details(n))}]}]}]}
        for n in (1, 0)
    ]  # fmt: skip
    printed = [
        {"name": "chat m", "context": {"trace_id": f"0x{_TRACE}", "span_id": f"0x{n:016x}"},
         "start_time": f"2026-01-01T00:00:0{n}.000000Z", "attributes": _as_text(_details(n)),
         "events": []}
        for n in (0, 1)
    ]  # fmt: skip
    return {
        "texts, the answer ending first": [_otlp(tool, text[1], text[0]), _otlp(agent)],
        "structured": [_otlp(*whole)],
        "events of spans": [_otlp(on_event[0]), _otlp(on_event[1])],
        "log records": logs,
        "printed by Python": printed,
    }


@pytest.mark.parametrize("form", _forms())
def test_requests_of_every_form_become_one_conversation(tmp_path: Path, form: str) -> None:
    done = imported(json_lines(tmp_path / "a.jsonl", *_forms()[form]), tmp_path)
    assert done.format == "otel"
    assert [role for role, _ in done.said] == [
        "system", "user", "assistant", "tool", "tool", "assistant",
    ]  # fmt: skip
    assert done.said[0][1] == "You are careful."
    assert done.calls == [("c1", "read", {"path": "a.py"}), ("c2", "read", {"path": "b.py"})]
    assert dict(done.results) == {"c1": "PORT = 8123", "c2": '{"text": "none"}'}
    assert done.said[-1] == ("assistant", "It is 8123.")
    assert "SECRET THOUGHT" not in done.fixture.model_dump_json()
    assert [tool.function.name for tool in done.fixture.tools] == ["read"]
    assert (done.fixture.model, done.fixture.name) == ("m-1", "otel-456789abcdef")
    assert done.fates <= {"message", "skipped"}
    assert not any("does not hold" in caveat for caveat in done.caveats)


def test_the_events_of_the_older_conventions(tmp_path: Path) -> None:
    calls = [{"id": "c1", "type": "function",
              "function": {"name": "read", "arguments": '{"path": "a.py"}'}}]  # fmt: skip
    system = ("gen_ai.system.message", {"content": "You are careful."})
    asked = ("gen_ai.user.message", {"content": "Find the port."})
    called = ("gen_ai.assistant.message", {"tool_calls": calls})
    given = ("gen_ai.tool.message", {"id": "c1", "content": "PORT = 8123"})

    def choice(**message: Any) -> tuple[str, dict[str, Any]]:
        return "gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": message}

    spans = []
    requests: list[list[tuple[str, dict[str, Any]]]] = [
        [system, asked, choice(tool_calls=calls)],
        [system, asked, called, given, choice(content="It is 8123.")],
    ]
    for number, events in enumerate(requests):
        spans.append(
            _span(number + 1, events=[
                {"name": name, "attributes": _attributes(
                    {key: json.dumps(part) if isinstance(part, dict | list) else part
                     for key, part in fields.items()})}
                for name, fields in events])
        )  # fmt: skip
    done = imported(json_file(tmp_path / "a.json", _otlp(*spans)), tmp_path / "1")
    assert [text for _, text in done.said] == [
        "You are careful.", "Find the port.", "", "PORT = 8123", "It is 8123.",
    ]  # fmt: skip
    assert done.calls == [("c1", "read", {"path": "a.py"})]
    logs = [
        {"traceId": _TRACE, "spanId": "1", "timeUnixNano": str(number), "body": _value(fields),
         "attributes": _attributes({"event.name": name})}
        for number, (name, fields) in enumerate(requests[1])
    ]  # fmt: skip
    records = {"resourceLogs": [{"scopeLogs": [{"logRecords": logs}]}]}
    assert imported(json_file(tmp_path / "b.json", records), tmp_path / "2").said == done.said


def test_what_does_not_go_on_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    """A sub-agent, another conversation of the same trace, and a context that was cut."""
    unused = _said("assistant", "A second choice.")
    asked = [_said("system", "One."), _ASKED]
    sub = [_said("system", "Two."), _said("user", "Sub task.")]
    cut = [
        _said("system", "One."),
        _ASKED,
        _said("assistant", "Summary: 8123."),
        _said("user", "On."),
    ]
    requests = [(asked, "main", "m"), (sub, "sub", "m"), (cut, "after", "m"), (sub, "other", "n")]
    spans = [
        _span(number, attributes=_attributes(
            {"gen_ai.conversation.id": conversation, "gen_ai.input.messages": json.dumps(sent),
             "gen_ai.output.messages": json.dumps([_said("assistant", answer), unused])}))
        for number, (sent, answer, conversation) in enumerate(requests, 1)
    ]  # fmt: skip
    path = json_file(tmp_path / "a.json", _otlp(*spans))
    found = {one.said[-1][1]: one for one in imported_all(path, tmp_path / "out")}
    assert "choices: only the first answer was gone on with" in found["main"].stdout
    assert set(found) == {"main", "sub", "after", "other"}
    assert [one.fixture.name.endswith(part) for one, part in (
        (found["sub"], "-thread-2"), (found["after"], "-thread-3"))] == [True, True]  # fmt: skip
    alike = [
        answer for answer, one in found.items() if any("begins like" in c for c in one.caveats)
    ]
    assert alike == ["after"]


def test_damage_is_named(tmp_path: Path) -> None:
    sent = [_said("user", "Go."), _said("oracle", "x"), _said("tool", _response("c9", "orphan"))]
    attributes = {"gen_ai.input.messages": json.dumps(sent), "gen_ai.output.messages": "[{"}
    spans = [_span(1, attributes=_attributes(attributes)), _span(2, "GET /")]
    path = json_lines(tmp_path / "a.jsonl", _otlp(*spans), b'{"resourceSpans": [', {"x": 1})
    done = imported(path, tmp_path, "--allow-missing")
    assert done.said == [("user", "Go.")]
    assert "1 tool results without their call were left out" in done.caveats
    assert sorted(entry["reason"] for entry in done.entries if entry["reason"]) == [
        "a request; the messages that it adds are entered one by one",
        "a result whose call is not in the file",
        "expected an object whose role is one of "
        "system, developer, user, assistant, tool, function",
        "it holds no messages",
        "it holds no spans or log records",
        "not JSON (20 bytes)",
    ]


def test_spans_without_content_are_not_claimed(tmp_path: Path) -> None:
    spans = [_span(1, attributes=_attributes({"gen_ai.operation.name": "chat"}))]
    path = json_file(tmp_path / "a.json", _otlp(*spans))
    done = CliRunner().invoke(main, ["import", str(path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "a.json: no known format" in done.stdout
