"""What ``codex exec --json`` prints, as CI leaves it: threads, turns and items, one to a line.

Prompts are arguments and not printed. An item is shown when it begins, changes and ends; its last
form counts. Commands, tools and searches are calls that hold their own results.
"""

from typing import Any, ClassVar

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import Content, Conversation, Draft, DraftCall
from compression_eval.conversations.fields import as_text, label, list_of, mapping_of, text_of
from compression_eval.conversations.readers.base import (
    NO_THINKING,
    Entry,
    Reader,
    Table,
    give_task,
    line_format,
    marked,
    mcp_content,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.markers import NO_PROMPT

_ITEMS = ("item.started", "item.updated", "item.completed")
_ENDED = ("completed", "failed", "declined")
_TOOLS = {
    "command_execution": "shell",
    "mcp_tool_call": "",
    "collab_tool_call": "",
    "web_search": "web_search",
    "todo_list": "update_plan",
}
"""The tools of items that are calls; empty where the item names its tool."""
_ARGUMENTS = ("command", "query", "items", "prompt", "receiver_thread_ids")
_WITHOUT_RESULT = ("web_search", "todo_list")
_CHANGES = {"add": "create_file", "update": "edit_file", "delete": "delete_file"}
"""Names for what a patch did to a file: the stream tells that, and not the patch."""
_UNKNOWN_ITEM = "a kind of item that codex exec is not known to print"


class _Thread(Reader):
    """The thread of a file: runs that resume it go on with it."""

    format = "codex-exec"
    unknown = "a kind of line that codex exec is not known to print"
    expected = "expected lines of codex exec --json, found none"

    def __init__(self) -> None:
        super().__init__("codex exec --json")
        self._open: dict[str, tuple[list[Line], Entry]] = {}
        """Lines and last form of items that have not ended, by their ids."""

    def name_of(self, entry: Any) -> str:
        """Return the type, of an item with the item's."""
        kind = self.kind_of(entry)
        if kind in _ITEMS:
            return f"{kind}:{label(_kind(mapping_of(entry, 'item')))}"
        return label(kind)

    def head(self, line: Line, event: Entry) -> None:
        found = text_of(event, "thread_id") or text_of(event, "session_id")
        self.conversation.session = self.conversation.session or found
        line.skip("the head of the thread")

    def turn(self, line: Line, _: Entry) -> None:
        """Take the start of a turn, which a prompt began."""
        self._settle()
        self.conversation.say(line, Draft("user", [NO_PROMPT]))

    def item(self, line: Line, event: Entry) -> None:
        item = mapping_of(event, "item")
        if not item:
            line.is_unknown(self.unknown)
            return
        name = text_of(item, "id")
        self._open[name] = [*self._open.get(name, ([], {}))[0], line], item
        if text_of(event, "type") == "item.completed":
            self._end(name)

    kinds: ClassVar[Table] = {
        "turn.started": turn,
        **dict.fromkeys(_ITEMS, item),
        **dict.fromkeys(("thread.started", "session.created"), head),
        "turn.completed": "an account of tokens",
        "turn.failed": "an error that ended the turn",
        "error": "an error that ended the run",
        "item.plan.delta": "a piece of an item that follows whole",
        "request_user_input": "a question to the user",
    }

    def finish(self) -> Conversation:
        self._settle()
        conversation = self.conversation
        if any(draft.role == "user" for draft in conversation.drafts):
            conversation.caveats.append(
                "prompts are not in the file; a note stands in the place of each"
            )
        give_task(conversation)
        return conversation

    def _settle(self) -> None:
        for name in list(self._open):
            self._end(name)

    def _end(self, name: str) -> None:
        (*earlier, line), item = self._open.pop(name)
        drafts = self._drafts(name or "item", item, line)
        self.conversation.say(line, *drafts)
        for other in earlier:
            if drafts:
                other.merge(drafts[0])
            else:
                other.skip("an earlier form of an item")

    def _drafts(self, name: str, item: Entry, line: Line) -> list[Draft]:
        """Return the messages of an item, a call with its result."""
        match _kind(item):
            case "agent_message" | "assistant_message" | "plan":
                return [Draft("assistant", [text_of(item, "text")])]
            case "reasoning":
                line.skip(NO_THINKING)
            case "error":
                line.skip("a notice on the screen")
            case "file_change":
                return _changed(name, item, line)
            case kind if kind in _TOOLS:
                named = filter(None, [text_of(item, "server"), text_of(item, "tool")])
                given = {key: item[key] for key in _ARGUMENTS if item.get(key) is not None}
                arguments = item.get("arguments") if kind == "mcp_tool_call" else given
                call_id = f"{name}-{len(self.conversation.drafts)}"
                call = DraftCall(call_id, _TOOLS[kind] or "__".join(named), as_text(arguments))
                ended = text_of(item, "status") in _ENDED and kind not in _WITHOUT_RESULT
                results = [_result(item, kind, line)] if ended else []
                return [
                    Draft("assistant", calls=[call]),
                    *(Draft("tool", result, call_id=call_id) for result in results),
                ]
            case _:
                line.is_unknown(_UNKNOWN_ITEM)
        return []


def _result(item: Entry, kind: str, line: Line) -> Content:
    if kind == "command_execution":
        output, code = text_of(item, "aggregated_output"), item.get("exit_code")
        failed = isinstance(code, int) and code != 0
        return [output, *([marked("exit_code", code=str(code))] if failed else [])]
    if kind == "collab_tool_call":
        return [as_text(mapping_of(item, "agents_states"))]
    content = mcp_content(list_of(item, "result", "content"), line, ignored=("toolCall",))
    return [*content, text_of(item, "error", "message")]


def _changed(name: str, item: Entry, line: Line) -> list[Draft]:
    """Return a call for each file of a patch, with the patch's outcome as its result."""
    line.leave_out("patch", "the stream names the files, not what was changed in them")
    turn, results = Draft("assistant"), []
    status = text_of(item, "status")
    for number, change in enumerate(list_of(item, "changes"), 1):
        tool = _CHANGES.get(text_of(change, "kind"), "edit_file")
        call = DraftCall(f"{name}-{number}", tool, as_text({"path": text_of(change, "path")}))
        turn.calls.append(call)
        if status in _ENDED:
            said = "completed" if status == "completed" else f"[error: {status}]"
            results.append(Draft("tool", [said], call_id=call.id))
    return [turn, *results]


def _kind(item: Entry) -> str:
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


FORMAT = line_format(_Thread, "codex exec --json", _recognise)
