"""Small sessions in the true form of agents, with invented content."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TIME = "2026-01-01T00:00:00Z"
SESSION = "11111111-2222-3333-4444-555566667777"


def events(*items: tuple[str, dict[str, Any]], **shared: Any) -> list[dict[str, Any]]:
    """Return events of Copilot CLI from their kinds and data."""
    return [
        {"type": kind, "data": data, "id": f"e{number}", "timestamp": TIME,
         "parentId": f"e{number - 1}" if number else None, **shared}
        for number, (kind, data) in enumerate(items)
    ]  # fmt: skip


def request(call: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Return a tool request of Copilot CLI."""
    return {"toolCallId": call, "name": name, "arguments": arguments, "type": "function"}


def done(call: str, text: str) -> dict[str, Any]:
    """Return what Copilot CLI records of a call that was carried out."""
    result = {"content": text, "detailedContent": f"{text}\n(coloured)"}
    return {"toolCallId": call, "success": True, "result": result}


COPILOT = events(
    ("session.start", {"sessionId": SESSION, "version": 1, "producer": "copilot-agent",
                       "copilotVersion": "1.0.63", "startTime": TIME, "selectedModel": "m-1"}),
    ("system.message", {"role": "system", "content": "You are an agent."}),
    ("user.message", {"content": "Find the port.", "transformedContent": "<now/>Find the port.",
                      "attachments": [{"type": "file", "path": "/w/a", "displayName": "a"}]}),
    ("assistant.turn_start", {"turnId": "0"}),
    ("assistant.message", {"messageId": "m", "content": "Looking.", "reasoningText": "HIDDEN",
                           "toolRequests": [request("c1", "view", path="a.py"),
                                            request("c2", "bash", command="ls")]}),
    ("tool.execution_start", {"toolCallId": "c1", "toolName": "view", "arguments": {}}),
    ("tool.execution_complete", done("c2", "a.py")),
    ("tool.execution_complete", done("c1", "PORT = 8123")),
    ("session.compaction_start", {"conversationTokens": 900}),
    ("assistant.message", {"messageId": "n", "content": "It is 8123."}),
    ("session.compaction_complete", {"success": True, "trigger": "threshold",
                                     "preCompactionTokens": 1000, "postCompactionTokens": 300,
                                     "summaryContent": "The port is 8123."}),
    ("user.message", {"content": "Now change it."}),
    ("assistant.message", {"messageId": "o", "content": "Done.", "model": "m-2"}),
    ("session.shutdown", {"shutdownType": "routine"}),
)  # fmt: skip


def text(words: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": words}


def qwen(name: str, parent: str | None, kind: str, *parts: Any, **fields: Any) -> dict[str, Any]:
    """Return a record of Qwen Code."""
    role = "model" if kind == "assistant" else "user"
    message = {"message": {"role": role, "parts": list(parts)}} if parts else {}
    return {"uuid": name, "parentUuid": parent, "sessionId": SESSION, "timestamp": TIME,
            "type": kind, "cwd": "/w", "version": "0.19.1", **message, **fields}  # fmt: skip


QWEN: list[dict[str, Any]] = [
    qwen("q1", None, "user", {"text": "Find the port."}),
    qwen("q2", "q1", "assistant", {"text": "HIDDEN", "thought": True}, {"text": "Looking."},
         {"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a.py"}}},
         model="m-1"),
    qwen("q3", "q2", "tool_result",
         {"functionResponse": {"id": "c1", "name": "read_file",
                               "response": {"output": "PORT = 8123"}}},
         toolCallResult={"callId": "c1", "status": "success", "resultDisplay": "x"}),
    qwen("q4", "q3", "assistant", {"text": "It is 8123."}, model="m-1"),
    qwen("q5", "q4", "system", subtype="chat_compression", systemPayload={
        "info": {"originalTokenCount": 900, "newTokenCount": 200, "compressionStatus": 1},
        "compressedHistory": [
            {"role": "user", "parts": [{"text": "<state_snapshot>port 8123</state_snapshot>"}]},
            {"role": "model", "parts": [{"text": "Got it."}]},
            {"role": "model", "parts": [{"text": "It is 8123."}]},
        ]}),
    qwen("q6", "q5", "user", {"text": "taken back"}),
    qwen("q7", "q5", "user", {"text": "Now change it."}),
    qwen("q8", "q7", "user", {"text": "task 3 ended"}, subtype="notification"),
    qwen("q9", "q8", "assistant", {"text": "Done."}, model="m-1"),
]  # fmt: skip


