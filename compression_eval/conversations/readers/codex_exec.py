"""What ``codex exec --json`` prints, as CI leaves it: threads, turns and items, one to a line.

Prompts are arguments and not printed. An item is shown when it begins, changes and ends; its last
form counts. Commands, tools and searches are calls that hold their own results.
"""

from typing import ClassVar

from compression_eval.conversations.drafts import NO_THINKING, Content, Conversation, Draft, Line
from compression_eval.conversations.fields import Json, as_text, entries, label
from compression_eval.conversations.readers.base import (
    Reader,
    Table,
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


class _Thread(Reader):
    """The thread of a file: runs that resume it go on with it."""

    format = "codex-exec"
    unknown = "a kind of line that codex exec is not known to print"
    expected = "expected lines of codex exec --json, found none"

    def __init__(self) -> None:
        super().__init__("codex exec --json")
        self._open: dict[str, tuple[list[Line], Json]] = {}
        """Lines and last form of items that have not ended, by their ids."""

    def name_of(self, entry: Json) -> str:
        kind = self.kind_of(entry)
        return f"{kind}:{label(_kind(entry.entry('item')))}" if kind in _ITEMS else label(kind)

    def head(self, line: Line, event: Json) -> None:
        found = event.first("thread_id", "session_id")
        self.session = self.session or found
        line.skip("the head of the thread")

    def turn(self, line: Line, _: Json) -> None:
        """Take the start of a turn, which a prompt began."""
        self._settle()
        self.say(line, Draft("user", [NO_PROMPT]))

    def item(self, line: Line, event: Json) -> None:
        item = event.entry("item")
        if not item:
            line.is_unknown(self.unknown)
            return
        name = item.text("id")
        self._open[name] = [*self._open.get(name, ([], {}))[0], line], item
        if event.text("type") == "item.completed":
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
        if any(draft.role == "user" for draft in self.drafts):
            self.caveat("prompts are not in the file; a note stands in the place of each")
        self.take_task()
        return self

    def _settle(self) -> None:
        for name in list(self._open):
            self._end(name)

    def _end(self, name: str) -> None:
        (*earlier, line), item = self._open.pop(name)
        drafts = self._drafts(name or "item", item, line)
        self.say(line, *drafts)
        for other in earlier:
            other.merge_or_skip(drafts[:1], "an earlier form of an item")

    def _drafts(self, name: str, item: Json, line: Line) -> list[Draft]:
        """Return the messages of an item, a call with its result."""
        kind, status, turn = _kind(item), item.text("status"), Draft("assistant")
        match kind:
            case "agent_message" | "assistant_message" | "plan":
                turn.content.append(item.text("text"))
                return [turn]
            case "reasoning":
                line.skip(NO_THINKING)
            case "error":
                line.skip("a notice on the screen")
            case "file_change":  # a call for each file of a patch
                why = "the stream names the files, not what was changed in them"
                line.leave_out("patch", why)
                for number, change in enumerate(item.entries("changes"), 1):
                    tool = _CHANGES.get(change.text("kind"), "edit_file")
                    turn.call(f"{name}-{number}", tool, {"path": change.text("path")})
                said = "completed" if status == "completed" else f"[error: {status}]"
                ended = turn.calls if status in _ENDED else []
                return [turn, *(Draft("tool", [said], call_id=call.id) for call in ended)]
            case kind if kind in _TOOLS:
                named = "__".join(filter(None, [item.text("server"), item.text("tool")]))
                given = {key: item[key] for key in _ARGUMENTS if item.at(key) is not None}
                call_id = f"{name}-{len(self.drafts)}"
                arguments = item.at("arguments") if kind == "mcp_tool_call" else given
                turn.call(call_id, _TOOLS[kind] or named, arguments)
                if status not in _ENDED or kind in _WITHOUT_RESULT:
                    return [turn]
                return [turn, Draft("tool", _result(item, kind, line), call_id=call_id)]
            case _:
                line.is_unknown("a kind of item that codex exec is not known to print")
        return []


def _result(item: Json, kind: str, line: Line) -> Content:
    if kind == "command_execution":
        output, code = item.text("aggregated_output"), item.at("exit_code")
        failed = isinstance(code, int) and code != 0
        return [output, *([marked("exit_code", code=str(code))] if failed else [])]
    if kind == "collab_tool_call":
        return [as_text(item.entry("agents_states"))]
    content = mcp_content(item.listed("result", "content"), line, ignored=("toolCall",))
    return [*content, item.text("error", "message")]


def _kind(item: Json) -> str:
    """Return the type of an item; early versions name it otherwise."""
    return item.first("type", "item_type")


def _recognise(source: SourceFile) -> str | None:
    for value in entries(source.head):
        kind = value.text("type")
        if kind == "thread.started" and value.text("thread_id"):
            return "a line thread.started with thread_id"
        if kind in _ITEMS and _kind(value.entry("item")):
            return f"lines such as {kind} with an item"
    return None


FORMAT = line_format(_Thread, "codex exec --json", _recognise)
