"""Pi sessions: a JSON value per line, linear (version 1) or a tree (versions 2 and 3).

What the model saw is the path from the first entry to the last one in the file. Entries next to
it are on branches that the user left, so nothing of them is evidence.
"""

from typing import ClassVar

from compression_eval.conversations.drafts import Content, Conversation, Draft, Line
from compression_eval.conversations.fields import Json, entries, origin
from compression_eval.conversations.readers.base import (
    LEFT_BRANCH,
    Node,
    Reader,
    Table,
    command_text,
    line_format,
    summary_draft,
    without_thinking,
)
from compression_eval.conversations.readers.content import content_of
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.models import NOT_RUN


class _Session(Reader):
    format = "pi"
    subtype = ("message", "role")

    def __init__(self) -> None:
        super().__init__()
        self._header = Json()
        self._numbered: list[Node | None] = []
        """One for every value in the file, as old compactions count them."""
        self._by_id: dict[str, Node] = {}
        self._last: Node | None = None

    def feed(self, value: Value) -> None:
        """Put an entry into the tree, and settle its line as if it were on the path."""
        if not value.problem:
            self._numbered.append(None)
        super().feed(value)

    def take(self, line: Line, entry: Json) -> None:
        if entry.text("type") != "session":
            parent, name = self._last, entry.name("parentId")
            if name and name not in self._by_id:
                self.caveat("an entry follows one that is not in the file")
            elif "parentId" in entry:  # without ids an entry follows the one before
                parent = self._by_id.get(name)
            self._numbered[-1] = self._last = Node(line, entry, parent)
            if name := entry.name("id"):
                self._by_id[name] = self._last
        super().take(line, entry)

    def head(self, _: Line, entry: Json) -> None:
        self._header = self._header or entry

    def message(self, line: Line, entry: Json) -> None:
        message = entry.entry("message")
        self._say(_draft(message, line))
        if message.text("role") == "assistant" and not _failed(entry):
            names = (message.text("provider"), message.text("model"))
            self.models[origin("/".join(names) if all(names) else names[1])] += 1

    def branch(self, line: Line, entry: Json) -> None:
        self._say(_draft(Json({**entry, "role": "branchSummary"}), line))

    def custom(self, line: Line, entry: Json) -> None:
        """Take what an extension said in the user's name."""
        self._say(_draft(Json({**entry, "role": "custom"}), line))

    def _say(self, draft: Draft | None) -> None:
        if self._last is not None:
            self._last.draft = draft

    def compaction(self, line: Line, entry: Json) -> None:
        """Take a compaction; what it left is known once the path is."""
        if "details" in entry:
            line.leave_out("details", "lists that the agent kept with the summary")

    kinds: ClassVar[Table] = {
        "session": head,
        "message": message,
        "branch_summary": branch,
        "custom_message": custom,
        "compaction": compaction,
        "model_change": "a change of the model",
        "thinking_level_change": "a setting",
        "custom": "state of an extension, which the model does not see",
        "label": "a bookmark of the user",
        "session_info": "the name of the session",
    }

    def finish(self) -> Conversation:
        """Return the conversation on the path to the last entry."""
        path = self._last.path if self._last else []
        super().finish()
        self.model = self.model or origin(self._header.text("modelId"))
        self.origin = origin("Pi session", f"version {self._header.count('version') or 1}")
        self.session = self._header.text("id")
        if "parentSession" in self._header or "branchedFrom" in self._header:
            self.caveat("the session was forked from another one")
        for beside in {node for node in self._numbered if node is not None} - set(path):
            if beside.draft is not None:
                beside.line.leave(LEFT_BRANCH)
            elif not beside.line.unknown:
                beside.line.skip(LEFT_BRANCH)
        answered = {node.draft.call_id for node in path if node.draft}
        for position, node in enumerate(path):
            if node.draft is not None:
                self.say(node.line, node.draft)
                for call in node.draft.calls if _failed(node.entry) else ():
                    if call.id not in answered:
                        result = Draft("tool", [NOT_RUN], call_id=call.id)
                        self.drafts.append(result)
                        self.added.add(result)
            elif node.entry.text("type") == "compaction":
                self._compact(node.entry, path[:position])
        return self

    def _compact(self, entry: Json, before: list[Node]) -> None:
        summary, number = entry.text("summary"), entry.count("firstKeptEntryIndex")
        first = self._by_id.get(entry.name("firstKeptEntryId"))
        if number is not None:  # as old versions count
            first = self._numbered[number] if number < len(self._numbered) else None
        start = before.index(first) if first in before else len(before)
        if first is None:
            self.caveat("a compaction names a first kept entry that is not in the file")
        kept = [known.draft for known in before[start:] if known.draft is not None]
        self.compact(
            summary,
            [summary_draft(summary), *kept],
            trigger="extension" if entry.at("fromHook") is True else "",
            tokens_before=entry.count("tokensBefore"),
        )


def _failed(entry: Json) -> bool:
    """Return whether the calls of a turn were not carried out."""
    return entry.text("message", "stopReason") in ("error", "aborted")


def _content(message: Json, line: Line) -> Content:
    return content_of(message.at("content"), line, ignored=("toolCall",))


def _draft(message: Json, line: Line) -> Draft | None:
    """Return the message that the model saw; None if it saw none, then the line is settled."""
    match message.text("role"):
        case "user" | "custom" | "hookMessage" as role:
            return Draft("user", _content(message, line), injected=role != "user")
        case "assistant":
            draft = Draft("assistant", without_thinking(_content(message, line), line))
            for block in message.entries("content"):
                if block.text("type") == "toolCall":
                    draft.call(block.name("id"), block.text("name"), block.at("arguments"))
            if message.text("errorMessage"):
                line.leave_out("error message", "it was shown to the user, not to the model")
            return draft
        case "toolResult":
            return Draft("tool", _content(message, line), call_id=message.name("toolCallId"))
        case "bashExecution" if message.at("excludeFromContext") is True:
            line.skip("a command that the user ran without showing it to the model")
        case "bashExecution":
            texts = message.text("command"), message.text("output")
            return Draft("user", [command_text(*texts, message.at("exitCode"))])
        case "branchSummary" | "compactionSummary" as role:
            marker = "branch_summary" if role == "branchSummary" else "conversation_summary"
            if summary := message.text("summary"):
                return summary_draft(summary, marker)
            line.is_unknown("expected a summary")
        case _:
            line.is_unknown("a message of a role that Pi does not have")
    return None


def _recognise(source: SourceFile) -> str | None:
    """Claim a file by a line that only Pi writes, unless most messages are another agent's.

    Other agents write lines of type message, too, with Anthropic's blocks in them.
    """
    seen: str | None = None
    foreign = own = 0
    for value in entries(source.head):
        kind, message = value.text("type"), value.entry("message")
        if kind == "session" and {"id", "cwd", "timestamp"} <= value.keys():
            seen = seen or "a line of type session with id, cwd and timestamp"
        elif kind == "message":
            blocks = {block.text("type") for block in message.entries("content")}
            foreign += bool(blocks & {"tool_use", "tool_result"})
            role = message.text("role")
            answer = role == "assistant" and ("stopReason" in message or "toolCall" in blocks)
            if answer or (role == "toolResult" and "toolCallId" in message):
                own += 1
                seen = seen or "messages with what only Pi writes, as stopReason and toolCallId"
    return None if foreign > own else seen


FORMAT = line_format(_Session, _recognise, "lines of type session or message")
