"""Sessions of Factory Droid: a header, then Anthropic messages and compactions, a line for each.

Droid takes the lines in their order. An automatic compaction names the last message that its
summary stands for; ``/compress`` opens a new session, whose first line after the header is the
compaction of the session that the header names as its parent.
"""

from typing import Any, ClassVar

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import RECORDED
from compression_eval.conversations.fields import identifier, mapping_of, origin, text_of
from compression_eval.conversations.readers.anthropic import AssistantTurn, user_drafts
from compression_eval.conversations.readers.base import (
    SUMMARY_STANDS_IN,
    Entry,
    Reader,
    Table,
    leave_out_thinking,
    line_format,
    message_name,
    summary_draft,
)
from compression_eval.conversations.sources import SourceFile


class _Session(Reader):
    """A session that is being read."""

    format = "droid"
    unknown = "a kind of line that Droid is not known to write"
    expected = "expected lines of type session_start, message or compaction_state"

    def __init__(self) -> None:
        super().__init__("Factory Droid session")
        self._ends: dict[str, int] = {}
        """How many drafts there were once a message had been taken, by its id."""

    def name_of(self, entry: Any) -> str:
        """Return the type, of a message with its role."""
        return message_name(entry)

    def head(self, line: Line, entry: Entry) -> None:
        line.skip("the header of the session")
        self.conversation.session = self.conversation.session or text_of(entry, "id")
        if text_of(entry, "parent"):
            self.conversation.caveats.append("the session goes on from another one")

    def message(self, line: Line, entry: Entry) -> None:
        message = mapping_of(entry, "message")
        role, content = text_of(message, "role"), message.get("content")
        visibility = text_of(message, "visibility")
        if role not in ("user", "assistant") or not isinstance(content, str | list):
            line.is_unknown("expected a message with the role user or assistant and content")
            return
        if visibility == "user_only":
            line.skip("shown to the user, not to the model")
            return
        if text_of(message, "chatCompletionReasoningContent"):
            leave_out_thinking(line)
        if role == "assistant":
            self.models[origin(text_of(message, "modelId").removeprefix("custom:"))] += 1
            self.conversation.drafts.extend(AssistantTurn().add(content, line))
        else:
            drafts = user_drafts(content, line)
            for draft in drafts:
                draft.injected = draft.role == "user" and visibility == "llm_only"
            self.conversation.say(line, *drafts)
        self._ends[identifier(entry, "id")] = len(self.conversation.drafts)

    def compaction(self, line: Line, entry: Entry) -> None:
        """Take a compaction, or a summary of what is not in the file."""
        summary, drafts = text_of(entry, "summaryText"), self.conversation.drafts
        if text_of(entry, "summaryKind") not in ("", "llm_summary"):
            line.skip("the history as one text for another provider, not a summary of it")
            return
        made = summary_draft(summary)
        made.content.append(text_of(entry, "systemInfoText"))
        if summary and not drafts:
            self.conversation.caveats.append(SUMMARY_STANDS_IN)
            self.conversation.say(line, made)
            return
        line.skip(RECORDED)
        anchor = self._ends.get(identifier(entry, "anchorMessage", "id"))
        self.conversation.compact(summary, None if anchor is None else [made, *drafts[anchor:]])

    kinds: ClassVar[Table] = {
        "session_start": head,
        "message": message,
        "compaction_state": compaction,
        "todo_state": "the agent's list of tasks, which its calls hold",
        "agent_turn_outcome": "how a turn ended",
        "session_end": "the end of the session",
    }


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
        return text_of(value, "message", "role") in ("user", "assistant")
    key = {"session_start": "id", "compaction_state": "summaryText"}.get(kind)
    return key is not None and bool(text_of(value, key))


FORMAT = line_format(_Session, "Factory Droid sessions (JSONL)", _recognise)
