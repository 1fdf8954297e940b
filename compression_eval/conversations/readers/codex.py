"""Codex rollouts: ``rollout-*.jsonl``, also compressed as ``.jsonl.zst``."""

from collections.abc import Callable, Iterator
from typing import Any

from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.fields import label, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.codex_head import Head
from compression_eval.conversations.readers.codex_turns import Turns
from compression_eval.conversations.readers.responses_items import KINDS, item_kind
from compression_eval.conversations.readers.values import entered
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError

_LINES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")

_PASSED_OVER = {
    "world_state": "a snapshot of the surroundings; what the model saw of it is a message",
    "token_usage_record": "an account of tokens",
    "inter_agent_communication_metadata": "how a message of another agent was handled",
    "rollout_reference": "refers to another rollout",
}


def recognise(source: SourceFile) -> str | None:
    """Return what marks a rollout: wrapped lines, or the head and bare items of early ones."""
    wrapped = {
        value["type"]
        for value in source.head
        if isinstance(value, dict)
        and value.get("type") in _LINES
        and isinstance(value.get("payload"), dict)
    }
    if wrapped:
        seen = ", ".join(kind for kind in _LINES if kind in wrapped)
        return f"lines with type and payload: {seen}"
    if len(source.head) > 1 and _is_early_head(source.head[0]) and _is_bare(source.head[1]):
        return "a head with id, timestamp and instructions, then response items"
    return None


def read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the one thread of a rollout; sub-agents have files of their own.

    Raises:
        DataError: No line is one of a rollout.
    """
    rollout = _Rollout()
    for value in source.values():
        rollout.feed(value)
    if not rollout.recognised:
        kinds = ", ".join(_LINES)
        raise DataError(f"{source.path}: expected lines of a Codex rollout ({kinds}), found none")
    yield rollout.finish()


def _is_early_head(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "type" not in value
        and all(key in value for key in ("id", "timestamp", "instructions"))
    )


def _is_bare(value: Any) -> bool:
    """Return whether a value is a line of an early rollout."""
    return isinstance(value, dict) and (
        text_of(value, "type") in KINDS or value.get("record_type") == "state"
    )


class _Rollout:
    """Sorts the lines of a file to those who know them."""

    def __init__(self) -> None:
        self.recognised = False
        self._conversation = Conversation("codex", "Codex", "", Ledger())
        self._head = Head(self._conversation)
        self._turns = Turns(self._conversation)
        self._takers: dict[str, Callable[[Line, dict[str, Any]], None]] = {
            "session_meta": self._head.session,
            "turn_context": self._head.turn,
            "response_item": self._turns.item,
            "event_msg": self._event,
            "compacted": self._turns.compacted,
            "inter_agent_communication": self._turns.from_agent,
        }

    def feed(self, value: Value) -> None:
        """Enter a line, and take what it holds."""
        kind, payload = _opened(value.value)
        line = entered(self._conversation.ledger, value, _name(kind, payload))
        if value.problem:
            return
        if kind in _PASSED_OVER:
            line.skip(_PASSED_OVER[kind])
        elif kind == "state":
            line.skip("a mark of an early version")
        elif kind not in self._takers:
            line.is_unknown("a kind of line that this reader does not know")
        elif not isinstance(payload, dict):
            line.is_unknown("expected an object as payload")
        else:
            self.recognised = True
            self._takers[kind](line, payload)

    def finish(self) -> Conversation:
        """Return the conversation."""
        self._turns.finish()
        self._head.finish()
        return self._conversation

    def _event(self, line: Line, payload: dict[str, Any]) -> None:
        self._head.event(payload)
        self._turns.event(line, payload)


def _opened(value: Any) -> tuple[str, Any]:
    """Return the kind and payload of a line, in the form of today."""
    if not isinstance(value, dict):
        return "", None
    if _is_early_head(value):
        return "session_meta", value
    if "payload" not in value and _is_bare(value):
        return ("state", value) if "record_type" in value else ("response_item", value)
    return text_of(value, "type"), value.get("payload")


def _name(kind: str, payload: Any) -> str:
    if kind == "response_item":
        return f"response_item:{item_kind(payload)}"
    if kind == "event_msg":
        inner = text_of(payload, "type") or text_of(mapping_of(payload, "msg"), "type")
        return f"event_msg:{label(inner)}"
    return label(kind)


FORMAT = Format(
    name="codex", title="Codex rollout (.jsonl, .jsonl.zst)", recognise=recognise, read=read
)
