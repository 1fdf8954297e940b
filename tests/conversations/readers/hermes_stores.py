"""Makes small databases of the form that Hermes writes."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compression_eval.conversations.building import Built, build
from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from compression_eval.fixtures.models import Message
from tests.conversations.readers.reading import unknown

FORMAT = format_named("hermes-db")

SUMMARY = (
    "[CONTEXT COMPACTION - REFERENCE ONLY] Earlier turns were compacted:\n"
    "The port is 8080.\n\n--- END OF CONTEXT SUMMARY - respond to the message below ---"
)
SUMMARY_TEXT = SUMMARY.rpartition("\n\n")[0]
TODO = "[Your active task list was preserved across context compression]\n- [ ] 1. write tests"


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def says(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def calls(*ids: str, text: str = "") -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {
                "id": identifier,
                "type": "function",
                "function": {"name": "bash", "arguments": json.dumps({"command": identifier})},
            }
            for identifier in ids
        ],
    }


def result(identifier: str, text: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identifier, "content": text}


def turn(number: int) -> list[dict[str, Any]]:
    """Return a user's request, two calls side by side, their results and the answer."""
    one, two = f"c{number}a", f"c{number}b"
    return [
        user(f"request {number}"),
        calls(one, two, text=f"working on {number}"),
        result(one, f"output {one} " + "x" * 40),
        result(two, f"output {two}"),
        says(f"answer {number}"),
    ]


class Store:
    """A database; the methods write what the agent's own code writes."""

    def __init__(self, path: Path, *, version: int = 22, prompts: bool = False) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA synchronous = OFF")
        flags = ", active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0" if version > 16 else ""
        hashed = ", system_prompt_hash TEXT" if prompts else ""
        self.flags, self.hashed = bool(flags), prompts
        for statement in (
            "CREATE TABLE schema_version (version INTEGER NOT NULL)",
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, "
            "model_config TEXT, system_prompt TEXT, parent_session_id TEXT, started_at REAL, "
            f"ended_at REAL, end_reason TEXT{hashed})",
            "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, "
            "session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT, tool_call_id TEXT, "
            f"tool_calls TEXT, timestamp REAL, reasoning TEXT{flags})",
        ):
            self.connection.execute(statement)
        self.connection.execute("INSERT INTO schema_version VALUES (?)", (version,))
        if prompts:
            self.connection.execute("CREATE TABLE system_prompts (hash TEXT, prompt TEXT)")

    def session(
        self,
        name: str,
        *,
        parent: str | None = None,
        started: float = 0,
        prompt: str | None = "You are careful.",
        config: dict[str, Any] | None = None,
    ) -> None:
        stored = None if self.hashed else prompt
        self.connection.execute(
            "INSERT INTO sessions (id, source, model, model_config, system_prompt, "
            "parent_session_id, started_at) VALUES (?, 'cli', 'some/model', ?, ?, ?, ?)",
            (name, json.dumps(config) if config else None, stored, parent, started),
        )
        if self.hashed and prompt:
            self.connection.execute("INSERT INTO system_prompts VALUES ('h1', ?)", (prompt,))
            self.connection.execute("UPDATE sessions SET system_prompt_hash = 'h1'")

    def end(self, name: str, reason: str) -> None:
        self.connection.execute("UPDATE sessions SET end_reason = ? WHERE id = ?", (reason, name))

    def add(self, session: str, messages: Sequence[dict[str, Any]]) -> None:
        for message in messages:
            content = message.get("content")
            if isinstance(content, list | dict):
                content = "\x00json:" + json.dumps(content)
            stored = message.get("tool_calls")
            self.connection.execute(
                "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, "
                "timestamp, reasoning) VALUES (?, ?, ?, ?, ?, 0, ?)",
                (
                    session,
                    message["role"],
                    content,
                    message.get("tool_call_id"),
                    json.dumps(stored) if stored else None,
                    message.get("reasoning"),
                ),
            )

    def compact(self, session: str, compacted: Sequence[dict[str, Any]]) -> None:
        """Compact in place: what was live is archived, what is kept is written once more."""
        self.connection.execute(
            "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1",
            (session,),
        )
        self.add(session, compacted)

    def undo(self, session: str, last: int) -> None:
        """Take back the last messages that are live."""
        self.connection.execute(
            "UPDATE messages SET active = 0 WHERE id IN (SELECT id FROM messages "
            "WHERE session_id = ? AND active = 1 ORDER BY id DESC LIMIT ?)",
            (session, last),
        )


def conversations(store: Store) -> list[Conversation]:
    return list(FORMAT.read(source_file(store.path)))


def only(store: Store) -> Built:
    (conversation,) = conversations(store)
    built = build(conversation)
    assert unknown(built) == []
    return built


def said(messages: list[Message]) -> list[str]:
    return [message.text for message in messages if message.role in ("user", "assistant")]


def history(*turns: int) -> list[str]:
    return [
        text
        for number in turns
        for text in (f"request {number}", f"working on {number}", f"answer {number}")
    ]


def state_texts(built: Built, number: int = 0) -> list[str]:
    fixture = built.fixture
    state = fixture.recorded_compactions[number].state or []
    return said([fixture.messages[item] if isinstance(item, int) else item for item in state])
