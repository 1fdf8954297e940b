"""Pi sessions: a JSON value per line, linear (version 1) or a tree (versions 2 and 3).

What the model saw is the path from the first entry to the last one in the file. Entries beside
it are on branches that the user left, so nothing of them is evidence.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import RECORDED, Conversation, Draft, DraftCall
from compression_eval.conversations.fields import (
    as_text,
    count_of,
    identifier,
    list_of,
    mapping_of,
    origin,
    text_of,
)
from compression_eval.conversations.readers.base import (
    LEFT_BRANCH,
    Entry,
    Reader,
    Table,
    command_text,
    line_format,
    mcp_content,
    message_name,
    summary_draft,
    without_thinking,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.markers import NOT_RUN

_FAILED = ("error", "aborted")
"""Stop reasons of turns whose calls were not carried out."""
_FOREIGN_BLOCKS = {"tool_use", "tool_result"}


@dataclass(eq=False)
class _Node:
    """An entry of the tree."""

    line: Line
    parent: "_Node | None"
    entry: Entry
    draft: Draft | None = None

    @property
    def failed(self) -> bool:
        return text_of(self.entry, "message", "stopReason") in _FAILED


class _Session(Reader):
    """A session that is being read."""

    format = "pi"
    unknown = "a kind of entry that Pi is not known to write"
    expected = "expected lines of type session or message, found none"

    def __init__(self) -> None:
        super().__init__()
        self._header: Entry = {}
        self._numbered: list[_Node | None] = []
        """One for every value in the file, as old compactions count them."""
        self._by_id: dict[str, _Node] = {}
        self._last: _Node | None = None
        self._caveats: list[str] = []

    def name_of(self, entry: Any) -> str:
        """Return the type, of a message with its role."""
        return message_name(entry)

    def take(self, line: Line, entry: Any) -> None:
        """Put an entry into the tree, and settle its line as if it were on the path."""
        self._numbered.append(None)
        if not isinstance(entry, dict):
            line.is_unknown("expected a JSON object")
            return
        if text_of(entry, "type") != "session":
            node = _Node(line, self._parent(entry), entry)
            self._numbered[-1] = self._last = node
            if name := identifier(entry, "id"):
                self._by_id[name] = node
        super().take(line, entry)

    def _parent(self, entry: Entry) -> _Node | None:
        """Return the entry that one follows: the one it names, or, without ids, the one before."""
        if "parentId" not in entry:
            return self._last
        name = identifier(entry, "parentId")
        if name and name not in self._by_id:
            self._caveats.append("an entry follows one that is not in the file")
            return self._last
        return self._by_id.get(name)

    def head(self, line: Line, entry: Entry) -> None:
        self._header = self._header or entry
        line.skip("the header of the session")

    def message(self, line: Line, entry: Entry) -> None:
        message = entry.get("message")
        if not isinstance(message, dict):
            line.is_unknown("expected an object in its field message")
            return
        self._said(_draft(message, line))
        if self._last and text_of(message, "role") == "assistant" and not self._last.failed:
            provider, model = text_of(message, "provider"), text_of(message, "model")
            self.models[origin(f"{provider}/{model}" if provider and model else model)] += 1

    def branch(self, line: Line, entry: Entry) -> None:
        self._said(_draft({**entry, "role": "branchSummary"}, line))

    def custom(self, line: Line, entry: Entry) -> None:
        """Take what an extension said in the user's name."""
        self._said(Draft("user", _content(entry, line), injected=True))

    def _said(self, draft: Draft | None) -> None:
        if self._last is not None:
            self._last.draft = draft

    def compaction(self, line: Line, entry: Entry) -> None:
        """Take a compaction; what it left is known once the path is."""
        line.skip(RECORDED)
        if "details" in entry:
            line.leave_out("details", "lists that the agent kept beside the summary")

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
        path: list[_Node] = []
        node = self._last
        while node is not None:
            path.append(node)
            node = node.parent
        path.reverse()
        on_path = set(path)
        conversation = super().finish()
        conversation.model = conversation.model or origin(text_of(self._header, "modelId"))
        version = count_of(self._header, "version") or 1
        conversation.origin = origin("Pi session", f"version {version}")
        conversation.session = text_of(self._header, "id")
        if "parentSession" in self._header or "branchedFrom" in self._header:
            conversation.caveats.append("the session was forked from another one")
        for beside in self._numbered:
            if beside is not None and beside not in on_path and not beside.line.unknown:
                beside.line.skip(LEFT_BRANCH)
        answered = {node.draft.call_id for node in path if node.draft}
        for position, node in enumerate(path):
            if node.draft is not None:
                conversation.say(node.line, node.draft)
                for call in node.draft.calls if node.failed else ():
                    if call.id not in answered:
                        result = Draft("tool", [NOT_RUN], call_id=call.id)
                        conversation.drafts.append(result)
                        why = "the turn was aborted or failed before the call ran"
                        conversation.ledger.added[result] = why
            elif text_of(node.entry, "type") == "compaction":
                self._compact(node, path[:position])
        conversation.caveats.extend(dict.fromkeys(self._caveats))
        return conversation

    def _compact(self, node: _Node, before: list[_Node]) -> None:
        entry, summary = node.entry, text_of(node.entry, "summary")
        first = self._first_kept(entry)
        start = next((at for at, known in enumerate(before) if known is first), len(before))
        if start == len(before) and first is not node:
            self._caveats.append("a compaction names a first kept entry that is not before it")
        drafts = [known.draft for known in before if known.draft is not None]
        kept = [known.draft for known in before[start:] if known.draft is not None]
        self.conversation.compact(
            summary,
            [summary_draft(summary), *kept],
            after=drafts[-1] if drafts else None,
            trigger="extension" if entry.get("fromHook") is True else "",
            tokens_before=count_of(entry, "tokensBefore"),
        )

    def _first_kept(self, entry: Entry) -> _Node | None:
        """Return the entry that a compaction kept the conversation from."""
        number = count_of(entry, "firstKeptEntryIndex")
        if number is not None:
            return self._numbered[number] if number < len(self._numbered) else None
        return self._by_id.get(identifier(entry, "firstKeptEntryId"))


