"""OpenAI's Responses API: its items, and files of them.

A file is a list of items, requests with their responses, or lines of either. Codex writes items,
too. Everything that the model said between two inputs is one turn, as providers see it: its text
and its calls, parallel ones included.
"""

from collections.abc import Callable, Iterator
from typing import Any

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import Content, Conversation, Draft, DraftCall, Role
from compression_eval.conversations.fields import as_text, label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.base import (
    NO_THINKING,
    Entry,
    Place,
    entered,
    image_at,
    threads,
    tool_definitions,
)
from compression_eval.conversations.readers.openai import ValueThread, content_of
from compression_eval.conversations.sources import SourceFile, Value

_ROLES: dict[str, Role] = {
    "user": "user",
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
}
_PARTS = ("input_text", "output_text", "input_image")
_HOSTED = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
)
"""Calls that the provider carries out: there is no item with their result."""
_RESULTS = (
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "shell_call_output",
    "apply_patch_call_output",
    "computer_call_output",
    "tool_search_output",
    "mcp_tool_call_output",
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
}

_Call = Callable[[Entry], tuple[str, str]]


def _named(item: Entry) -> str:
    name, namespace = text_of(item, "name"), text_of(item, "namespace")
    if not namespace:
        return name
    return f"{namespace}{'' if namespace.endswith(('_', '.', '/')) else '__'}{name}"


def _mcp(item: Entry) -> tuple[str, str]:
    server, name = text_of(item, "server_label"), text_of(item, "name")
    return (f"{server}__{name}" if server else name), as_text(item.get("arguments"))


def _fields(name: str, *keys: str) -> _Call:
    """Return what reads calls whose arguments are an object in a field, or some fields."""

    def read(item: Entry) -> tuple[str, str]:
        if len(keys) == 1 and isinstance(item.get(keys[0]), dict):
            return name, as_text(item[keys[0]])
        return name, as_text({key: item[key] for key in keys if item.get(key) is not None})

    return read


_CALLS: dict[str, _Call] = {
    "function_call": lambda item: (_named(item), as_text(item.get("arguments"))),
    "custom_tool_call": lambda item: (_named(item), as_text({"input": as_text(item.get("input"))})),
    "local_shell_call": _fields("local_shell", "action"),
    "shell_call": _fields("shell", "action"),
    "apply_patch_call": _fields("apply_patch", "operation"),
    "computer_call": _fields("computer", "action", "actions"),
    "tool_search_call": lambda item: ("tool_search", as_text(item.get("arguments"))),
    "web_search_call": _fields("web_search", "action"),
    "file_search_call": _fields("file_search", "queries"),
    "code_interpreter_call": _fields("code_interpreter", "code"),
    "image_generation_call": _fields("image_generation", "revised_prompt"),
    "mcp_call": _mcp,
}
"""Name and arguments of every kind of call."""

KINDS = frozenset({"message", "agent_message", *_CALLS, *_RESULTS, *COMPACTIONS, *_SKIPPED})
"""Types of items that are known."""
_CLEAR_MARKS = KINDS - {"message", "agent_message", "compaction"}
"""Types that no other format uses for its lines or blocks."""


def is_item(value: Any) -> bool:
    """Return whether a value is an item: of a known type, or a message that leaves it out."""
    kind = mapping_of(value).get("type")
    if kind is None:
        return text_of(value, "role") in _ROLES and "content" in value
    return isinstance(kind, str) and (kind in KINDS or kind == "item_reference")


def item_name(item: Any) -> str:
    """Return what to call an item in an account."""
    kind = _kind(item)
    return f"message:{label(text_of(item, 'role'))}" if kind == "message" else label(kind)


def _kind(item: Any) -> str:
    return text_of(item, "type") or ("message" if text_of(item, "role") else "")


