"""Sessions of Factory Droid: a header, then Anthropic messages and compactions, a line for each.

Droid takes the lines in their order. An automatic compaction names the last message that its
summary stands for; ``/compress`` opens a new session, whose first line after the header is the
compaction of the session that the header names as its parent.
"""

from typing import ClassVar

from compression_eval.conversations.drafts import Line
from compression_eval.conversations.fields import Json, entries, origin
from compression_eval.conversations.readers.anthropic import AssistantTurn, user_drafts
from compression_eval.conversations.readers.base import Reader, Table, line_format, summary_draft
from compression_eval.conversations.sources import SourceFile


class _Session(Reader):
    format = "droid"
    subtype = ("message", "role")

    def __init__(self) -> None:
        super().__init__("Factory Droid session")
        self._ends: dict[str, int] = {}
        """How many drafts there were once a message had been taken, by its id."""

    def head(self, _: Line, entry: Json) -> None:
        self.session = self.session or entry.text("id")
        if entry.text("parent"):
            self.caveat("the session continues from another one")

    def message(self, line: Line, entry: Json) -> None:
        message = entry.entry("message")
        role, content = message.text("role"), message.at("content")
        visibility = message.text("visibility")
        if role not in ("user", "assistant") or not isinstance(content, str | list):
            line.is_unknown("expected a message with the role user or assistant and content")
            return
        if visibility == "user_only":
            line.skip("shown to the user, not to the model")
            return
        if message.text("chatCompletionReasoningContent"):
            line.leave_out_thinking()
        if role == "assistant":
            self.models[origin(message.text("modelId").removeprefix("custom:"))] += 1
            self.drafts.extend(AssistantTurn().add(content, line))
        else:
            drafts = user_drafts(content, line)
            for draft in drafts:
                draft.injected = draft.role == "user" and visibility == "llm_only"
            self.say(line, *drafts)
        self._ends[entry.name("id")] = len(self.drafts)

    def compaction(self, line: Line, entry: Json) -> None:
        """Take a compaction, or a summary of what is not in the file."""
        summary = entry.text("summaryText")
        if entry.text("summaryKind") not in ("", "llm_summary"):
            line.skip("the history as one text for another provider, not a summary of it")
            return
        made = summary_draft(summary)
        made.content.append(entry.text("systemInfoText"))
        anchor = self._ends.get(entry.name("anchorMessage", "id"))
        state = None if anchor is None else [made, *self.drafts[anchor:]]
        self.open_or_compact(line, made, summary, state)

    kinds: ClassVar[Table] = {
        "session_start": head,
        "message": message,
        "compaction_state": compaction,
        "todo_state": "the agent's list of tasks, which its calls hold",
        "agent_turn_outcome": "how a turn ended",
        "session_end": "the end of the session",
    }


def _recognise(source: SourceFile) -> str | None:
    values = entries(source.head)
    started = any(each.text("type") == "session_start" and each.text("id") for each in values)
    if started and any(each.text("message", "role") in ("user", "assistant") for each in values):
        return "lines of type session_start and message"
    compacted = any(
        each.text("type") == "compaction_state" and each.text("summaryText") for each in values
    )
    return "a line of type compaction_state with a summaryText" if compacted else None


FORMAT = line_format(
    _Session, _recognise, "lines of type session_start, message or compaction_state"
)
