"""OpenAI's Responses API: lists of items, requests with their responses, and lines of either."""

from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Conversation, Draft
from compression_eval.conversations.fields import list_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger
from compression_eval.conversations.readers.records import Place, threads
from compression_eval.conversations.readers.responses_items import (
    CLEAR_MARKS,
    ItemReader,
    is_item,
    item_kind,
)
from compression_eval.conversations.readers.tool_schemas import tool_definitions
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
    entered,
)
from compression_eval.conversations.sources import SourceFile, Value

_PARTS = ("input_text", "output_text", "input_image")


def recognise(source: SourceFile) -> str | None:
    """Return what marks the items: their types, or the types of their parts."""
    values = source.head or [source.document]
    if isinstance(values[0], list):
        values = values[0]
        where = "a list of items"
    elif _is_request(values[0]):
        values = [item for value in values if _is_request(value) for item in _all_items(value)]
        where = "input or output with items"
    else:
        where = "lines that are items"
    known = sum(is_item(value) for value in values)
    if not values or known * 2 < len(values) or not all(isinstance(v, dict) for v in values):
        return None
    marks = {mark for value in values if (mark := _mark(value))}
    return f"{where}: {', '.join(sorted(marks)[:4])}" if marks else None


def read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the conversations of a file.

    Items on lines of their own are one conversation, as are requests that name the response
    before them; every other list or request is one of its own.

    Raises:
        DataError: There are no items.
    """
    return threads(
        source,
        expected="items of OpenAI's Responses API (a list, input and output, or one on each line)",
        place=_place,
        new=_Thread,
    )


def _all_items(request: Any) -> list[Any]:
    return [*_inputs(request), *list_of(request, "output")]


def _inputs(request: Any) -> list[Any]:
    """Return the input items; a text alone is what the user says."""
    text = text_of(request, "input")
    if text:
        return [{"type": "message", "role": "user", "content": text}]
    return list_of(request, "input")


def _is_request(value: Any) -> bool:
    """Return whether a value is a request, a response, or both in one."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str | None)
        and "role" not in value
        and (
            isinstance(value.get("input"), list)
            or isinstance(value.get("output"), list)
            or (bool(text_of(value, "input")) and "model" in value)
        )
        and not is_item(value)
    )


def _mark(item: Any) -> str:
    """Return what of an item no other format has; empty if there is nothing."""
    kind = text_of(item, "type")
    if kind in CLEAR_MARKS:
        return kind
    parts = [text_of(part, "type") for part in list_of(item, "content")]
    return next((part for part in parts if part in _PARTS), "")


def _place(value: Any, thread: "_Thread | None") -> Place:
    if isinstance(value, list):
        return "opens" if value and any(is_item(item) for item in value) else "foreign"
    if _is_request(value):
        previous = text_of(value, "previous_response_id")
        continues = thread is not None and previous and previous == thread.response
        return "belongs" if continues else "opens"
    if is_item(value):
        return "belongs" if thread is not None and thread.of_lines else "opens"
    return "foreign"


class _Thread:
    """Reads one conversation."""

    def __init__(self) -> None:
        self.of_lines = False
        """Whether every line is an item."""
        self.response = ""
        """Id of the last response; the request that names it goes on from there."""
        self._conversation = Conversation("openai-responses", "OpenAI Responses", "", Ledger())
        self._items = ItemReader(self._conversation)
        self._begun = False
        self._instructions: str | None = None

    def feed(self, value: Value) -> None:
        """Enter a value, and take what it holds."""
        content = value.value
        if value.problem or not (isinstance(content, list) or _is_request(content)):
            line = entered(self._conversation.ledger, value, item_kind(content))
            if not value.problem:
                self._begin(value.place, of_lines=True)
                self._items.read(line, content)
        elif isinstance(content, list):
            self._begin(value.place)
            self._read(f"{value.place}, item", content, value)
        else:
            self._begin(value.place)
            self._request(value, content)

    def finish(self) -> Conversation:
        """Return the conversation."""
        conversation = self._conversation
        if not any(draft.role == "system" for draft in conversation.drafts):
            conversation.caveats.append(NO_SYSTEM_PROMPT)
        if not conversation.tools:
            conversation.caveats.append(NO_TOOLS)
        if conversation.compactions:
            conversation.caveats.append("the summary of a compaction cannot be read")
        return conversation

    def _begin(self, place: str, *, of_lines: bool = False) -> None:
        """Take note of how the conversation is held; the first value decides."""
        if not self._begun:
            self._begun, self.of_lines = True, of_lines
            first = of_lines or place in ("document", "line 1")
            self._conversation.part = "" if first else place

    def _read(self, where: str, items: list[Any], value: Value) -> None:
        for number, item in enumerate(items, 1):
            line = self._conversation.ledger.enter(f"{where} {number}", item_kind(item))
            if value.replaced:
                line.leave_out("bytes", REPLACED_BYTES)
            self._items.read(line, item)

    def _request(self, value: Value, request: dict[str, Any]) -> None:
        """Take a request, with its response if that stands in the same object."""
        conversation = self._conversation
        line = entered(conversation.ledger, value, "request")
        previous = text_of(request, "previous_response_id")
        if previous and previous != self.response:
            conversation.caveats.append(
                "the conversation begins elsewhere: its first request names an earlier response"
            )
        conversation.session = conversation.session or text_of(request, "id")
        conversation.model = text_of(request, "model") or conversation.model
        self._tools(list_of(request, "tools"))
        instructions = request.get("instructions")
        draft = Draft("system", [instructions] if isinstance(instructions, str) else [])
        if not draft.text.strip() or draft.text == self._instructions:
            line.skip("settings; its items are entered one by one")
        elif self._instructions is None:
            self._instructions = draft.text
            conversation.drafts.insert(0, line.became(draft))
        else:
            line.skip("settings, and instructions that replace the first ones")
            conversation.caveats.append("later instructions that replaced the first are left out")
        if isinstance(instructions, list):
            self._read(f"{value.place}, instruction", instructions, value)
        self._read(f"{value.place}, input", _inputs(request), value)
        self._read(f"{value.place}, output", list_of(request, "output"), value)
        self.response = text_of(request, "id")

    def _tools(self, values: list[Any]) -> None:
        conversation = self._conversation
        definitions, without = tool_definitions(values)
        known = {tool.function.name: tool for tool in conversation.tools}
        known.update({tool.function.name: tool for tool in definitions})
        conversation.tools = list(known.values())
        if without:
            conversation.caveats.append("some tools are named without a schema")


FORMAT = Format(
    name="openai-responses",
    title="OpenAI Responses items (.json, .jsonl)",
    recognise=recognise,
    read=read,
)