class ItemReader:
    """Adds items to a conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self.callers: dict[str, Draft] = {}
        """The assistant turn that made a call, by the call's id."""
        self.results: dict[str, Draft] = {}
        """The result of a call, by the call's id."""
        self._conversation = conversation
        self._turn: Draft | None = None
        self._only_hosted = False
        self._calls = 0

    def close_turn(self) -> None:
        """End the running assistant turn: what comes next is no part of it."""
        self._turn = None

    def read(self, line: Line, item: Any) -> Draft | None:
        """Add an item, and settle its line.

        Returns:
            The message that it became or was merged into; None if it became none.
        """
        kind = _kind(item)
        if kind == "message":
            return self._message(line, item)
        if kind == "agent_message":
            caveat = "messages that other agents sent to this one are given as user messages"
            self._conversation.caveats.append(caveat)
            return self.add(line, Draft("user", content_of(item.get("content"), line)))
        if kind in _CALLS:
            return self._call(line, item, kind)
        if kind in _RESULTS:
            draft = self.add(line, _result(item, kind, line))
            self.results[draft.call_id or ""] = draft
            return draft
        if kind in COMPACTIONS:
            self.close_turn()
            self._conversation.compact()
            line.leave_out("encrypted content", "it cannot be read")
            line.skip("a compaction, kept as a cut; its summary is encrypted")
        elif kind == "item_reference":
            self._conversation.caveats.append("an item is only referred to, it is not in the file")
            line.skip("refers to an item that is not in the file")
        elif kind in _SKIPPED:
            line.skip(_SKIPPED[kind])
        else:
            line.is_unknown("a kind of item that this reader does not know")
        return None

    def add(self, line: Line, draft: Draft) -> Draft:
        """Add a message that is no part of an assistant turn."""
        self.close_turn()
        self._conversation.say(line, draft)
        return draft

    def _message(self, line: Line, item: Entry) -> Draft | None:
        role = _ROLES.get(text_of(item, "role"))
        if role is None:
            line.is_unknown("a message whose role is none of user, assistant, system, developer")
            return None
        if not isinstance(item.get("content"), str | list | None):
            line.is_unknown("a message whose content is neither a text nor a list")
            return None
        content = content_of(item.get("content"), line)
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
        if self._turn is not None:
            line.merge(self._turn)
            return self._turn
        self._turn, self._only_hosted = Draft("assistant"), True
        self._conversation.say(line, self._turn)
        return self._turn

    def _call(self, line: Line, item: Entry, kind: str) -> Draft:
        draft = self._assistant(line)
        self._calls += 1
        name, arguments = _CALLS[kind](item)
        unnamed = f"{name or 'call'}-{self._calls}"
        call_id = text_of(item, "call_id") or text_of(item, "id") or unnamed
        draft.calls.append(DraftCall(call_id, name, arguments))
        self.callers[call_id] = draft
        if kind not in _HOSTED:
            self._only_hosted = False
        elif content := [part for part in _own_result(item, kind) if part]:
            self.results[call_id] = Draft("tool", content, call_id=call_id)
            self._conversation.say(line, self.results[call_id])
        return draft


def _result(item: Entry, kind: str, line: Line) -> Draft:
    """Return the result that an item holds; without an id it answers no call."""
    value, call_id = item.get("output"), text_of(item, "call_id") or text_of(item, "id")
    if kind == "tool_search_output":
        content: Content = [as_text(list_of(item, "tools"))]
    elif isinstance(value, dict) and "content" in value:  # in old files
        content = content_of(value["content"], line)
    elif text_of(value, "type") == "computer_screenshot":
        content = content_of([value], line)
    elif any("stdout" in mapping_of(part) for part in list_of(value)):
        content = [as_text(value)]
    else:
        content = content_of(value, line)
    return Draft("tool", content, call_id=call_id)


def _own_result(item: Entry, kind: str) -> Content:
    """Return the result that a hosted call holds itself."""
    match kind:
        case "image_generation_call" if text_of(item, "result"):
            return [image_at("data:image/png;base64," + text_of(item, "result"))]
        case "mcp_call":
            return [as_text(item.get("output")), as_text(item.get("error"))]
        case "code_interpreter_call":
            return [
                image_at(text_of(value, "url"))
                if text_of(value, "type") == "image"
                else text_of(value, "logs")
                for value in list_of(item, "outputs")
            ]
        case "file_search_call" if list_of(item, "results"):
            return [as_text(list_of(item, "results"))]
    return []


