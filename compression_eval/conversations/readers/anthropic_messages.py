"""Requests and responses in the form of Anthropic's messages API, however they were stored.

A file is one request (an object with ``messages``), a bare list of messages, or a line for each
request or message. An agent sends the whole conversation with every request, so that a later
request repeats the earlier one and adds to it.
"""

import json
from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.anthropic_blocks import (
    AssistantTurn,
    content_of,
    is_anthropic_block,
    user_drafts,
)
from compression_eval.conversations.readers.records import Place, threads
from compression_eval.conversations.readers.tool_schemas import tool_definitions
from compression_eval.conversations.sources import SourceFile, Value

_WRAPPERS = ("request", "params", "body")
_OWN = {"system", "messages", "tools", "model", "response", *_WRAPPERS}
_FORM = "requests or messages in the form of Anthropic's messages API"
_IGNORED = ("cache_control", "citations", "caller", "is_error")
_THINKING = ("thinking", "redacted_thinking")


def _request(value: Any) -> dict[str, Any] | None:
    """Return a value as a request with ``messages``; None if it is no such thing."""
    if isinstance(value, list):
        return {"messages": value} if value and all(map(_is_message, value)) else None
    if not isinstance(value, dict):
        return None
    if _is_message(value):
        return {"messages": [value]}
    for key in _WRAPPERS:
        inner = value.get(key)
        if isinstance(inner, dict) and isinstance(inner.get("messages"), list):
            return {**inner, "response": value.get("response")}
    return value if isinstance(value.get("messages"), list) else None


def _is_message(value: Any) -> bool:
    return text_of(value, "role") in ("user", "assistant", "system") and "content" in value


def _key(message: Any) -> str:
    """Return what two copies of a message have in common, whatever was stored beside it."""
    content = message.get("content") if isinstance(message, dict) else message
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if isinstance(blocks, list):
        blocks = [block for block in blocks if text_of(block, "type") not in _THINKING]
    try:
        return json.dumps([text_of(message, "role"), _bare(blocks)], sort_keys=True)
    except RecursionError:
        return f"nested too deeply {id(message)}"


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [_bare(item) for item in value]
    if isinstance(value, dict):
        return {key: _bare(item) for key, item in value.items() if key not in _IGNORED}
    return value


