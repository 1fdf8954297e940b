"""What several readers need that says nothing about a format."""

from collections import deque
from collections.abc import Hashable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from compression_eval.conversations.arguments import json_object
from compression_eval.conversations.drafts import Conversation, Draft
from compression_eval.conversations.fields import text_of
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.markers import NO_PROMPT

NO_SYSTEM_PROMPT = "the file does not hold the system prompt"
NO_TOOLS = "the file does not hold the definitions of the tools"
TEXT_ACTIONS = (
    "the agent's actions are part of its text, not tool calls: files that it touched are not "
    "known from calls"
)
"""Calls made of such text would need ids that nobody gave, and would not be what the agent saw."""

SUMMARY_STANDS_IN = "earlier messages are not in the file: a summary stands in their place"
REPLACED_BYTES = "bytes that are not UTF-8 were replaced"

_SHOWN_CHARACTERS = 60
_THINKING_TAGS = ("think", "thinking")


def entered(ledger: Ledger, value: Value, kind: str) -> Line:
    """Enter a line of a file; one without a value is settled."""
    line = ledger.enter(value.place, "unreadable" if value.problem else kind)
    if value.problem:
        line.skip(value.problem)
    if value.replaced:
        line.leave_out("bytes", REPLACED_BYTES)
    return line


def json_document(source: SourceFile, expected: str) -> Any:
    """Return a file's JSON document.

    Raises:
        DataError: It is not one.
    """
    if source.document is None:
        raise DataError(f"{source.path}: expected {expected}, found no complete JSON document")
    return source.document


def identifier(value: Any, key: str) -> str:
    """Return a field that names something, a text or a whole number, as text; empty if none."""
    found = value.get(key) if isinstance(value, dict) else None
    if isinstance(found, str):
        return found
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else ""


def origin(*parts: str) -> str:
    """Return names and versions that a file gives itself, fit for one line."""
    text = " ".join(part for part in parts if part)[:_SHOWN_CHARACTERS]
    return "".join(character if character.isprintable() else " " for character in text).strip()


def without_thinking(text: str, line: Line) -> str:
    """Leave out the thinking that some models write before their answer, between tags."""
    stripped = text.lstrip()
    for tag in _THINKING_TAGS:
        end = stripped.find(f"</{tag}>") if stripped.startswith(f"<{tag}>") else -1
        if end >= 0:
            leave_out_thinking(line)
            return stripped[end + len(tag) + 3 :].lstrip()
    return text


def leave_out_thinking(line: Line) -> None:
    """Say, once for a line, that its thinking was not carried over."""
    part = ("thinking", "thinking is left out")
    if part not in line.left_out:
        line.leave_out(*part)


def say_injected(conversation: Conversation, writer: str) -> None:
    """Say how many messages in the user's name another one wrote; none if there is none."""
    if count := sum(draft.injected for draft in conversation.drafts):
        conversation.caveats.append(
            f"{count} messages in the user's name were written by {writer}, not by the user"
        )


def marked(marker: str, /, **values: str) -> str:
    """Return a text of `markers.yaml` with what it stands around."""
    return _markers()[marker].format(**values).rstrip()


@cache
def _markers() -> dict[str, str]:
    import yaml

    text = (files(__package__) / "markers.yaml").read_text(encoding="utf-8")
    loaded: dict[str, str] = yaml.safe_load(text)
    return loaded


def give_task(conversation: Conversation, arguments: str = "") -> None:
    """Open a conversation whose file does not hold the prompt, if it has no user message.

    Args:
        conversation: Its account says that no line stands for the message.
        arguments: Of the call that started a sub-agent: its prompt is the task.
    """
    drafts = conversation.drafts
    if not drafts or any(draft.role == "user" for draft in drafts):
        return
    fields = json_object(arguments) if arguments else {}
    prompt = text_of(fields, "prompt") or text_of(fields, "task")
    if not prompt:
        conversation.caveats.append(
            "the file does not hold the prompt; a note stands in its place as the user's message"
        )
    opening = Draft("user", [prompt or NO_PROMPT])
    conversation.ledger.added[opening] = (
        "the task that the caller gave" if prompt else "the file holds no prompt"
    )
    drafts.insert(sum(draft.role == "system" for draft in drafts[:1]), opening)


class KnownDrafts:
    """Messages of a conversation, to tell whether another one repeats one of them."""

    def __init__(self, drafts: Iterable[Draft]) -> None:
        self._waiting: dict[Hashable, deque[Draft]] = {}
        for draft in drafts:
            self._waiting.setdefault(_said(draft), deque()).append(draft)

    def match(self, draft: Draft) -> Draft | None:
        """Return a message that says the same, each once; None if there is none left."""
        waiting = self._waiting.get(_said(draft))
        return waiting.popleft() if waiting else None


def _said(draft: Draft) -> Hashable:
    return draft.role, tuple(draft.content), tuple(draft.calls), draft.call_id