class _Thread(ValueThread):
    """Reads one conversation."""

    def __init__(self) -> None:
        super().__init__(Conversation("openai-responses", "OpenAI Responses"))
        self.response = ""
        """Id of the last response; the request that names it goes on from there."""
        self._items = ItemReader(self.conversation)
        self._instructions = ""

    def feed(self, value: Value) -> None:
        """Enter a value, and take what it holds."""
        content, ledger = value.value, self.conversation.ledger
        whole = isinstance(content, list) or _is_request(content)
        self.begin(value, whole=whole)
        if value.problem or not whole:
            line = entered(ledger, value, item_name(content))
            if not value.problem:
                self._items.read(line, content)
        elif isinstance(content, list):
            self._read("item", content, value)
        else:
            self._request(entered(ledger, value, "request"), value)

    def _read(self, where: str, items: list[Any], value: Value) -> None:
        for number, item in enumerate(items, 1):
            self._items.read(self.enter(value, f"{where} {number}", item_name(item)), item)

    def _request(self, line: Line, value: Value) -> None:
        """Take a request, with its response if that stands in the same object."""
        conversation, request = self.conversation, value.value
        previous = text_of(request, "previous_response_id")
        if previous and previous != self.response:
            conversation.caveats.append(
                "the conversation begins elsewhere: its first request names an earlier response"
            )
        conversation.session = conversation.session or text_of(request, "id")
        conversation.model = text_of(request, "model") or conversation.model
        definitions, without = tool_definitions(list_of(request, "tools"))
        known = {tool.function.name: tool for tool in [*conversation.tools, *definitions]}
        conversation.tools = list(known.values())
        if without:
            conversation.caveats.append("some tools are named without a schema")
        instructions = text_of(request, "instructions")
        if not instructions.strip() or instructions == self._instructions:
            line.skip("settings; its items are entered one by one")
        elif not self._instructions:
            self._instructions = instructions
            conversation.drafts.insert(0, line.became(Draft("system", [instructions])))
        else:
            line.skip("settings, and instructions that replace the first ones")
            conversation.caveats.append("later instructions that replaced the first are left out")
        self._read("instruction", list_of(request, "instructions"), value)
        self._read("input", _inputs(request), value)
        self._read("output", list_of(request, "output"), value)
        self.response = text_of(request, "id")

    def finish(self) -> Conversation:
        self.conversation.name_missing()
        if self.conversation.compactions:
            self.conversation.caveats.append("the summary of a compaction cannot be read")
        return self.conversation


def _inputs(request: Any) -> list[Any]:
    """Return the input items; a text alone is what the user says."""
    if text := text_of(request, "input"):
        return [{"type": "message", "role": "user", "content": text}]
    return list_of(request, "input")


def _is_request(value: Any) -> bool:
    """Return whether a value is a request, a response, or both in one."""
    if not isinstance(value, dict) or "role" in value or is_item(value):
        return False
    held = isinstance(value.get("input"), list) or isinstance(value.get("output"), list)
    asks = bool(text_of(value, "input")) and "model" in value
    return isinstance(value.get("type"), str | None) and (held or asks)


def _mark(item: Any) -> str:
    """Return what of an item no other format has; empty if there is nothing."""
    kind = text_of(item, "type")
    parts = [text_of(part, "type") for part in list_of(item, "content")]
    return kind if kind in _CLEAR_MARKS else next((part for part in parts if part in _PARTS), "")


def _place(value: Any, thread: _Thread | None) -> Place:
    if isinstance(value, list):
        return "opens" if any(is_item(item) for item in value) else "foreign"
    if _is_request(value):
        previous = text_of(value, "previous_response_id")
        goes_on = thread is not None and previous and previous == thread.response
        return "belongs" if goes_on else "opens"
    if is_item(value):
        return "belongs" if thread is not None and thread.of_lines else "opens"
    return "foreign"


def _recognise(source: SourceFile) -> str | None:
    values = source.head or [source.document]
    where = "lines that are items"
    if isinstance(values[0], list):
        values, where = values[0], "a list of items"
    elif _is_request(values[0]):
        requests = [value for value in values if _is_request(value)]
        values = [item for each in requests for item in [*_inputs(each), *list_of(each, "output")]]
        where = "input or output with items"
    known = sum(is_item(value) for value in values)
    if not values or known * 2 < len(values) or not all(isinstance(v, dict) for v in values):
        return None
    marks = sorted({mark for value in values if (mark := _mark(value))})
    return f"{where}: {', '.join(marks[:4])}" if marks else None


def _read(source: SourceFile) -> Iterator[Conversation]:
    expected = "items of OpenAI's Responses API (a list, input and output, or one on each line)"
    return threads(source, expected=expected, place=_place, new=_Thread)


FORMAT = Format("openai-responses", "OpenAI Responses items (.json, .jsonl)", _recognise, _read)
