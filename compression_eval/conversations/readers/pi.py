"""Pi sessions: a JSON value per line, linear (version 1) or a tree (versions 2 and 3).

What the model saw is the path from the first entry to the last one in the file. Entries beside
it are on branches that the user left, so nothing of them is evidence.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import count_of, label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.pi_messages import (
    FAILED,
    content_of,
    draft_of,
    summary_draft,
)
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    entered,
    identifier,
    origin,
)
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.markers import NOT_RUN

_SKIPPED = {
    "model_change": "a change of the model",
    "thinking_level_change": "a setting",
    "custom": "state of an extension, which the model does not see",
    "label": "a bookmark of the user",
    "session_info": "the name of the session",
}
_LEFT = "on a branch that the user left"
_FOREIGN_BLOCKS = {"tool_use", "tool_result"}


@dataclass(eq=False)
class _Node:
    """An entry of the tree."""

    line: Line
    parent: "_Node | None"
    entry: dict[str, Any]
    draft: Draft | None = None


@dataclass
class _Session:
    """A session that is being read."""

    ledger: Ledger = field(default_factory=Ledger)
    header: dict[str, Any] = field(default_factory=dict)
    numbered: list[_Node | None] = field(default_factory=list)
    """One for every value in the file, as old compactions count them."""
    by_id: dict[str, _Node] = field(default_factory=dict)
    last: _Node | None = None
    models: Counter[str] = field(default_factory=Counter)
    caveats: list[str] = field(default_factory=list)
    recognised: bool = False

    def feed(self, value: Value) -> None:
        """Enter a line and, if it is an entry, put it into the tree."""
        line = entered(self.ledger, value, _kind(value.value))
        if value.problem:
            return
        self.numbered.append(None)
        if not isinstance(value.value, dict):
            line.is_unknown("expected a JSON object")
            return
        entry = value.value
        if text_of(entry, "type") == "session":
            self.recognised = True
            self.header = self.header or entry
            line.skip("the header of the session")
            return
        node = _Node(line, self._parent(entry), entry)
        self.numbered[-1] = self.last = node
        if name := identifier(entry, "id"):
            self.by_id[name] = node
        self._take(node)

    def _parent(self, entry: dict[str, Any]) -> _Node | None:
        """Return the entry that one follows: the one it names, or, without ids, the one before."""
        if "parentId" not in entry:
            return self.last
        name = identifier(entry, "parentId")
        if not name:
            return None
        if name not in self.by_id:
            self.caveats.append("an entry follows one that is not in the file")
            return self.last
        return self.by_id[name]

    def _take(self, node: _Node) -> None:
        kind, line, entry = text_of(node.entry, "type"), node.line, node.entry
        message = entry.get("message")
        if kind == "message" and isinstance(message, dict):
            self.recognised = True
            node.draft = draft_of(message, line)
            if text_of(message, "role") == "assistant" and not _failed(entry):
                self.models[origin(_model(message))] += 1
        elif kind == "message":
            line.is_unknown("expected an object in its field message")
        elif kind == "branch_summary":
            node.draft = draft_of({**entry, "role": "branchSummary"}, line)
        elif kind == "custom_message":
            node.draft = Draft("user", content_of(entry.get("content"), line), injected=True)
        elif kind == "compaction":
            line.skip("a compaction, recorded beside the messages")
            if "details" in entry:
                line.leave_out("details", "lists that the agent kept beside the summary")
        elif kind in _SKIPPED:
            line.skip(_SKIPPED[kind])
        else:
            line.is_unknown("a kind of entry that Pi is not known to write")

    def finish(self) -> Conversation:
        """Return the conversation on the path to the last entry."""
        path: list[_Node] = []
        node = self.last
        while node is not None:
            path.append(node)
            node = node.parent
        path.reverse()
        model = self.models.most_common(1)
        conversation = Conversation(
            "pi",
            origin("Pi session", f"version {count_of(self.header, 'version') or 1}"),
            text_of(self.header, "id"),
            self.ledger,
            model=model[0][0] if model else origin(text_of(self.header, "modelId")),
            caveats=[NO_SYSTEM_PROMPT, NO_TOOLS],
        )
        if "parentSession" in self.header or "branchedFrom" in self.header:
            conversation.caveats.append("the session was forked from another one")
        self._settle(path, conversation)
        conversation.caveats.extend(dict.fromkeys(self.caveats))
        return conversation

    def _settle(self, path: list[_Node], conversation: Conversation) -> None:
        on_path = set(map(id, path))
        for node in self.numbered:
            if node is not None and id(node) not in on_path and not node.line.unknown:
                node.line.skip(_LEFT)
        answered = {node.draft.call_id for node in path if node.draft and node.draft.call_id}
        for position, node in enumerate(path):
            if node.draft is not None:
                conversation.drafts.append(node.line.became(node.draft))
                if _failed(node.entry):
                    self._answer(node.draft, answered, conversation)
            elif text_of(node.entry, "type") == "compaction":
                conversation.compactions.append(self._compaction(node, path[:position]))

    def _answer(self, turn: Draft, answered: set[str], conversation: Conversation) -> None:
        """Say of the calls of a failed turn that they were not carried out."""
        for call in turn.calls:
            if call.id not in answered:
                result = Draft("tool", [NOT_RUN], call_id=call.id)
                conversation.drafts.append(result)
                self.ledger.added[result] = "the turn was aborted or failed before the call ran"

    def _compaction(self, node: _Node, before: list[_Node]) -> Compaction:
        entry, summary = node.entry, text_of(node.entry, "summary")
        first = self._first_kept(entry)
        start = next((at for at, known in enumerate(before) if known is first), len(before))
        if start == len(before) and first is not node:
            self.caveats.append("a compaction names a first kept entry that is not before it")
        drafts = [known.draft for known in before if known.draft is not None]
        kept = [known.draft for known in before[start:] if known.draft is not None]
        return Compaction(
            after=drafts[-1] if drafts else None,
            kind="summary" if summary else "opaque",
            trigger="extension" if entry.get("fromHook") is True else "",
            summary=summary or None,
            tokens_before=count_of(entry, "tokensBefore"),
            state=[summary_draft(summary, "conversation_summary"), *kept] if summary else None,
        )

    def _first_kept(self, entry: dict[str, Any]) -> _Node | None:
        """Return the entry that a compaction kept the conversation from."""
        number = count_of(entry, "firstKeptEntryIndex")
        if number is not None:
            return self.numbered[number] if number < len(self.numbered) else None
        return self.by_id.get(identifier(entry, "firstKeptEntryId"))


def _kind(value: Any) -> str:
    kind = label(text_of(value, "type"))
    return f"message:{label(_role(value))}" if kind == "message" else kind


def _role(value: Any) -> str:
    return text_of(mapping_of(value, "message"), "role")


def _failed(entry: dict[str, Any]) -> bool:
    return text_of(mapping_of(entry, "message"), "stopReason") in FAILED


def _model(message: dict[str, Any]) -> str:
    provider, model = text_of(message, "provider"), text_of(message, "model")
    return f"{provider}/{model}" if provider and model else model


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
            if _is_own(message, blocks):
                seen = seen or "messages with what only Pi writes, as stopReason and toolCallId"
    return seen


def _is_own(message: dict[str, Any], blocks: set[str]) -> bool:
    role = text_of(message, "role")
    if role == "assistant":
        return "stopReason" in message or "toolCall" in blocks
    return role == "toolResult" and "toolCallId" in message


def _read(source: SourceFile) -> Iterator[Conversation]:
    session = _Session()
    for value in source.values():
        session.feed(value)
    if not session.recognised:
        raise DataError(f"{source.path}: expected lines of type session or message, found none")
    yield session.finish()


FORMAT = Format(name="pi", title="Pi sessions (JSONL)", recognise=_recognise, read=_read)
