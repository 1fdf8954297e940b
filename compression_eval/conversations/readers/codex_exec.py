"""What ``codex exec --json`` prints, as CI leaves it: threads, turns and items, one to a line.

Prompts are arguments and not printed. An item is shown when it begins, changes and ends; its last
form counts. Commands, tools and searches are calls that hold their own results.
"""

from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Conversation, Draft, DraftCall, Image
from compression_eval.conversations.fields import (
    as_text,
    label,
    list_of,
    mapping_of,
    text_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.pi_messages import content_of
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    entered,
    give_task,
    marked,
)
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.markers import NO_PROMPT

_ITEMS = ("item.started", "item.updated", "item.completed")

_SKIPPED = {
    "thread.started": "the head of the thread",
    "session.created": "the head of the thread",
    "turn.completed": "an account of tokens",
    "turn.failed": "an error that ended the turn",
    "error": "an error that ended the run",
    "item.plan.delta": "a piece of an item that follows whole",
    "request_user_input": "a question to the user",
}

_CALLS = {
    "command_execution": "shell",
    "mcp_tool_call": "",
    "collab_tool_call": "",
    "web_search": "web_search",
    "todo_list": "update_plan",
}
"""The tools of items that are calls; empty where the item names its tool."""

_CHANGES = {"add": "create_file", "update": "edit_file", "delete": "delete_file"}
"""Names for what a patch did to a file: the stream tells that, and not the patch."""


def _given(item: dict[str, Any], kind: str) -> Any:
    """Return the arguments of a call."""
    if kind == "mcp_tool_call":
        return item.get("arguments")
    keys = ("command", "query", "items", "prompt", "receiver_thread_ids")
    return {key: item[key] for key in keys if item.get(key) is not None}


def _returned(item: dict[str, Any], kind: str, line: Line) -> list[str | Image]:
    """Return the result of a call."""
    if kind == "command_execution":
        output, code = text_of(item, "aggregated_output"), item.get("exit_code")
        failed = isinstance(code, int) and code != 0
        return [output, *([marked("exit_code", code=str(code))] if failed else [])]
    if kind == "collab_tool_call":
        return [as_text(mapping_of(item, "agents_states"))]
    content = content_of(list_of(mapping_of(item, "result"), "content"), line)
    return [*content, text_of(mapping_of(item, "error"), "message")]


_WITHOUT_RESULT = ("web_search", "todo_list")
_ENDED = ("completed", "failed", "declined")


class _Thread:
    """The thread of a file: runs that resume it go on with it."""

    def __init__(self) -> None:
        self.recognised = False
        self._conversation = Conversation(
            "codex-exec",
            "codex exec --json",
            "",
            Ledger(),
            caveats=[
                NO_SYSTEM_PROMPT,
                NO_TOOLS,
            ],
        )
        self._items: dict[str, list[Line]] = {}
        """Lines of items that have not ended, by their ids."""
        self._last: dict[str, dict[str, Any]] = {}

    def feed(self, value: Value) -> None:
        """Enter a line and take what it holds."""
        conversation = self._conversation
        event = value.value if isinstance(value.value, dict) else {}
        kind, item = text_of(event, "type"), mapping_of(event, "item")
        name = f"{kind}:{label(_kind(item))}" if kind in _ITEMS else label(kind)
        line = entered(conversation.ledger, value, name)
        if value.problem:
            return
        if kind in ("thread.started", "session.created"):
            found = text_of(event, "thread_id") or text_of(event, "session_id")
            conversation.session = conversation.session or found
        if kind == "turn.started":
            self.recognised = True
            self._settle()
            prompt = line.became(Draft("user", [NO_PROMPT]))
            conversation.drafts.append(prompt)
        elif kind in _SKIPPED:
            line.skip(_SKIPPED[kind])
        elif kind in _ITEMS and item:
            self.recognised = True
            self._item(line, kind, item)
        else:
            line.is_unknown("a kind of line that codex exec is not known to print")

    def finish(self) -> Conversation:
        """Return the conversation."""
        self._settle()
        if any(draft.role == "user" for draft in self._conversation.drafts):
            self._conversation.caveats.append(
                "prompts are not in the file; a note stands in the place of each"
            )
        give_task(self._conversation)
        return self._conversation

    def _item(self, line: Line, kind: str, item: dict[str, Any]) -> None:
        identifier = text_of(item, "id")
        self._items.setdefault(identifier, []).append(line)
        self._last[identifier] = item
        if kind == "item.completed":
            self._take(identifier)

    def _settle(self) -> None:
        """Take the items that never ended."""
        for identifier in list(self._items):
            self._take(identifier)

    def _take(self, identifier: str) -> None:
        *earlier, line = self._items.pop(identifier)
        item = self._last.pop(identifier)
        kind = _kind(item)
        drafts: list[Draft] = []
        if kind in ("agent_message", "assistant_message", "plan"):
            drafts = [Draft("assistant", [text_of(item, "text")])]
        elif kind == "reasoning":
            line.skip("thinking is left out")
        elif kind == "error":
            line.skip("a notice on the screen")
        elif kind == "file_change":
            drafts = self._changed(identifier, item, line)
        elif kind in _CALLS:
            number = len(self._conversation.drafts)
            tool = [text_of(item, "server"), text_of(item, "tool")]
            name = _CALLS[kind] or "__".join(filter(None, tool))
            given = as_text(_given(item, kind))
            call = DraftCall(f"{identifier or 'item'}-{number}", name, given)
            drafts = [Draft("assistant", calls=[call])]
            if text_of(item, "status") in _ENDED and kind not in _WITHOUT_RESULT:
                drafts.append(Draft("tool", _returned(item, kind, line), call_id=call.id))
        else:
            line.is_unknown("a kind of item that codex exec is not known to print")
        for draft in drafts:
            self._conversation.drafts.append(line.became(draft))
        for other in earlier:
            if drafts:
                other.merge(drafts[0])
            else:
                other.skip("an earlier form of an item")

    def _changed(self, identifier: str, item: dict[str, Any], line: Line) -> list[Draft]:
        """Return a call for each file of a patch, with the patch's outcome as its result."""
        line.leave_out("patch", "the stream names the files, not what was changed in them")
        turn, results = Draft("assistant"), []
        status = text_of(item, "status")
        for number, change in enumerate(list_of(item, "changes"), 1):
            name = _CHANGES.get(text_of(change, "kind"), "edit_file")
            given = as_text({"path": text_of(change, "path")})
            call = DraftCall(f"{identifier or 'item'}-{number}", name, given)
            turn.calls.append(call)
            if status in _ENDED:
                said = "completed" if status == "completed" else f"[error: {status}]"
                results.append(Draft("tool", [said], call_id=call.id))
        return [turn, *results]


def _kind(item: dict[str, Any]) -> str:
    """Return the type of an item; early versions name it otherwise."""
    return text_of(item, "type") or text_of(item, "item_type")


def _recognise(source: SourceFile) -> str | None:
    for value in source.head:
        kind = text_of(value, "type")
        if kind == "thread.started" and text_of(value, "thread_id"):
            return "a line thread.started with thread_id"
        if kind in _ITEMS and _kind(mapping_of(value, "item")):
            return f"lines such as {kind} with an item"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    thread = _Thread()
    for value in source.values():
        thread.feed(value)
    if not thread.recognised:
        raise DataError(f"{source.path}: expected lines of codex exec --json, found none")
    yield thread.finish()


FORMAT = Format(name="codex-exec", title="codex exec --json", recognise=_recognise, read=_read)
