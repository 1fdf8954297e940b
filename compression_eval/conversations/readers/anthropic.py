"""Anthropic's messages, however they are stored: their blocks, and requests with their responses.

Many agents store messages in this form. A file of the format itself is one request (an object with
``messages``), a bare list of messages, or a line for each request or message. An agent sends the
whole conversation with every request, so that a later request repeats the earlier one and adds to
it.
"""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import Content, Conversation, Draft, DraftCall, Image
from compression_eval.conversations.fields import as_text, label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.base import (
    NO_THINKING,
    REPLACED_BYTES,
    Place,
    threads,
    tool_definitions,
)
from compression_eval.conversations.sources import SourceFile, Value

_THINKING = ("thinking", "redacted_thinking")
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_ENCRYPTED = ("encrypted_content", "encrypted_index", "encrypted_stdout")
_OWN_BLOCKS = {
    *_THINKING,
    *_CALLS,
    "tool_result",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "mcp_tool_result",
}
"""Blocks that only Anthropic's form has."""
_WRAPPERS = ("request", "params", "body")
_OWN_FIELDS = {"system", "messages", "tools", "model", "response", *_WRAPPERS}
_NOT_COMPARED = ("cache_control", "citations", "caller", "is_error")


class AssistantTurn:
    """The messages that one assistant message of the API becomes.

    As a rule it is one. Tools that the server runs put their results into the same API message;
    a fixture holds each result behind its call, so that what follows is a message of its own.
    """

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self._callers: dict[str, Draft] = {}

    def add(self, content: Any, line: Line, *, repeats: bool = False) -> list[Draft]:
        """Add blocks and return the messages that this opened.

        Args:
            content: A text or a list of blocks.
            line: Where what is not carried over is entered; it became or was merged into every
                message that a block of it went to.
            repeats: Whether texts that the turn already holds are repetitions.
        """
        before = len(self.drafts)
        blocks = content if isinstance(content, list) else [content]
        found = [self._add(block, line, repeats=repeats) for block in blocks]
        touched = [draft for draft in dict.fromkeys(found) if draft is not None] or [self._open()]
        opened = self.drafts[before:]
        for draft in touched:
            if draft in opened:
                line.became(draft)
            else:
                line.merge(draft)
        return opened

    def _open(self) -> Draft:
        """Return the message that goes on, a new one behind a result."""
        if not self.drafts or self.drafts[-1].role == "tool":
            self.drafts.append(Draft("assistant"))
        return self.drafts[-1]

    def _add(self, block: Any, line: Line, *, repeats: bool) -> Draft | None:
        kind = text_of(block, "type")
        if kind in _CALLS:
            return self._call(block, line)
        if kind.endswith("_tool_result"):
            self.drafts.append(
                Draft("tool", _server_result(block, line), call_id=text_of(block, "tool_use_id"))
            )
            return self.drafts[-1]
        content = content_of([block], line)
        if not content:
            return None
        draft = self._open()
        draft.content.extend(part for part in content if not repeats or part not in draft.content)
        return draft

    def _call(self, block: Any, line: Line) -> Draft:
        identifier = text_of(block, "id")
        if identifier in self._callers:
            return self._callers[identifier]
        draft = self._open()
        if identifier:
            self._callers[identifier] = draft
        else:
            line.leave_out("id", "the call has none")
        name, arguments = text_of(block, "name"), as_text(block.get("input"))
        draft.calls.append(DraftCall(identifier, name, arguments))
        return draft


def user_drafts(content: Any, line: Line) -> list[Draft]:
    """Return the messages of a user message: the results of tools first, then what was said.

    Args:
        content: A text or a list of blocks.
        line: Where what is not carried over is entered; it does not become these messages yet.
    """
    results: list[Draft] = []
    said: list[Any] = []
    for block in content if isinstance(content, list) else [content]:
        if text_of(block, "type") != "tool_result":
            said.append(block)
            continue
        if block.get("is_error") is True:
            line.leave_out("is_error", "a fixture has no mark for failed calls, only their text")
        shown = content_of(block.get("content"), line)
        results.append(Draft("tool", shown, call_id=text_of(block, "tool_use_id")))
    parts = content_of(said, line)
    return [*results, Draft("user", parts)] if parts or not results else results