def _content(message: Entry, line: Line) -> Any:
    return mcp_content(message.get("content"), line, ignored=("toolCall",))


def _draft(message: Entry, line: Line) -> Draft | None:
    """Return the message that the model saw; None if it saw none, then the line is settled."""
    draft: Draft | None = None
    match text_of(message, "role"):
        case "user" | "custom" | "hookMessage" as role:
            draft = Draft("user", _content(message, line), injected=role != "user")
        case "assistant":
            draft = _turn(message, line)
        case "toolResult":
            result = _content(message, line)
            draft = Draft("tool", result, call_id=identifier(message, "toolCallId"))
        case "bashExecution" if message.get("excludeFromContext") is True:
            line.skip("a command that the user ran without showing it to the model")
        case "bashExecution":
            command, output = text_of(message, "command"), text_of(message, "output")
            draft = Draft("user", [command_text(command, output, message.get("exitCode"))])
        case "branchSummary" | "compactionSummary" as role:
            marker = "branch_summary" if role == "branchSummary" else "conversation_summary"
            if summary := text_of(message, "summary"):
                draft = summary_draft(summary, marker)
            else:
                line.is_unknown("expected a summary")
        case _:
            line.is_unknown("a message of a role that Pi does not have")
    return draft


def _turn(message: Entry, line: Line) -> Draft:
    content = without_thinking(_content(message, line), line)
    calls = [
        DraftCall(identifier(block, "id"), text_of(block, "name"), as_text(block.get("arguments")))
        for block in list_of(message, "content")
        if text_of(block, "type") == "toolCall"
    ]
    if text_of(message, "errorMessage"):
        line.leave_out("error message", "it was shown to the user, not to the model")
    return Draft("assistant", content, calls)


def _recognise(source: SourceFile) -> str | None:
    """Claim a file by a line that only Pi writes, unless a message holds another agent's blocks.

    Other agents write lines of type message, too, with Anthropic's blocks in them.
    """
    seen: str | None = None
    for value in source.head:
        kind, message = text_of(value, "type"), mapping_of(value, "message")
        if kind == "session" and {"id", "cwd", "timestamp"} <= value.keys():
            seen = seen or "a line of type session with id, cwd and timestamp"
        elif kind == "message":
            blocks = {text_of(block, "type") for block in list_of(message, "content")}
            if blocks & _FOREIGN_BLOCKS:
                return None
            role = text_of(message, "role")
            answer = role == "assistant" and ("stopReason" in message or "toolCall" in blocks)
            if answer or (role == "toolResult" and "toolCallId" in message):
                seen = seen or "messages with what only Pi writes, as stopReason and toolCallId"
    return seen


FORMAT = line_format(_Session, "Pi sessions (JSONL)", _recognise)
