"""OpenAI's Responses API: its items, and files of them.

A file is a list of items, requests with their responses, or lines of either. Codex writes items,
too. Everything that the model said between two inputs is one turn, as providers see it: its text
and its calls, parallel ones included.
"""

from typing import Any

from compression_eval.conversations.drafts import (
    NO_THINKING,
    Content,
    Conversation,
    Draft,
    Line,
    image_at,
)
from compression_eval.conversations.fields import Json, as_text, entries, label
from compression_eval.conversations.readers.base import Place, Reader, thread_format
from compression_eval.conversations.readers.content import content_of
from compression_eval.conversations.readers.openai import ROLES, ValueThread
from compression_eval.conversations.sources import SourceFile, Value

_ROLES = {name: role for name, role in ROLES.items() if role != "tool"}
_CALLS = {
    "function_call": ("", "arguments"),
    "custom_tool_call": ("", "input"),
    "local_shell_call": ("local_shell", "action"),
    "shell_call": ("shell", "action"),
    "apply_patch_call": ("apply_patch", "operation"),
    "computer_call": ("computer", "action", "actions"),
    "tool_search_call": ("tool_search", "arguments"),
    "web_search_call": ("web_search", "action"),
    "file_search_call": ("file_search", "queries"),
    "code_interpreter_call": ("code_interpreter", "code"),
    "image_generation_call": ("image_generation", "revised_prompt"),
    "mcp_call": ("", "arguments"),
}
"""For each kind of call its name, if the item has none, and the fields with its arguments."""
_HOSTED = (
    *("web_search_call", "file_search_call", "code_interpreter_call"),
    *("image_generation_call", "mcp_call"),
)
"""Calls that the provider carries out: there is no item with their result."""
_RESULTS = (
    *("function_call_output", "custom_tool_call_output", "local_shell_call_output"),
    *("shell_call_output", "apply_patch_call_output", "computer_call_output"),
    *("tool_search_output", "mcp_tool_call_output"),
)
COMPACTIONS = frozenset({"compaction", "compaction_summary", "context_compaction"})
_SKIPPED = {
    "reasoning": NO_THINKING,
    "ghost_snapshot": "a snapshot of the files for undoing, not part of the conversation",
    "additional_tools": "tools that became available; schemas are read from the head only",
    "mcp_list_tools": "the tools that a server offers",
    "mcp_approval_request": "a question to the user whether a tool may run",
    "mcp_approval_response": "the user's permission to run a tool",
    "compaction_trigger": "a request to compact, not part of the conversation",
    "item_reference": "refers to an item that is not in the file",
}
_CLEAR_MARKS = {*_CALLS, *_RESULTS, *COMPACTIONS, *_SKIPPED} - {"compaction", "item_reference"}
"""Types that no other format uses for its lines or blocks."""
_KINDS = _CLEAR_MARKS | {"message", "agent_message", "compaction", "item_reference"}


def is_item(value: Any) -> bool:
    """Return whether a value is an item: of a known type, or a message that leaves it out."""
    item = Json.of(value)
    if item.at("type") is None:
        return item.text("role") in _ROLES and "content" in item
    return item.text("type") in _KINDS


def item_name(item: Json) -> str:
    """Return what to call an item in counts."""
    kind = _kind(item)
    return f"message:{label(item.text('role'))}" if kind == "message" else label(kind)


def _kind(item: Json) -> str:
    return item.text("type") or ("message" if item.text("role") else "")


class ItemReader(Reader):
    """A conversation of items."""

    format = "openai-responses"
    lacks = ()

    def __init__(self, origin: str = "") -> None:
        super().__init__(origin)
        self._turn: Draft | None = None
        self._only_hosted = False
        self._calls = 0

    def close_turn(self) -> None:
        """End the running assistant turn: what comes next is no part of it."""
        self._turn = None

    def add(self, line: Line, draft: Draft) -> Draft:
        """Add a message that is no part of an assistant turn."""
        self.close_turn()
        self.say(line, draft)
        return draft

    def read_item(self, line: Line, item: Json) -> Draft | None:
        """Add an item; return the message that it became or was added to, if it did."""
        kind = _kind(item)
        if kind == "message":
            return self._message(line, item)
        if kind == "agent_message":
            caveat = "messages that other agents sent to this one are given as user messages"
            self.caveat(caveat)
            return self.add(line, Draft("user", content_of(item.at("content"), line)))
        if kind in _CALLS:
            return self._call(line, item, kind)
        if kind in _RESULTS:
            result = Draft("tool", _result(item, line), call_id=item.first("call_id", "id"))
            return self.add(line, result)
        if kind in COMPACTIONS:
            self.close_turn()
            self.compact()
            line.leave_out("encrypted content", "it cannot be read")
        elif kind in _SKIPPED:
            line.skip(_SKIPPED[kind])
        else:
            line.is_unknown("a kind of item that this reader does not know")
        return None

    def _message(self, line: Line, item: Json) -> Draft | None:
        role = _ROLES.get(item.text("role"))
        if role is None or not isinstance(item.at("content"), str | list | None):
            line.is_unknown("a message without a known role, or without content")
            return None
        content = content_of(item.at("content"), line)
        if role != "assistant":
            return self.add(line, Draft(role, content))
        if self._turn is not None and self._turn.calls and self._only_hosted:
            # What a hosted call found is known only in the text that follows it.
            self.close_turn()
        draft = self._assistant(line)
        draft.content.extend(content)
        return draft

    def _assistant(self, line: Line) -> Draft:
        """Return the running assistant turn, opened if there is none."""
        if self._turn is None:
            self._turn, self._only_hosted = Draft("assistant"), True
            self.say(line, self._turn)
        return self._turn

    def _call(self, line: Line, item: Json, kind: str) -> Draft:
        draft = self._assistant(line)
        self._calls += 1
        name, *keys = _CALLS[kind]
        given: Any = item.at(keys[0])
        if not name:
            space, name = item.first("server_label", "namespace"), item.text("name")
            name = f"{space}{'__' if space and space[-1] not in '_./' else ''}{name}"
        if kind == "custom_tool_call":
            given = {"input": item.json("input")}
        elif keys != ["arguments"] and not (len(keys) == 1 and isinstance(given, dict)):
            given = {key: item[key] for key in keys if item.at(key) is not None}
        call_id = item.first("call_id", "id") or f"{name or 'call'}-{self._calls}"
        draft.call(call_id, name, given)
        if kind not in _HOSTED:
            self._only_hosted = False
        elif content := [part for part in _own_result(item, kind) if part]:
            self.say(line, Draft("tool", content, call_id=call_id))
        return draft