def content_of(value: Any, line: Line) -> Content:
    """Return texts and images in their order.

    Args:
        value: A text, a list of blocks, or nothing.
        line: Where what is not carried over is entered.
    """
    blocks = value if isinstance(value, list) else [value]
    pieces = (block if isinstance(block, str) else _piece(block, line) for block in blocks)
    return [piece for piece in pieces if piece]


def _piece(block: Any, line: Line) -> str | Image | None:
    found: str | Image | None = None
    match text_of(block, "type"):
        case "text" if isinstance(block.get("text"), str):
            if list_of(block, "citations"):
                line.leave_out("citations", "a fixture holds texts only")
            found = text_of(block, "text")
        case "image":
            found = _image(mapping_of(block, "source"))
        case "document":
            found = _document(block, line)
        case "search_result":
            heading = [text_of(block, "title"), text_of(block, "source")]
            found = "\n".join([*heading, *_texts(block.get("content"), line)])
        case "tool_reference":
            found = f"[tool: {text_of(block, 'tool_name')}]"
        case kind if kind in _THINKING:
            line.leave_out("thinking", NO_THINKING)
        case kind if block is not None:
            line.leave_out(f"block {label(kind)}", "unknown kind of content")
            line.is_unknown("expected content as text or blocks of a known kind")
            found = text_of(block, "text")
    return found


def _texts(value: Any, line: Line) -> list[str]:
    return [part for part in content_of(value, line) if isinstance(part, str)]


def _image(source: dict[str, Any]) -> Image:
    media_type, data = text_of(source, "media_type"), text_of(source, "data")
    if data:
        return Image(media_type, f"data:{media_type};base64,{data}", _decoded_size(data))
    return Image(media_type, text_of(source, "url"))


def _document(block: Any, line: Line) -> str:
    """Return a document's text, or a description where it is not a text."""
    source = mapping_of(block, "source")
    heading = [text for key in ("title", "context") if (text := text_of(block, key))]
    data = text_of(source, "data")
    match text_of(source, "type"):
        case "text":
            return "\n".join([*heading, data])
        case "content":
            return "\n".join([*heading, *_texts(source.get("content"), line)])
    facts = [text_of(source, "media_type") or text_of(source, "url") or "document"]
    facts += [f"{_decoded_size(data):,} bytes"] if data else []
    line.leave_out("document", "only texts are carried over; a description stands for it")
    return "\n".join([*heading, f"[document: {', '.join(facts)}]"])


def _decoded_size(data: str) -> int:
    return len(data.rstrip("=")) * 3 // 4


def _server_result(block: Any, line: Line) -> Content:
    """Return the result of a tool that the server ran: texts, or its fields as JSON."""
    content = block.get("content")
    parts = content if isinstance(content, list) else [content]
    if isinstance(content, str) or all(text_of(part, "type") == "text" for part in parts):
        return content_of(content, line)
    return [as_text(_readable(content, line))]


def _readable(value: Any, line: Line) -> Any:
    """Return a result without what only the server can read."""
    if isinstance(value, list):
        return [_readable(item, line) for item in value]
    if not isinstance(value, dict):
        return value
    if any(key in value for key in _ENCRYPTED):
        line.leave_out("encrypted content", "it cannot be read")
    return {key: _readable(item, line) for key, item in value.items() if key not in _ENCRYPTED}


def _request(value: Any) -> dict[str, Any] | None:
    """Return a value as a request with ``messages``; None if it is no such thing."""
    if isinstance(value, list):
        return {"messages": value} if value and all(map(_is_message, value)) else None
    if _is_message(value):
        return {"messages": [value]}
    for key in _WRAPPERS:
        inner = mapping_of(value, key)
        if isinstance(inner.get("messages"), list):
            return {**inner, "response": value.get("response")}
    return value if isinstance(mapping_of(value).get("messages"), list) else None


