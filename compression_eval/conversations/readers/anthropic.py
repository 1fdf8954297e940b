"""Anthropic's messages, however they are stored, and requests with their responses.

Many agents store messages in this form. A file of the format itself is one request (an object with
``messages``), a bare list of messages, or a line for each request or message. An agent sends the
whole conversation with every request, so that a later request repeats the earlier one and adds to
it.
"""

import json
from itertools import islice
from typing import Any

from compression_eval.conversations.drafts import (
    NO_SYSTEM_PROMPT,
    Content,
    Conversation,
    Draft,
    Line,
)
from compression_eval.conversations.fields import Json, as_text, entries
from compression_eval.conversations.readers.base import Place, prevails, thread_format
from compression_eval.conversations.readers.content import THINKING, content_of
from compression_eval.conversations.readers.openai import ValueThread
from compression_eval.conversations.sources import SourceFile, Value

_ROLES = ("user", "assistant", "system")
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_LINKS = {"tool_use": "id", "tool_result": "tool_use_id"}
"""How calls and results name each other; those of other agents do so otherwise."""
_ENCRYPTED = ("encrypted_content", "encrypted_index", "encrypted_stdout")
_WRAPPERS = ("request", "params", "body")
_OWN_FIELDS = {"system", "messages", "tools", "model", "response", *_WRAPPERS}
_NOT_COMPARED = ("cache_control", "citations", "caller", "is_error")


def text_block(text: str) -> dict[str, Any]:
    """Return a block with a text."""
    return {"type": "text", "text": text}


class AssistantTurn:
    """The messages that one assistant message of the API becomes.

    As a rule it is one. Tools that the server runs put their results into the same API message;
    a fixture contains each result behind its call, so that what follows is a message of its own.
    """

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.touched: list[Draft] = []
        """The messages that the last blocks went to."""
        self._callers: dict[str, Draft] = {}

    def add(self, content: Any, line: Line, *, repeats: bool = False) -> list[Draft]:
        """Add blocks and return the messages that this opened."""
        before = len(self.drafts)
        blocks = content if isinstance(content, list) else [content]
        added = dict.fromkeys(self._add(block, line, repeats=repeats) for block in blocks)
        self.touched = [draft for draft in added if draft is not None] or [self._open()]
        return [line.became(draft) for draft in self.drafts[before:]]

    def _open(self) -> Draft:
        """Return the message that continues, a new one behind a result."""
        if not self.drafts or self.drafts[-1].role == "tool":
            self.drafts.append(Draft("assistant"))
        return self.drafts[-1]

    def _add(self, value: Any, line: Line, *, repeats: bool) -> Draft | None:
        block = Json.of(value)
        kind, call_id = block.text("type"), block.text("id")
        if kind.endswith("_tool_result"):
            result = _server_result(block.at("content"), line)
            self.drafts.append(Draft("tool", result, call_id=block.text("tool_use_id")))
            return self.drafts[-1]
        if kind in _CALLS:
            if call_id in self._callers:
                return self._callers[call_id]
            draft = self._open()
            if call_id:
                self._callers[call_id] = draft
            else:
                line.leave_out("id", "the call has none")
            draft.call(call_id, block.text("name"), block.at("input"))
            return draft
        content = content_of([value], line)
        if not content:
            return None
        draft = self._open()
        draft.content.extend(part for part in content if not repeats or part not in draft.content)
        return draft


def user_drafts(content: Any, line: Line) -> list[Draft]:
    """Return the messages of a user message: the results of tools first, then what was said."""
    results: list[Draft] = []
    said: list[Any] = []
    for value in content if isinstance(content, list) else [content]:
        block = Json.of(value)
        if block.text("type") != "tool_result":
            said.append(value)
            continue
        shown = content_of(block.at("content"), line)
        failed = block.at("is_error") is True
        results.append(Draft("tool", shown, call_id=block.text("tool_use_id"), failed=failed))
    parts = content_of(said, line)
    return [*results, Draft("user", parts)] if parts or not results else results


def _server_result(content: Any, line: Line) -> Content:
    """Return the result of a tool that the server ran: texts, or its fields as JSON."""

    def readable(value: Any) -> Any:
        if isinstance(value, list):
            return [readable(item) for item in value]
        if not isinstance(value, dict):
            return value
        if any(key in value for key in _ENCRYPTED):
            line.leave_out("encrypted content", "it cannot be read")
        return {key: readable(item) for key, item in value.items() if key not in _ENCRYPTED}

    parts = entries(content if isinstance(content, list) else [content])
    if isinstance(content, str) or all(part.text("type") == "text" for part in parts):
        return content_of(content, line)
    return [as_text(readable(content))]


def _request(value: Any) -> Json | None:
    """Return a value as a request with ``messages``; None if it is no such thing."""
    if isinstance(value, list):
        return Json(messages=value) if value and all(map(_is_message, value)) else None
    request = Json.of(value)
    for inner in map(request.entry, _WRAPPERS):
        if isinstance(inner.at("messages"), list):
            return Json({**inner, "response": request.at("response")})
    return request if isinstance(request.at("messages"), list) else None


def _is_message(value: Any) -> bool:
    return Json.of(value).text("role") in _ROLES and "content" in value


