"""One message of Hermes, whichever store it comes from."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compression_eval.conversations.drafts import Draft, DraftCall, Image, Role
from compression_eval.conversations.fields import as_text, label, list_of, mapping_of, text_of
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.openai_content import content_of
from compression_eval.conversations.readers.values import leave_out_thinking, without_thinking

ENCODED = "\x00json:"
"""Before content that is a list or an object, where a store only takes text."""

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_REASONING = (
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
)
_REPEATS = ("api_content", "codex_message_items")
_SCRATCHPAD = re.compile(r"\s*<REASONING_SCRATCHPAD>.*?</REASONING_SCRATCHPAD>\s*", re.DOTALL)


@dataclass(eq=False)
class Row:
    """A message as stored; what becomes of it is decided when all are known."""

    line: Line
    draft: Draft
    session: int = 0
    """Which session of the lineage it stands in, counted from 0."""
    undone: bool = False
    """Whether the user took it back."""
    compacted: bool = False
    """Whether the store says that it was summarised away."""
    origin: "Row | None" = None
    """The first row with this message, for a row that repeats it."""

    @property
    def source(self) -> "Row":
        """The first row with this message."""
        return self.origin or self


def message_row(
    value: Mapping[str, Any], place: str, ledger: Ledger, *, session: int = 0
) -> Row | None:
    """Enter a message and return its row; None if it is settled already.

    Args:
        value: The message's fields, as stored or as exported.
        place: Where it stands.
        ledger: Where it is entered.
        session: Which session of the lineage it stands in.
    """
    kind = value.get("role")
    line = ledger.enter(place, f"message:{label(kind)}")
    role = _ROLES.get(kind) if isinstance(kind, str) else None
    if role is None:
        line.is_unknown("expected the role system, user, assistant or tool")
        return None
    draft = Draft(role, _content(value, role, line))
    if role == "assistant":
        draft.calls = _calls(value, line)
    elif role == "tool":
        draft.call_id = text_of(value, "tool_call_id")
    for name in _REASONING:
        if value.get(name):
            leave_out_thinking(line)
    for name in _REPEATS:
        if value.get(name):
            line.leave_out(name, "it repeats the message as it was sent")
    active, compacted = value.get("active", 1), value.get("compacted", 0)
    return Row(line, draft, session, undone=not active and not compacted, compacted=bool(compacted))


def decoded(value: Any) -> Any:
    """Return content as it was before it was stored."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    if isinstance(value, str) and value.startswith(ENCODED):
        try:
            return json.loads(value[len(ENCODED) :])
        except (ValueError, RecursionError):
            return value[len(ENCODED) :]
    return value


def _content(value: Mapping[str, Any], role: Role, line: Line) -> list[str | Image]:
    parts = content_of(decoded(value.get("content")), line)
    if role == "assistant" and parts and isinstance(parts[0], str):
        parts[0] = _without_scratchpad(without_thinking(parts[0], line), line)
    return parts


def _without_scratchpad(text: str, line: Line) -> str:
    found = _SCRATCHPAD.match(text)
    if found is None:
        return text
    leave_out_thinking(line)
    return text[found.end() :]


def _calls(value: Mapping[str, Any], line: Line) -> list[DraftCall]:
    stored = value.get("tool_calls")
    if isinstance(stored, str) and stored:
        try:
            stored = json.loads(stored)
        except (ValueError, RecursionError):
            line.leave_out("tool calls", "they are not JSON")
            return []
    calls: list[DraftCall] = []
    for call in list_of({"calls": stored}, "calls"):
        if not isinstance(call, dict):
            line.leave_out("a tool call", "it is not an object")
            continue
        function = mapping_of(call, "function") or call
        identifier = text_of(call, "id") or text_of(call, "call_id")
        arguments = as_text(function.get("arguments"))
        calls.append(DraftCall(identifier, text_of(function, "name"), arguments))
    return calls


def repeats(copy: Draft, original: Draft) -> bool:
    """Whether a message says the same as an earlier one, as far as a compaction keeps it.

    It may have shortened results and arguments, taken calls out and replaced images by texts.
    """
    if copy.role != original.role:
        return False
    if copy.role == "tool":
        return copy.call_id == original.call_id
    known = {call.id for call in original.calls}
    if not known.issuperset(call.id for call in copy.calls):
        return False
    if known and copy.calls:
        return True
    if any(isinstance(part, Image) for part in original.content):
        texts = [part for part in original.content if isinstance(part, str) and part]
        return bool(texts) and all(text in copy.text for text in texts)
    return copy.text == original.text


def identical(copy: Draft, original: Draft) -> bool:
    """Whether two messages are the same in everything that is carried over."""
    return (copy.role, copy.content, copy.calls, copy.call_id) == (
        original.role,
        original.content,
        original.calls,
        original.call_id,
    )