def _is_message(value: Any) -> bool:
    return text_of(value, "role") in ("user", "assistant", "system") and "content" in value


def _key(message: Any) -> int:
    """Return what two copies of a message have in common, whatever was stored beside it."""
    content = message.get("content") if isinstance(message, dict) else message
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if isinstance(blocks, list):
        blocks = [block for block in blocks if text_of(block, "type") not in _THINKING]
    try:
        return hash(json.dumps([text_of(message, "role"), _bare(blocks)], sort_keys=True))
    except RecursionError:
        return id(message)


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [_bare(item) for item in value]
    if isinstance(value, dict):
        return {key: _bare(item) for key, item in value.items() if key not in _NOT_COMPARED}
    return value


class _Thread:
    """A conversation whose requests each repeat and go on with what came before."""

    def __init__(self, number: int) -> None:
        part = "" if number == 1 else f"thread-{number}"
        self._conversation = Conversation("anthropic", "messages in Anthropic's form", part=part)
        self._keys: list[int] = []
        """What tells the messages read so far from others."""
        self._made: list[list[Draft]] = []
        """What each of them became."""
        self._system: Draft | None = None

    def goes_on_with(self, value: Any, request: dict[str, Any]) -> bool:
        """Return whether a request repeats all of this thread, or a line is its next message."""
        if _is_message(value):
            return True
        return [_key(message) for message in request["messages"]][: len(self._keys)] == self._keys

    def feed(self, value: Value) -> None:
        """Take a request, or name what is none."""
        enter = self._conversation.ledger.enter
        line = enter(value.place, "unreadable" if value.problem else "request")
        if value.replaced:
            line.leave_out("bytes", REPLACED_BYTES)
        request = _request(value.value)
        if value.problem:
            line.skip(value.problem)
        elif request is None:
            line.is_unknown("expected an object with the list messages, or a message")
        elif _is_message(value.value):
            line.kind = label(text_of(value.value, "role"))
            self._message(value.value, line)
        else:
            for draft in dict.fromkeys(draft for made in self._made for draft in made):
                line.merge(draft)
            line.skip("its parts are entered one by one")
            if any(key not in _OWN_FIELDS for key in request):
                why = "only the system prompt, the tools and the model are kept"
                line.leave_out("settings", why)
            known = len(self._keys)
            self._head(request, value.place)
            for number, message in enumerate(request["messages"][known:], known):
                role = label(text_of(message, "role"))
                self._message(message, enter(f"{value.place}, messages[{number}]", role))
            if request.get("response") is not None:
                self._response(request["response"], enter(f"{value.place}, response", "response"))

    def _head(self, request: dict[str, Any], place: str) -> None:
        """Take the system prompt, the tools and the model."""
        conversation = self._conversation
        conversation.model = text_of(request, "model") or conversation.model
        if request.get("system"):
            line = conversation.ledger.enter(f"{place}, system", "system")
            draft = Draft("system", content_of(request["system"], line))
            if self._system is None:
                self._system = line.became(draft)
                conversation.drafts.insert(0, draft)
            elif self._system.content == draft.content:
                line.merge(self._system)
            else:
                line.skip("a later form of the system prompt; the first is kept")
                conversation.caveats.append("the system prompt changed; the first is kept")
        if tools := list_of(request, "tools"):
            line = conversation.ledger.enter(f"{place}, tools", "tools")
            line.skip("kept beside the messages")
            conversation.tools, without = tool_definitions(tools)
            if without:
                line.leave_out("tools", "those that the server runs have no schema here")
        if mapping_of(request, "context_management"):
            conversation.caveats.append(
                "the server was asked to clear parts of the context: the model may have seen less"
            )

    def _response(self, response: Any, line: Line) -> None:
        message = mapping_of(response, "body") or mapping_of(response)
        content = message.get("content")
        if not isinstance(content, str | list):
            line.is_unknown("expected the field content as text or blocks")
            return
        if list_of(message, "context_management", "applied_edits"):
            self._conversation.caveats.append(
                "the server cleared parts of the context: the model saw less than the file holds"
            )
        self._conversation.model = text_of(message, "model") or self._conversation.model
        said = {"role": "assistant", "content": content}
        if self._keys and self._keys[-1] == _key(said):
            for draft in self._made[-1]:
                line.merge(draft)
            line.skip("repeats the last message")
        else:
            self._message(said, line)

    def _message(self, message: Any, line: Line) -> None:
        before = len(self._conversation.drafts)
        try:
            self._say(message, line)
        except RecursionError:
            line.is_unknown("nested too deeply")
        self._keys.append(_key(message))
        self._made.append(self._conversation.drafts[before:])

    def _say(self, message: Any, line: Line) -> None:
        content = message.get("content") if isinstance(message, dict) else None
        role = text_of(message, "role")
        if not isinstance(content, str | list) or role not in ("user", "assistant", "system"):
            line.is_unknown("expected the role user or assistant, and content as text or blocks")
        elif role == "assistant":
            self._assistant(content, line)
        elif role == "system":
            self._conversation.say(line, Draft("system", content_of(content, line)))
        else:
            self._conversation.say(line, *user_drafts(content, line))

    def _assistant(self, content: str | list[Any], line: Line) -> None:
        """Take an assistant message; the server may have compacted within it."""
        drafts, rest = self._conversation.drafts, list[Any]()
        for block in content if isinstance(content, list) else [content]:
            if text_of(block, "type") != "compaction":
                rest.append(block)
                continue
            if rest:
                drafts.extend(AssistantTurn().add(rest, line))
            rest = []
            text = "\n".join(_texts(mapping_of(block).get("content"), line))
            line.leave_out("compaction", "it is recorded beside the messages")
            self._conversation.compact(text, [Draft("user", [text])])
        if rest or not content:
            drafts.extend(AssistantTurn().add(rest, line))
        else:
            line.skip("it ends with a compaction, which is recorded beside the messages")

    def finish(self) -> Conversation:
        if self._system is None:
            self._conversation.caveats.append("the file does not hold the system prompt")
        if not self._conversation.tools:
            self._conversation.caveats.append("the file does not hold the tools")
        return self._conversation


