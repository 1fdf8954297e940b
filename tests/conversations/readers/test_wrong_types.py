"""No field of a wrong type breaks a reader: every one is tried, with every kind of value."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compression_eval.conversations.building import build
from compression_eval.conversations.formats import Format, formats
from compression_eval.conversations.sources import source_file
from compression_eval.fixtures.errors import DataError
from tests.conversations.readers.agent_sessions import (
    BUBBLES,
    COMPOSER,
    COPILOT,
    CURSOR,
    CURSOR_STREAM,
    EXEC,
    OPENCODE,
    QWEN,
    STREAM,
    cursor_store,
)

WRONG: list[Any] = [
    None,
    7,
    -1.5,
    True,
    "",
    "a\ud800",
    [],
    [None, 7, "x", [], {"type": []}],
    {"a": 1},
]

_CHAT_CALL = {"id": "c1", "function": {"name": "f", "arguments": "{}"}}
_REPLY = {
    "id": "r",
    "model": "m",
    "choices": [{"message": {"content": "t", "tool_calls": [_CHAT_CALL]}}],
}
_PARTS = [{"type": "text", "text": "go"}, {"type": "image", "data": "AA", "mimeType": "image/png"}]

_SESSION = OPENCODE["messages"]

WHOLE: list[tuple[Format, list[Any]]] = [
    (formats()["copilot-cli"], [COPILOT[number] for number in (0, 2, 4, 6, 8, 10)]),
    (formats()["claude-code-stream"], [STREAM[number] for number in (0, 3, 4, 6, 10, 11)]),
    (formats()["codex-exec"], [EXEC[number] for number in (0, 1, 4, 5, 6)]),
    (formats()["qwen-code"], [QWEN[number] for number in (0, 1, 2, 4)]),
    (formats()["cursor"], [*CURSOR[:2], CURSOR_STREAM[0], CURSOR_STREAM[7]]),
    (
        formats()["opencode"],
        [{**OPENCODE, "messages": [_SESSION[number] for number in (0, 1, 5, 6)]}],
    ),
    (
        formats()["amp"],
        [
            {
                "v": 1, "id": "T-1", "relationships": [{"type": "fork"}],
                "env": {"initial": {"platform": {"clientVersion": "1"}}},
                "messages": [
                    {"role": "user", "messageId": 0, "content": [{"type": "text", "text": "go"}],
                     "fileMentions": {"files": [{"uri": "u", "content": "x"}]}},
                    {"role": "assistant", "messageId": 1, "usage": {"model": "m"}, "content": [
                        {"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
                    {"role": "user", "messageId": 2, "content": [
                        {"type": "tool_result", "toolUseID": "c",
                         "run": {"status": "done", "result": {"output": "x", "exitCode": 0}}}]},
                    {"role": "info", "messageId": 3, "content": [
                        {"type": "manual_bash_invocation", "args": {"cmd": "ls"},
                         "toolRun": {"status": "done", "result": {"output": "x"}}},
                        {"type": "summary", "summary": {"type": "message", "summary": "s"}}]},
                ],
            }
        ],
    ),
    (
        formats()["otel"],
        [
            {"resourceSpans": [{"scopeSpans": [{"spans": [
                {"traceId": "t", "spanId": "s", "startTimeUnixNano": "1",
                 "attributes": [
                    {"key": "gen_ai.input.messages", "value": {"arrayValue": {"values": [
                        {"kvlistValue": {"values": [
                            {"key": "role", "value": {"stringValue": "user"}}]}}]}}}],
                 "events": [{"name": "gen_ai.user.message",
                             "attributes": [{"key": "content", "value": {"stringValue": "go"}}]}]}
            ]}]}]},
            {"context": {"trace_id": "0xt", "span_id": "0xs"}, "start_time": "2026", "attributes": {
                "gen_ai.input.messages": [{"role": "user", "parts": [
                    {"type": "text", "content": "go"}, {"type": "blob", "modality": "image",
                     "mime_type": "image/png", "content": "AA"}]}],
                "gen_ai.output.messages": [{"role": "assistant", "parts": [
                    {"type": "tool_call", "id": "c", "name": "f", "arguments": {"a": 1}},
                    {"type": "tool_call_response", "id": "c", "response": "x"}]}]}},
        ],
    ),
    (
        formats()["goose"],
        [
            {"working_dir": "/w", "description": "x"},
            {"role": "user", "content": [{"type": "text", "text": "go"}],
             "metadata": {"userVisible": True, "agentVisible": False}},
            {"role": "assistant", "content": [{"type": "toolRequest", "id": "c", "toolCall": {
                "status": "success", "value": {"name": "f", "arguments": {"a": 1}}}}]},
            {"role": "user", "content": [{"type": "toolResponse", "id": "c", "toolResult": {
                "value": {"content": [{"type": "resource", "resource": {"text": "x"},
                                       "annotations": {"audience": ["user"]}}]}, "error": "x"}}]},
            {"role": "user", "content": [{"type": "text", "text": "SUM"}],
             "metadata": {"userVisible": False}},
            {"role": "assistant", "content": [{"type": "text", "text": "note"}],
             "metadata": {"userVisible": False}},
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
        ],
    ),
    (
        formats()["droid"],
        [
            {"type": "session_start", "id": "s", "parent": "p", "version": 2, "cwd": "/w"},
            {"type": "message", "id": "a", "message": {"role": "user", "content": "go"}},
            {"type": "message", "id": "b", "message": {
                "role": "assistant", "modelId": "m", "visibility": "llm_only",
                "chatCompletionReasoningContent": "x",
                "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}]}},
            {"type": "message", "id": "d", "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "x"}]}},
            {"type": "compaction_state", "id": "e", "summaryText": "s", "summaryKind": "",
             "systemInfoText": "i", "anchorMessage": {"id": "a", "index": 0}},
            {"type": "todo_state", "todos": []},
        ],
    ),
    (
        formats()["cline"],
        [
            [
                {"role": "user", "content": [{"type": "text", "text": "<task>go</task>"}], "ts": 1},
                {"role": "assistant", "modelInfo": {"modelId": "m"}, "condenseParent": "s",
                 "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
                {"role": "user", "truncationParent": "t", "content": [
                    {"type": "text", "text": "[f for 'x'] Result:"},
                    {"type": "text", "text": "<environment_details>"}]},
                {"role": "user", "isSummary": True, "condenseId": "s", "content": "SUM"},
                {"role": "user", "isTruncationMarker": True, "truncationId": "t", "content": "x"},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "d", "name": "condense", "input": {"context": "S"}}
                ]},
                {"role": "user", "content": [{"type": "text", "text": "[condense] Result:"}]},
                {"type": "reasoning", "encrypted_content": "x"},
            ]
        ],
    ),
    (
        formats()["pi"],
        [
            {"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/w"},
            {"type": "message", "id": "a", "parentId": None, "timestamp": "t",
             "message": {"role": "user", "content": _PARTS}},
            {"type": "message", "id": "b", "parentId": "a", "timestamp": "t",
             "message": {"role": "assistant", "provider": "p", "model": "m",
                         "stopReason": "aborted",
                         "content": [{"type": "toolCall", "id": "c", "name": "f",
                                      "arguments": {"a": 1}}]}},
            {"type": "message", "id": "c", "parentId": "b", "timestamp": "t",
             "message": {"role": "toolResult", "toolCallId": "c", "content": "x"}},
            {"type": "compaction", "id": "d", "parentId": "c", "summary": "s", "tokensBefore": 1,
             "firstKeptEntryId": "b", "firstKeptEntryIndex": 1, "details": {}, "fromHook": True},
            {"type": "message", "id": "e", "parentId": "d", "timestamp": "t",
             "message": {"role": "bashExecution", "command": "ls", "output": "x", "exitCode": 1}},
            {"type": "branch_summary", "id": "f", "parentId": "e", "summary": "s"},
        ],
    ),
    (
        formats()["gemini-cli"],
        [
            {"sessionId": "s", "projectHash": "p", "kind": "main"},
            {"id": "a", "type": "user", "content": [
                {"text": "go"}, {"inlineData": {"mimeType": "image/png", "data": "AA"}}]},
            {"id": "b", "type": "gemini", "content": "x", "model": "m", "thoughts": [{}],
             "toolCalls": [{"id": "c", "name": "f", "args": {}, "resultDisplay": "x", "result": [
                 {"functionResponse": {"id": "c", "response": {"output": "x"}, "parts": [{}]}}]}]},
            {"$set": {"messages": [{"id": "s1", "type": "user", "content": "short"}]}},
            {"$rewindTo": "s1"},
            {"id": "d", "type": "gemini", "content": [{"functionCall": {"name": "f", "args": {}}}]},
        ],
    ),
    (
        formats()["openhands-events"],
        [
            {"id": "0", "source": "agent", "timestamp": "t", "kind": "SystemPromptEvent",
             "system_prompt": {"text": "s"},
             "tools": [{"type": "function", "function": {"name": "f"}}]},
            {"id": "1", "source": "user", "timestamp": "t", "kind": "MessageEvent",
             "llm_message": {"role": "user", "content": [
                 {"type": "text", "text": "go"}, {"type": "image", "image_urls": ["u"]}]},
             "extended_content": []},
            {"id": "2", "source": "agent", "timestamp": "t", "kind": "ActionEvent",
             "thought": [{"type": "text", "text": "x"}], "tool_call": {"id": "c", "name": "f",
             "arguments": "{}"}, "tool_call_id": "c", "tool_name": "f", "llm_response_id": "r",
             "action": {"kind": "x"}},
            {"id": "3", "source": "agent", "timestamp": "t", "kind": "ObservationEvent",
             "tool_call_id": "c", "observation": {"content": [{"type": "text", "text": "x"}]}},
            {"id": "4", "kind": "CondensationRequest", "reason": "manual"},
            {"id": "5", "kind": "Condensation", "forgotten_event_ids": ["2", "3"], "summary": "s",
             "summary_offset": 1},
            {"id": "6", "kind": "ConversationStateUpdateEvent", "value": {
                "id": "s", "agent": {"llm": {"model": "m"}},
                "usage_to_metrics": {"default": {"model_name": "m"}}}},
            {"id": "7", "kind": "UserRejectObservation", "rejection_reason": "x",
             "tool_call_id": "c"},
            {"id": "8", "kind": "AgentErrorEvent", "error": "x", "tool_call_id": "c"},
        ],
    ),
    (
        formats()["openhands-output"],
        [
            {
                "instance_id": "i", "instruction": "go", "issue": {"owner": "o", "number": 1},
                "metadata": {"llm_config": {"model": "m"}},
                "history": [
                    {"id": 0, "action": "system", "args": {"content": "s", "tools": [{}]}},
                    {"id": 1, "action": "message", "source": "user",
                     "args": {"content": "go", "image_urls": ["u"]}},
                    {"id": 2, "action": "run", "args": {"command": "ls", "thought": "t"},
                     "tool_call_metadata": {"function_name": "f", "tool_call_id": "c1",
                                            "model_response": _REPLY}},
                    {"id": 3, "observation": "run", "content": "x", "cause": 2,
                     "extras": {"exit_code": 0, "metadata": {"exit_code": 0}}},
                    {"id": 4, "action": "condensation", "args": {
                        "forgotten_event_ids": [2], "forgotten_events_start_id": 2,
                        "forgotten_events_end_id": 3, "summary": "s", "summary_offset": 1}},
                    [{"action": "run", "command": "ls"}, {"observation": "run", "content": "x"}],
                    {"action": "run", "source": "user", "id": 9, "args": {"command": "x"}},
                    {"action": "finish", "args": {"outputs": {"content": "x"}, "thought": "t"}},
                ],
            }
        ],
    ),
    (
        formats()["swe-agent"],
        [
            {
                "trajectory": [{}],
                "replay_config": {"agent": {"model": {"name": "m"}},
                                  "problem_statement": {"id": "i"}},
                "history": [
                    {"role": "user", "content": [{"type": "text", "text": "go"}], "agent": "a",
                     "message_type": "observation", "is_demo": False},
                    {"role": "assistant", "content": "x", "action": "ls",
                     "tool_calls": [_CHAT_CALL]},
                    {"role": "tool", "content": "x", "tool_call_ids": ["c1"], "tool_call_id": "c1"},
                ],
            }
        ],
    ),
    (
        formats()["mini-swe-agent"],
        [
            {
                "trajectory_format": "mini-swe-agent-1.1", "instance_id": "i",
                "info": {"mini_version": "2", "config": {"model": {"model_name": "m"}}},
                "messages": [
                    {"role": "user", "content": "go"},
                    {"role": "assistant", "content": "```bash", "tool_calls": [_CHAT_CALL]},
                    {"role": "tool", "tool_call_id": "c1", "content": "x"},
                    {"object": "response", "output": [
                        {"type": "message", "content": [{"type": "output_text", "text": "x"}]},
                        {"type": "function_call", "call_id": "c2", "name": "f",
                         "arguments": "{}"}]},
                    {"type": "function_call_output", "call_id": "c2", "output": "x"},
                ],
            }
        ],
    ),
    (
        formats()["atif"],
        [
            {
                "schema_version": "ATIF-v1.7", "session_id": "s",
                "continued_trajectory_ref": "c.json",
                "agent": {"name": "a", "version": "1", "model_name": "m", "tool_definitions": [{}]},
                "steps": [
                    {"source": "user", "message": [{"type": "text", "text": "go"}]},
                    {"source": "agent", "message": "x", "model_name": "m", "tool_calls": [
                        {"tool_call_id": "c", "function_name": "f", "arguments": {}}],
                     "observation": {"results": [{"source_call_id": "c", "content": "x",
                                                  "subagent_trajectory_ref": [{}]}]}},
                    {"source": "system", "message": "x",
                     "extra": {"context_management": {"type": "compaction"}}},
                    {"source": "user", "message": "x", "is_copied_context": True},
                ],
                "subagent_trajectories": [
                    {"trajectory_id": "t", "steps": [{"source": "user", "message": "x"}]}],
            }
        ],
    ),
]  # fmt: skip


def _variants(value: Any) -> Iterator[Any]:
    """Yield a value with one of its parts replaced by something wrong, or taken out."""
    parts: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        parts = list(value.items())
        for key in value:
            yield {name: part for name, part in value.items() if name != key}
    elif isinstance(value, list):
        parts = list(enumerate(value))
    for key, part in parts:
        for replacement in [*WRONG, *_variants(part)]:
            changed = dict(value) if isinstance(value, dict) else list(value)
            changed[key] = replacement
            yield changed


@pytest.mark.parametrize(("reader", "values"), WHOLE, ids=[reader.name for reader, _ in WHOLE])
def test_no_field_of_a_wrong_type_breaks(tmp_path: Path, reader: Format, values: list[Any]) -> None:
    path = tmp_path / "a.json"
    counts = {"read": 0, "refused": 0}
    for changed in [values, *_variants(values)]:
        path.write_text("\n".join(json.dumps(value) for value in changed) + "\n")
        source = source_file(path)
        reader.recognise(source)
        try:
            for conversation in reader.read(source):
                account = build(conversation).account
                assert "unaccounted" not in {entry.fate for entry in account.entries}, changed
        except DataError:
            counts["refused"] += 1
        else:
            counts["read"] += 1
    assert counts["read"] > 100


def test_no_field_of_a_wrong_type_breaks_a_store(tmp_path: Path) -> None:
    changed = [(each, BUBBLES) for each in _variants(COMPOSER)]
    changed += [(COMPOSER, each) for each in _variants(BUBBLES)]
    store = cursor_store(tmp_path / "state.vscdb", *changed)
    read = 0
    for conversation in formats()["cursor"].read(source_file(store)):
        try:
            account = build(conversation).account
        except DataError:
            continue
        assert "unaccounted" not in {entry.fate for entry in account.entries}
        read += 1
    assert read > 100
