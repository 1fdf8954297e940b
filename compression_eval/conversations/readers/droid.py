"""Sessions of Factory Droid: a header, then Anthropic messages and compactions, a line for each.

Droid takes the lines in their order. An automatic compaction names the last message that its
summary stands for; ``/compress`` opens a new session, whose first line after the header is the
compaction of the session that the header names as its parent.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import label, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.anthropic_blocks import AssistantTurn, user_drafts
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    SUMMARY_STANDS_IN,
    entered,
    identifier,
    leave_out_thinking,
    marked,
    origin,
)
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError

_SKIPPED = {
    "todo_state": "the agent's list of tasks, which its calls hold",
    "agent_turn_outcome": "how a turn ended",
    "session_end": "the end of the session",
}


class _Session:
    """A session that is being read."""

    def __init__(self) -> None:
        self.recognised = False
        self._conversation = Conversation(
            "droid", "Factory Droid session", "", Ledger(), caveats=[NO_SYSTEM_PROMPT, NO_TOOLS]
        )
        self._models: Counter[str] = Counter()
        self._ends: dict[str, int] = {}
        """How many drafts there were once a message had been taken, by its id."""

    def feed(self, value: Value) -> None:
        """Enter a line and take what it holds."""
        line = entered(self._conversation.ledger, value, _kind(value.value))
        if value.problem:
            return
        kind, entry = text_of(value.value, "type"), value.value
        if kind == "session_start":
            self._head(entry, line)
        elif kind == "message":
            self._message(entry, line)
        elif kind == "compaction_state":
            self._compaction(entry, line)
        elif kind in _SKIPPED:
            line.skip(_SKIPPED[kind])
        else:
            line.is_unknown("a kind of line that Droid is not known to write")

    def _head(self, entry: dict[str, Any], line: Line) -> None:
        self.recognised = True
        line.skip("the header of the session")
        self._conversation.session = self._conversation.session or text_of(entry, "id")
        if text_of(entry, "parent"):
            self._conversation.caveats.append("the session goes on from another one")

    def _message(self, entry: dict[str, Any], line: Line) -> None:
        message = mapping_of(entry, "message")
        role, content = text_of(message, "role"), message.get("content")
        if role not in ("user", "assistant") or not isinstance(content, str | list):
            line.is_unknown("expected a message with the role user or assistant and content")
            return
        self.recognised = True
        visibility = text_of(message, "visibility")
        if visibility == "user_only":
            line.skip("shown to the user, not to the model")
            return
        if text_of(message, "chatCompletionReasoningContent"):
            leave_out_thinking(line)
        drafts = self._conversation.drafts
        try:
            if role == "assistant":
                self._models[origin(text_of(message, "modelId").removeprefix("custom:"))] += 1
                drafts.extend(AssistantTurn().add(content, line))
            else:
                for draft in user_drafts(content, line):
                    draft.injected = draft.role == "user" and visibility == "llm_only"
                    drafts.append(line.became(draft))
        except RecursionError:
            line.is_unknown("nested too deeply")
        self._ends[identifier(entry, "id")] = len(drafts)

    def _compaction(self, entry: dict[str, Any], line: Line) -> None:
        self.recognised = True
        summary, drafts = text_of(entry, "summaryText"), self._conversation.drafts
        if text_of(entry, "summaryKind") not in ("", "llm_summary"):
            line.skip("the history as one text for another provider, not a summary of it")
            return
        made = Draft("user", [marked("conversation_summary", text=summary)], injected=True)
        made.content.append(text_of(entry, "systemInfoText"))
        if summary and not drafts:
            self._conversation.caveats.append(SUMMARY_STANDS_IN)
            drafts.append(line.became(made))
            return
        line.skip("a compaction, recorded beside the messages")
        anchor = identifier(mapping_of(entry, "anchorMessage"), "id")
        state = [made, *drafts[self._ends[anchor] :]] if anchor in self._ends else None
        self._conversation.compactions.append(
            Compaction(
                after=drafts[-1] if drafts else None,
                kind="summary" if summary else "opaque",
                summary=summary or None,
                state=state if summary else None,
            )
        )

    def finish(self) -> Conversation:
        """Return the conversation."""
        del self._models[""]
        if self._models:
            self._conversation.model = self._models.most_common(1)[0][0]
        return self._conversation


def _kind(value: Any) -> str:
    kind, message = label(text_of(value, "type")), mapping_of(value, "message")
    return f"message:{label(text_of(message, 'role'))}" if kind == "message" else kind


def _recognise(source: SourceFile) -> str | None:
    kinds = {text_of(value, "type") for value in source.head if _is_own(value)}
    if {"session_start", "message"} <= kinds:
        return "lines of type session_start and message"
    if "compaction_state" in kinds:
        return "a line of type compaction_state with a summaryText"
    return None


def _is_own(value: Any) -> bool:
    kind = text_of(value, "type")
    if kind == "message":
        return text_of(mapping_of(value, "message"), "role") in ("user", "assistant")
    key = {"session_start": "id", "compaction_state": "summaryText"}.get(kind)
    return key is not None and bool(text_of(value, key))


def _read(source: SourceFile) -> Iterator[Conversation]:
    session = _Session()
    for value in source.values():
        session.feed(value)
    if not session.recognised:
        raise DataError(
            f"{source.path}: expected lines of type session_start, message or compaction_state"
        )
    yield session.finish()


FORMAT = Format(
    name="droid", title="Factory Droid sessions (JSONL)", recognise=_recognise, read=_read
)