def _place(value: Any, thread: _Thread | None) -> Place:
    request = _request(value)
    if request is None or not request["messages"]:
        return "foreign"
    goes_on = thread is not None and thread.goes_on_with(value, request)
    return "belongs" if goes_on else "opens"


def _recognise(source: SourceFile) -> str | None:
    for value in source.head or [source.document]:
        request = _request(value)
        if request is None or "trajectory_format" in request:
            continue
        blocks = [block for message in request["messages"] for block in list_of(message, "content")]
        if not all(map(_is_linked, blocks)):
            return None
        if any(mapping_of(tool, "input_schema") for tool in list_of(request, "tools")):
            return "messages with tools that have an input_schema"
        if any(map(_is_own, blocks)):
            return "messages with content blocks such as tool_use and tool_result"
        roles = {text_of(message, "role") for message in request["messages"]}
        outside = request.get("system") and "max_tokens" in request
        if text_of(request, "anthropic_version") or (outside and roles <= {"user", "assistant"}):
            return "messages with the system prompt beside them"
    return None


def _is_own(block: Any) -> bool:
    """Return whether a block is of a kind that only Anthropic's form has."""
    kind = text_of(block, "type")
    if kind in ("image", "document"):
        return bool(mapping_of(block, "source"))
    return kind in _OWN_BLOCKS


def _is_linked(block: Any) -> bool:
    """Return whether calls and results name each other as Anthropic's do; other agents differ."""
    name = {"tool_use": "id", "tool_result": "tool_use_id"}.get(text_of(block, "type"))
    return name is None or name in block


def _read(source: SourceFile) -> Iterator[Conversation]:
    numbers = count(1)
    expected = "requests or messages in the form of Anthropic's messages API"
    return threads(source, expected=expected, place=_place, new=lambda: _Thread(next(numbers)))


FORMAT = Format(name="anthropic", title="Anthropic messages", recognise=_recognise, read=_read)