def _result(item: Json, line: Line) -> Content:
    """Return the result that an item contains."""
    value = item.at("tools" if item.text("type") == "tool_search_output" else "output")
    if isinstance(value, dict) and "content" in value:  # in old files
        return content_of(value["content"], line)
    if item.text("output", "type") == "computer_screenshot":
        return content_of([value], line)
    if item.at("tools") is value or any("stdout" in part for part in item.entries("output")):
        return [as_text(value)]
    return content_of(value if isinstance(value, list) else as_text(value), line)


def _own_result(item: Json, kind: str) -> Content:
    """Return the result that a hosted call contains itself."""
    match kind:
        case "image_generation_call" if item.text("result"):
            return [image_at("data:image/png;base64," + item.text("result"))]
        case "mcp_call":
            return [item.json("output"), item.json("error")]
        case "code_interpreter_call":
            return [
                image_at(part.text("url")) if part.text("type") == "image" else part.text("logs")
                for part in item.entries("outputs")
            ]
        case "file_search_call" if item.listed("results"):
            return [item.json("results")]
    return []


class _Thread(ItemReader, ValueThread):
    framed = ("request", "item", 1)
    response = ""
    """Id of the last response; the request that names it continues from there."""
    _instructions = ""

    def __init__(self) -> None:
        super().__init__("OpenAI Responses")

    def frame_of(self, value: Any) -> Json | None:
        return Json(value) if _is_request(value) else None

    def name_of(self, entry: Json) -> str:
        return item_name(entry)

    def take(self, line: Line, entry: Json) -> None:
        if entry.text("type") == "item_reference":
            self.caveat("an item is only referred to, it is not in the file")
        self.read_item(line, entry)

    def take_frame(self, line: Line, frame: Json, value: Value) -> None:
        """Take a request, with its response if that is in the same object."""
        if frame.text("previous_response_id") not in ("", self.response):
            self.caveat(
                "the conversation begins elsewhere: its first request names an earlier response"
            )
        self.session = self.session or frame.text("id")
        self.model = frame.text("model") or self.model
        self.take_tools(frame.listed("tools"))
        instructions = frame.text("instructions")
        if instructions.strip() and not self._instructions:
            self._instructions = instructions
            self.drafts.insert(0, line.became(Draft("system", [instructions])))
        elif instructions.strip() and instructions != self._instructions:
            line.leave_out("instructions", "they replace the first ones")
            self.caveat("later instructions that replaced the first are left out")
        self.read_all(value, "instruction", frame.listed("instructions"))
        self.read_all(value, "input", _inputs(frame))
        self.read_all(value, "output", frame.listed("output"))
        self.response = frame.text("id")

    def finish(self) -> Conversation:
        if self.compactions:
            self.caveat("the summary of a compaction cannot be read")
        return super().finish()


def _inputs(request: Json) -> list[Any]:
    """Return the input items; a text alone is what the user says."""
    if text := request.text("input"):
        return [{"type": "message", "role": "user", "content": text}]
    return request.listed("input")


def _is_request(value: Any) -> bool:
    """Return whether a value is a request, a response, or both in one."""
    request = Json.of(value)
    if not request or "role" in request or is_item(value):
        return False
    held = any(isinstance(request.at(key), list) for key in ("input", "output"))
    asks = bool(request.text("input")) and "model" in request
    return isinstance(request.at("type"), str | None) and (held or asks)


def _place(value: Any, thread: _Thread | None) -> Place:
    if isinstance(value, list):
        return "opens" if any(map(is_item, value)) else "foreign"
    goes_on = False
    if _is_request(value):
        previous = Json(value).text("previous_response_id")
        goes_on = thread is not None and bool(previous) and previous == thread.response
    elif is_item(value):
        goes_on = thread is not None and thread.of_lines
    else:
        return "foreign"
    return "belongs" if goes_on else "opens"


def _recognise(source: SourceFile) -> str | None:
    values = source.head or [source.document]
    where = "lines that are items"
    if isinstance(values[0], list):
        values, where = values[0], "a list of items"
    elif requests := [Json(value) for value in values if _is_request(value)]:
        values = [item for each in requests for item in [*_inputs(each), *each.listed("output")]]
        where = "input or output with items"
    if sum(map(is_item, values)) * 2 < len(values):
        return None
    marks: set[str] = set()
    for item in entries(values):
        parts = [part.text("type") for part in item.entries("content")]
        own = [part for part in parts if part in ("input_text", "output_text", "input_image")]
        kind = item.text("type")
        marks.update([kind] if kind in _CLEAR_MARKS else own[:1])
    return f"{where}: {', '.join(sorted(marks)[:4])}" if marks else None


FORMAT = thread_format(
    _Thread,
    _recognise,
    _place,
    "items of OpenAI's Responses API (a list, input and output, or one on each line)",
)