class _Thread:
    """A conversation whose requests each repeat and go on with what came before."""

    def __init__(self, number: int) -> None:
        self._conversation = Conversation(
            format="anthropic",
            origin="messages in Anthropic's form",
            session="",
            ledger=Ledger(),
            part="" if number == 1 else f"thread-{number}",
        )
        self._keys: list[int] = []
        self._made: list[list[Draft]] = []
        self._system: Draft | None = None

    def goes_on_with(self, value: Any, request: dict[str, Any]) -> bool:
        """Return whether a request repeats all of this thread, or a line is its next message."""
        if _is_message(value):
            return True
        keys = [hash(_key(message)) for message in request["messages"]]
        return keys[: len(self._keys)] == self._keys

    def feed(self, value: Value) -> None:
        """Take a request, or name what is none."""
        line = self._conversation.ledger.enter(
            value.place, "unreadable" if value.problem else "request"
        )
        if value.replaced:
            line.leave_out("bytes", "bytes that are not UTF-8 were replaced")
        request = _request(value.value)
        if value.problem:
            line.skip(value.problem)
        elif request is None:
            line.is_unknown("expected an object with the list messages, or a message")
        elif _is_message(value.value):
            line.kind = label(text_of(value.value, "role"))
            self._message(value.value, line)
        else:
            self._take(request, value.place, line)

    def _take(self, request: dict[str, Any], place: str, line: Line) -> None:
        known = len(self._keys)
        for draft in dict.fromkeys(draft for made in self._made for draft in made):
            line.merge(draft)
        line.skip("its parts are entered one by one")
        if any(key not in _OWN for key in request):
            line.leave_out("settings", "only the system prompt, the tools and the model are kept")
        self._head(request, place)
        for number, message in enumerate(request["messages"][known:], known):
            role = label(text_of(message, "role"))
            entry = self._conversation.ledger.enter(f"{place}, messages[{number}]", role)
            self._message(message, entry)
        response = request.get("response")
        if response is not None:
            entry = self._conversation.ledger.enter(f"{place}, response", "response")
            self._response(response, entry)

    def _head(self, request: dict[str, Any], place: str) -> None:
        """Take the system prompt, the tools and the model."""
        conversation = self._conversation
        conversation.model = text_of(request, "model") or conversation.model
        system = request.get("system")
        if system:
            line = conversation.ledger.enter(f"{place}, system", "system")
            draft = Draft("system", content_of(system, line))
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
        message = response if isinstance(response, dict) else {}
        message = mapping_of(message, "body") or message
        if not isinstance(message.get("content"), str | list):
            line.is_unknown("expected the field content as text or blocks")
            return
        if list_of(mapping_of(message, "context_management"), "applied_edits"):
            self._conversation.caveats.append(
                "the server cleared parts of the context: the model saw less than the file holds"
            )
        self._conversation.model = text_of(message, "model") or self._conversation.model
        said = {"role": "assistant", "content": message["content"]}
        if self._keys and self._keys[-1] == hash(_key(said)):
            for draft in self._made[-1]:
                line.merge(draft)
            line.skip("repeats the last message")
        else:
            self._message(said, line)

    def _message(self, message: Any, line: Line) -> None:
        """Take a message that is new in this thread."""
        before = len(self._conversation.drafts)
        try:
            self._say(message, line)
        except RecursionError:
            line.is_unknown("nested too deeply")
        self._keys.append(hash(_key(message)))
        self._made.append(self._conversation.drafts[before:])

    def _say(self, message: Any, line: Line) -> None:
        content = message.get("content") if isinstance(message, dict) else None
        role = text_of(message, "role")
        if not isinstance(content, str | list) or role not in ("user", "assistant", "system"):
            line.is_unknown("expected the role user or assistant, and content as text or blocks")
        elif role == "assistant":
            self._assistant(content, line)
        elif role == "system":
            self._conversation.drafts.append(
                line.became(Draft("system", content_of(content, line)))
            )
        else:
            drafts = user_drafts(content, line)
            self._conversation.drafts.extend(line.became(draft) for draft in drafts)

    def _assistant(self, content: str | list[Any], line: Line) -> None:
        """Take an assistant message; the server may have compacted within it."""
        turn = AssistantTurn()
        rest: list[Any] = []
        for block in content if isinstance(content, list) else [content]:
            if not isinstance(block, dict) or text_of(block, "type") != "compaction":
                rest.append(block)
                continue
            if rest:
                self._conversation.drafts.extend(turn.add(rest, line))
            turn, rest = AssistantTurn(), []
            self._compaction(block, line)
        if rest or not content:
            self._conversation.drafts.extend(turn.add(rest, line))
        else:
            line.skip("it ends with a compaction, which is recorded beside the messages")

    def _compaction(self, block: dict[str, Any], line: Line) -> None:
        drafts = self._conversation.drafts
        summary = content_of(block.get("content"), line)
        text = "\n".join(part for part in summary if isinstance(part, str))
        line.leave_out("compaction", "it is recorded beside the messages")
        self._conversation.compactions.append(
            Compaction(
                after=drafts[-1] if drafts else None,
                kind="summary" if text else "opaque",
                summary=text or None,
                state=[Draft("user", [text])] if text else None,
            )
        )

    def finish(self) -> Conversation:
        """Return the conversation."""
        if self._system is None:
            self._conversation.caveats.append("the file does not hold the system prompt")
        if not self._conversation.tools:
            self._conversation.caveats.append("the file does not hold the tools")
        return self._conversation


def _place(value: Any, thread: _Thread | None) -> Place:
    request = _request(value)
    if request is None or not request["messages"]:
        return "foreign"
    if thread is not None and thread.goes_on_with(value, request):
        return "belongs"
    return "opens"


def _recognise(source: SourceFile) -> str | None:
    values = source.head or [source.document]
    for value in values:
        request = _request(value)
        if request is None or "trajectory_format" in request:
            continue
        blocks = [block for message in request["messages"] for block in list_of(message, "content")]
        if not all(map(_is_linked, blocks)):
            return None
        if any(mapping_of(tool, "input_schema") for tool in list_of(request, "tools")):
            return "messages with tools that have an input_schema"
        if any(map(is_anthropic_block, blocks)):
            return "messages with content blocks such as tool_use and tool_result"
        if text_of(request, "anthropic_version") or _system_outside(request):
            return "messages with the system prompt beside them"
    return None


def _is_linked(block: Any) -> bool:
    """Return whether calls and results name each other as Anthropic's do; other agents differ."""
    name = {"tool_use": "id", "tool_result": "tool_use_id"}.get(text_of(block, "type"))
    return name is None or name in block


def _system_outside(request: dict[str, Any]) -> bool:
    roles = {text_of(message, "role") for message in request["messages"]}
    return (
        bool(request.get("system")) and "max_tokens" in request and roles <= {"user", "assistant"}
    )


def _read(source: SourceFile) -> Iterator[Conversation]:
    numbers = iter(range(1, 2**31))
    yield from threads(source, expected=_FORM, place=_place, new=lambda: _Thread(next(numbers)))


FORMAT = Format(name="anthropic", title="Anthropic messages", recognise=_recognise, read=_read)