def stored(name: str, role: str, *parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a message of OpenCode."""
    return {"info": {"id": name, "sessionID": "ses_1", "role": role, "time": {"created": 1},
                     **fields}, "parts": list(parts)}  # fmt: skip


def tool(call: str, name: str, given: dict[str, Any], **state: Any) -> dict[str, Any]:
    """Return a tool part of OpenCode."""
    return {"type": "tool", "callID": call, "tool": name, "state": {"input": given, **state}}


def _tokens(sent: int) -> dict[str, Any]:
    return {"tokens": {"input": sent, "output": 10, "cache": {"read": 5, "write": 0}},
            "providerID": "p", "modelID": "m-1"}  # fmt: skip


OPENCODE: dict[str, Any] = {
    "info": {"id": "ses_1", "version": "1.2.3", "projectID": "p", "directory": "/w",
             "time": {"created": 1}},
    "messages": [
        stored("msg_1", "user", text("Find the port."),
               text("Called Read: a.py") | {"synthetic": True},
               {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}),
        stored("msg_2", "assistant", {"type": "step-start"},
               {"type": "reasoning", "text": "HIDDEN"},
               text("Looking."),
               tool("c1", "read", {"filePath": "a.py"}, status="completed", output="PORT = 8123",
                    time={"start": 1, "end": 2, "compacted": 3}),
               tool("c2", "bash", {"command": "x"}, status="error", error="no such command"),
               tool("c3", "bash", {"command": "y"}, status="running"),
               {"type": "step-finish", "reason": "stop"}, **_tokens(900)),
        stored("msg_3", "user", text("Go on.")),
        stored("msg_4", "assistant", text("It is 8123."), **_tokens(950)),
        stored("msg_5", "assistant", error={"name": "APIError"}),
        stored("msg_6", "user", {"type": "compaction", "auto": True, "tail_start_id": "msg_3"}),
        stored("msg_7", "assistant", text("The port is 8123."), summary=True, parentID="msg_6",
               mode="compaction"),
        stored("msg_8", "user", text("Now change it.")),
        stored("msg_9", "assistant", text("Done."), **_tokens(300)),
    ],
}  # fmt: skip

CURSOR: list[dict[str, Any]] = [
    {"role": "user", "message": {"content": [
        text("<timestamp>now</timestamp>\n<user_query>\nFind the port.\n</user_query>")]}},
    {"role": "assistant", "message": {"content": [
        text("Looking.\n\n[REDACTED]"),
        {"type": "tool_use", "name": "Read", "input": {"path": "a.py"}},
        {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}]}},
    {"role": "assistant", "message": {"content": [text("It is 8123.")]}},
    {"type": "turn_ended", "status": "success"},
]  # fmt: skip


COMPOSER: dict[str, Any] = {
    "composerId": SESSION,
    "modelConfig": {"modelName": "m-1"},
    "fullConversationHeadersOnly": [
        {"bubbleId": name, "type": kind}
        for name, kind in (("b1", 1), ("b2", 2), ("b3", 2), ("b4", 2), ("b5", 1), ("b9", 2))
    ],
}
BUBBLES: dict[str, dict[str, Any]] = {
    "b1": {"type": 1, "text": "Find the port.", "attachedCodeChunks": [{}]},
    "b2": {"type": 2, "text": "", "thinking": {"text": "HIDDEN"}},
    "b3": {"type": 2, "text": "Looking.", "toolFormerData": {
        "toolCallId": "c1", "name": "read_file", "status": "completed",
        "rawArgs": '{"path": "a.py"}', "result": '{"contents": "PORT = 8123"}'}},
    "b4": {"type": 2, "text": "It is 8123.", "conversationSummary": json.dumps({
        "summary": "The port is 8123.", "truncationLastBubbleIdInclusive": "b2",
        "clientShouldStartSendingFromInclusiveBubbleId": "b3"})},
    "b5": {"type": 1, "text": "Now change it."},
}  # fmt: skip


def cursor_store(path: Path, *conversations: tuple[Any, Any]) -> Path:
    """Write a ``state.vscdb`` with conversations, each of a head and its bubbles by their ids."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)")
    connection.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)")
    for number, (head, bubbles) in enumerate(conversations):
        rows = [(f"composerData:c{number}", head)]
        if isinstance(bubbles, dict):
            rows += [(f"bubbleId:c{number}:{name}", value) for name, value in bubbles.items()]
        connection.executemany(
            "INSERT INTO cursorDiskKV VALUES (?, ?)",
            [
                (key, value if isinstance(value, bytes) else json.dumps(value))
                for key, value in rows
            ],
        )
    connection.commit()
    connection.close()
    return path


def opencode_database(path: Path, exports: Iterable[Any]) -> Path:
    """Write an ``opencode.db`` with what exports hold."""
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE session (id TEXT, parent_id TEXT, version TEXT, revert TEXT);"
        "CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);"
        "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);"
    )
    for number, export in enumerate(exports):
        session = f"ses_{number}"
        connection.execute("INSERT INTO session VALUES (?, NULL, '1.2.3', NULL)", (session,))
        for place, message in enumerate(export["messages"]):
            name = message["info"]["id"]
            connection.execute(
                "INSERT INTO message VALUES (?, ?, ?, ?)",
                (name, session, place, json.dumps(message["info"])),
            )
            connection.executemany(
                "INSERT INTO part VALUES (?, ?, ?, ?)",
                [
                    (f"prt_{place}_{index}", name, session, json.dumps(part))
                    for index, part in enumerate(message["parts"])
                ],
            )
    connection.commit()
    connection.close()
    return path
