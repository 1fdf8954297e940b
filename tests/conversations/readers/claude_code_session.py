"""Write sessions of Claude Code by hand, line by line, linked as the agent links them."""

from pathlib import Path
from typing import Any

from compression_eval.conversations.building import Built
from compression_eval.conversations.formats import format_named
from tests.conversations.readers.reading import json_lines, read_one

FORMAT = format_named("claude-code")

SESSION = "aaaaaaaa-0000-4000-8000-000000000001"


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(identifier: str, name: str = "Read", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": name, "input": arguments}


def result(identifier: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identifier, "content": content, **fields}


class Session:
    """The lines of a file; each names the one before it as its parent unless told otherwise."""

    def __init__(self, **common: Any) -> None:
        self.lines: list[Any] = []
        self.last: str | None = None
        self._common = {"sessionId": SESSION, "version": "2.1.0", "isSidechain": False, **common}

    def loose(self, kind: str, **fields: Any) -> None:
        """Add a line outside the tree."""
        self.lines.append({"type": kind, "sessionId": SESSION, **fields})

    def linked(self, kind: str, **fields: Any) -> str:
        """Add a line to the tree and return its uuid."""
        uuid = fields.pop("uuid", f"u{len(self.lines) + 1}")
        parent = fields.pop("parent", self.last)
        self.lines.append(
            {"type": kind, "uuid": uuid, "parentUuid": parent, **self._common, **fields}
        )
        self.last = uuid
        return str(uuid)

    def user(self, content: Any, **fields: Any) -> str:
        return self.linked("user", message={"role": "user", "content": content}, **fields)

    def model(self, identifier: str, *blocks: Any, **fields: Any) -> str:
        message = {"id": identifier, "role": "assistant", "model": "m-1", "content": list(blocks)}
        message |= fields.pop("message", {})
        return self.linked("assistant", message=message, **fields)

    def attach(self, kind: str, **fields: Any) -> str:
        above = {"parent": fields.pop("parent")} if "parent" in fields else {}
        return self.linked("attachment", attachment={"type": kind, **fields}, **above)

    def system(self, kind: str, **fields: Any) -> str:
        return self.linked("system", subtype=kind, **fields)

    def boundary(self, **metadata: Any) -> str:
        """Add the boundary of a compaction, which has no parent but a logical one."""
        metadata = {"trigger": "auto", "preTokens": 900, **metadata}
        return self.system(
            "compact_boundary", parent=None, logicalParentUuid=self.last, compactMetadata=metadata
        )

    def summary(self, words: str, **fields: Any) -> str:
        return self.user(words, isCompactSummary=True, isVisibleInTranscriptOnly=True, **fields)

    def queue(self, operation: str, **fields: Any) -> None:
        self.loose("queue-operation", operation=operation, **fields)

    def write(self, folder: Path) -> Path:
        return json_lines(folder / "session.jsonl", *self.lines)

    def read(self, folder: Path) -> Built:
        return read_one(FORMAT, self.write(folder))