def _key(value: Any) -> int:
    """Return what two copies of a message have in common, whatever was stored next to it."""

    def bare(value: Any) -> Any:
        if isinstance(value, list):
            return [bare(item) for item in value]
        if isinstance(value, dict):
            return {key: bare(item) for key, item in value.items() if key not in _NOT_COMPARED}
        return value

    message = Json.of(value)
    content = message.at("content")
    blocks = content if isinstance(content, list) else [text_block(as_text(content))]
    said = [block for block in blocks if Json.of(block).text("type") not in THINKING]
    try:
        return hash(json.dumps([message.text("role"), bare(said)], sort_keys=True))
    except RecursionError:
        return id(value)


class _Thread(ValueThread):
    """A conversation whose requests each repeat and continue with what came before."""

    format = "anthropic"
    framed = ("request", "message", 0)

    def __init__(self) -> None:
        super().__init__("messages in Anthropic's form")
        self._keys: list[int] = []
        """What tells the messages read so far from others."""

    def goes_on_with(self, request: Json) -> bool:
        """Return whether a request repeats all of this thread."""
        keys = (_key(message) for message in request["messages"])
        return list(islice(keys, len(self._keys))) == self._keys

    def frame_of(self, value: Any) -> Json | None:
        return _request(value)

    def take_frame(self, line: Line, frame: Json, value: Value) -> None:
        if any(key not in _OWN_FIELDS for key in frame):
            line.leave_out("settings", "only the system prompt, the tools and the model are kept")
        self.model = frame.text("model") or self.model
        if frame.at("system"):
            draft = Draft("system", content_of(frame["system"], line))
            if self.system is None:
                self.say_system(line, draft)
            elif self.system.content != draft.content:
                line.leave_out("system", "a later form of the system prompt; the first is kept")
                self.caveat("the system prompt changed; the first is kept")
        self.take_tools(frame.listed("tools"))
        if frame.entry("context_management"):
            self.caveat(
                "the server was asked to clear parts of the context: the model may have seen less"
            )
        known = len(self._keys)
        self.read_all(value, "message", frame["messages"][known:], known)
        if frame.at("response") is not None:
            response = frame.entry("response").entry("body") or frame.entry("response")
            self._response(response, self.enter(f"{value.place}, response", "response"))

    def _response(self, message: Json, line: Line) -> None:
        if message.listed("context_management", "applied_edits"):
            self.caveat(
                "the server cleared parts of the context: the model saw less than the file holds"
            )
        self.model = message.text("model") or self.model
        said = Json(role="assistant", content=message.at("content"))
        if self._keys[-1:] != [_key(said)]:
            self.take(line, said)

    def take(self, line: Line, entry: Json) -> None:
        role, content = entry.text("role"), entry.at("content")
        line.speaks = role in _ROLES
        self._keys.append(_key(entry))
        if not isinstance(content, str | list) or role not in _ROLES:
            why = "expected the role user or assistant, and content as text or blocks"
            line.is_unknown(why)
        elif role == "assistant":
            self._assistant(content, line)
        elif role == "system":
            self.say(line, Draft("system", content_of(content, line)))
        else:
            self.say(line, *user_drafts(content, line))

    def _assistant(self, content: str | list[Any], line: Line) -> None:
        """Take an assistant message; the server may have compacted within it."""
        rest: list[Any] = []
        for block in content if isinstance(content, list) else [content]:
            if Json.of(block).text("type") != "compaction":
                rest.append(block)
                continue
            if rest:
                self.drafts.extend(AssistantTurn().add(rest, line))
            rest = []
            made = Draft("user", content_of(Json.of(block).at("content"), line))
            line.leave_out("compaction", "it is recorded apart from the messages")
            self.compact(made.text, [made])
        if rest or not content:
            self.drafts.extend(AssistantTurn().add(rest, line))

    def finish(self) -> Conversation:
        self.part = "" if self.number == 1 else f"thread-{self.number}"
        if self.system is None:
            self.caveat(NO_SYSTEM_PROMPT)
        if not self.tools:
            self.caveat("the file does not contain the tools")
        return self


def _place(value: Any, thread: _Thread | None) -> Place:
    request = _request(value)
    if _is_message(value):
        return "opens" if thread is None else "belongs"
    if request is None or not request["messages"]:
        return "foreign"
    return "belongs" if thread is not None and thread.goes_on_with(request) else "opens"


def _is_linked(block: Json) -> bool:
    return _LINKS[block.text("type")] in block


def _recognise(source: SourceFile) -> str | None:
    for value in source.head or [source.document]:
        request = Json(messages=[value]) if _is_message(value) else _request(value)
        if request is None or "trajectory_format" in request:
            continue
        messages = request.entries("messages")
        blocks = [block for message in messages for block in message.entries("content")]
        linked = [block for block in blocks if block.text("type") in _LINKS]
        if linked and not prevails(linked, lambda block: block.text("type"), _is_linked):
            return None
        if any(tool.entry("input_schema") for tool in request.entries("tools")):
            return "messages with tools that have an input_schema"
        for block in blocks:
            kind = block.text("type")
            attached = kind in ("image", "document") and block.entry("source")
            own = kind in (*_CALLS, "thinking", "redacted_thinking")
            if attached or own or kind.endswith("tool_result"):
                return "messages with content blocks such as tool_use and tool_result"
        roles = {message.text("role") for message in messages}
        outside = request.at("system") and "max_tokens" in request
        if request.text("anthropic_version") or (outside and roles <= {"user", "assistant"}):
            return "messages with a separate system prompt"
    return None


FORMAT = thread_format(
    _Thread, _recognise, _place, "requests or messages in the form of Anthropic's messages API"
)
