"""Spans and events of OpenTelemetry's conventions for generative AI.

A file holds OTLP as JSON (one document, or a line for each batch, spans or log records), or a span
on each line as the Python SDK prints it. Every request to a model holds the whole history that was
sent: in attributes (``gen_ai.input.messages``, ``gen_ai.output.messages``), in an event with the
same attributes, or, before version 1.37 of the conventions, in one event for each message.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.fields import (
    as_text,
    from_json,
    identifier,
    json_object,
    label,
    list_of,
    mapping_of,
    origin,
    text_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.base import (
    REPLACED_BYTES,
    Entry,
    records,
    tool_definitions,
)
from compression_eval.conversations.readers.openai import ChatMessages
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError

_EXPECTED = "spans or events with gen_ai.input.messages or gen_ai.*.message"
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_INSTRUCTIONS, _TOOLS = "gen_ai.system_instructions", "gen_ai.tool.definitions"
_DETAILS = "gen_ai.client.inference.operation.details"
_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CHOICE = "gen_ai.choice"
_AGENTS = ("invoke_agent", "create_agent", "invoke_workflow")
"""Operations that repeat what the requests within them hold."""
_ALIKE = (
    "the conversation begins like an earlier one of the same id or trace: the agent may have "
    "compacted its context, which spans do not mark"
)


@dataclass
class _Request:
    """One request to a model, from a span and the events that belong to it."""

    place: str
    group: str = ""
    """The conversation, or else the trace, that it belongs to."""
    start: tuple[int, str] = (0, "")
    attributes: Entry = field(default_factory=dict)
    events: list[tuple[str, Entry]] = field(default_factory=list)
    replaced: bool = False

    def messages(self) -> tuple[list[Any], list[Any]]:
        """Return the messages sent and those that came back, in the form of chat messages."""
        sent = [_role(message) for message in _listed(self.attributes.get(_INPUT))]
        back = [_role(message) for message in _listed(self.attributes.get(_OUTPUT))[:1]]
        for name, fields in self.events:
            if name in _ROLES:
                sent.append(_of_event(_ROLES[name], fields))
            elif name == _CHOICE and not back:
                message = _parsed(fields.get("message"))
                inner = message if isinstance(message, dict) else fields
                back.append(_of_event("assistant", inner))
        return sent, back


@dataclass
class _Thread:
    """A conversation whose requests each repeat and go on with what came before."""

    conversation: Conversation
    reader: ChatMessages
    keys: list[str] = field(default_factory=list)
    answers: dict[int, list[str]] = field(default_factory=dict)
    """By place, what is sure of a message that a model gave back; sent again, it may differ."""

    def goes_on_with(self, keys: list[str], sent: list[Any]) -> bool:
        """Return whether a request repeats all of this conversation."""
        return len(keys) >= len(self.keys) and all(
            known == key or (place in self.answers and self.answers[place] == _gist(message))
            for place, (known, key, message) in enumerate(zip(self.keys, keys, sent, strict=False))
        )

    def add(self, message: Any, place: str) -> None:
        line = self.conversation.ledger.enter(place, label(text_of(message, "role")))
        for part in _chat(message):
            self.reader.read(line, part)


def _chat(message: Any) -> list[Any]:
    """Return a message with parts as chat messages: each result is one of its own."""
    parts = message.get("parts") if isinstance(message, dict) else None
    if not isinstance(parts, list):
        return [message]
    content: list[Any] = []
    calls: list[Any] = []
    results: list[Any] = []
    for part in parts:
        match text_of(part, "type"):
            case "text":
                content.append({"type": "text", "text": text_of(part, "content")})
            case "tool_call" | "server_tool_call" as kind:
                arguments = part.get("arguments" if kind == "tool_call" else kind)
                function = {"name": text_of(part, "name"), "arguments": as_text(arguments or {})}
                calls.append({"id": identifier(part, "id"), "function": function})
            case "tool_call_response" | "server_tool_call_response" as kind:
                found = (part[key] for key in ("response", "result", kind) if key in part)
                result = {"role": "tool", "tool_call_id": identifier(part, "id")}
                results.append({**result, "content": as_text(next(found, ""))})
            case "blob" | "uri" | "file" as kind if text_of(part, "modality") in ("image", ""):
                content.append(_attached(kind, part))
            case _:
                content.append(part)
    if text_of(message, "role") == "tool" and results and not content:
        return results
    said = {"role": text_of(message, "role"), "content": content, "tool_calls": calls}
    if not results:
        return [said]
    # Results that the provider's own tools gave stand behind their calls in one message.
    return [said, *results] if calls else [*results, said] if content else results


def _attached(kind: str, part: Entry) -> Entry:
    if kind == "file" or text_of(part, "modality") != "image":
        return {"type": "file"}
    url = text_of(part, "uri")
    if kind == "blob":
        url = f"data:{text_of(part, 'mime_type')};base64,{text_of(part, 'content')}"
    return {"type": "image_url", "image_url": {"url": url}}


def _of_event(role: str, fields: Entry) -> Entry:
    """Return the message of an event of the older conventions."""
    calls = _parsed(fields.get("tool_calls"))
    content = _parsed(fields.get("content"))
    message = {
        "role": text_of(fields, "role") or role,
        "content": content if isinstance(content, str | list | None) else as_text(content),
        "tool_calls": calls if isinstance(calls, list) else [],
    }
    if role == "tool":
        message |= {"role": "tool", "tool_call_id": identifier(fields, "id")}
    return message


def _role(message: Any) -> Any:
    """Return a message whose role is one of the chat form, where instrumentations differ."""
    if text_of(message, "role") == "model":
        return {**message, "role": "assistant"}
    return message


def _key(message: Any) -> str:
    """Return what two copies of a message have in common."""
    try:
        return json.dumps([_bare(part) for part in _chat(message)], sort_keys=True)
    except RecursionError:
        return f"nested too deeply {id(message)}"


def _gist(message: Any) -> list[str]:
    """Return the role and the ids of the calls of a message, or else its words."""
    parts = [part for part in _chat(message) if isinstance(part, dict)]
    ids = [identifier(call, "id") for part in parts for call in list_of(part, "tool_calls")]
    words = [word for part in parts for word in str(_text(part)).split()]
    return [text_of(message, "role"), *(ids if any(ids) else words)]


def _bare(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    calls = [
        [identifier(call, "id"), text_of(function, "name"), _arguments(function)]
        for call in list_of(message, "tool_calls")
        for function in [mapping_of(call, "function")]
    ]
    return [text_of(message, "role"), _text(message), calls, identifier(message, "tool_call_id")]


def _text(message: Entry) -> Any:
    content = message.get("content")
    if not isinstance(content, list):
        return content or ""
    return "\n".join(filter(None, (text_of(part, "text") for part in content)))


def _arguments(function: Entry) -> Any:
    text = as_text(function.get("arguments"))
    return json_object(text) if text else {}


def _parsed(value: Any) -> Any:
    """Return what a text with JSON holds; anything else as it is."""
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    found = from_json(value)
    return value if found is None else found


def _listed(value: Any) -> list[Any]:
    return list_of(_parsed(value))


def _any_value(value: Any) -> Any:
    """Return a value of OTLP as a plain one."""
    if not isinstance(value, dict):
        return value
    for key in ("stringValue", "boolValue", "intValue", "doubleValue", "bytesValue"):
        if key in value:
            return value[key]
    if "arrayValue" in value:
        return [_any_value(item) for item in list_of(value["arrayValue"], "values")]
    if "kvlistValue" in value:
        return _attributes({"attributes": list_of(value["kvlistValue"], "values")})
    return None


def _attributes(holder: Any) -> Entry:
    """Return the attributes of a span, an event or a log record."""
    plain = mapping_of(holder, "attributes")
    if plain:
        return plain
    return {
        key: _any_value(item.get("value"))
        for item in list_of(holder, "attributes")
        if (key := text_of(item, "key"))
    }


def _items(value: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield number, span or log record, and whether it is a record, of a value of a file."""
    if isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield f", item {number}", item, False
        return
    number = 0
    for outer, scopes, inner in (
        ("resourceSpans", "scopeSpans", "spans"),
        ("resourceLogs", "scopeLogs", "logRecords"),
    ):
        for resource in list_of(value, outer):
            for scope in list_of(resource, scopes):
                for item in list_of(scope, inner):
                    number += 1
                    yield f", {inner[:-1]} {number}", item, inner == "logRecords"
    if not number and isinstance(value, dict) and "attributes" in value:
        yield "", value, "body" in value


def _is_own(value: Any) -> bool:
    try:
        return any(_holds_messages(item, record) for _, item, record in _items(value))
    except RecursionError:
        return False


def _holds_messages(item: Any, record: bool) -> bool:
    attributes = _attributes(item)
    names = [name for name, _ in _events(item, record)]
    return bool(attributes.keys() & {_INPUT, _OUTPUT}) or any(
        name in (*_ROLES, _CHOICE, _DETAILS) for name in names
    )


def _events(item: Any, record: bool) -> Iterator[tuple[str, Entry]]:
    """Yield name and fields of the events of a span, or of a log record, which is one."""
    if not record:
        for event in list_of(item, "events"):
            yield text_of(event, "name"), _attributes(event)
        return
    attributes = _attributes(item)
    body = _any_value(mapping_of(item, "body")) if mapping_of(item, "body") else None
    inner = body if isinstance(body, dict) else {}
    name = text_of(item, "eventName") or text_of(attributes, "event.name")
    yield name, {**attributes, **inner}


def _ids(item: Any) -> tuple[str, str]:
    """Return the trace and the span that something belongs to."""
    names = (("traceId",), ("trace_id",), ("context", "trace_id"))
    trace = next(filter(None, (text_of(item, *name) for name in names)), "")
    names = (("spanId",), ("span_id",), ("context", "span_id"))
    span = next(filter(None, (text_of(item, *name) for name in names)), "")
    return trace.removeprefix("0x"), span.removeprefix("0x")


def _time(item: Any) -> tuple[int, str]:
    """Return when something began, to be compared with others of the same file."""
    for key in ("startTimeUnixNano", "timeUnixNano", "start_time"):
        text = identifier(item, key)
        if text:
            return (int(text), "") if text.isascii() and text.isdigit() else (0, text)
    return (0, "")


@dataclass
class _File:
    """All requests of a file, and what is none."""

    requests: dict[tuple[str, str], _Request] = field(default_factory=dict)
    others: list[tuple[str, str, str]] = field(default_factory=list)
    """Place, kind and reason of what holds no messages."""

    def take(self, value: Value) -> None:
        if value.problem:
            self.others.append((value.place, "unreadable", value.problem))
            return
        found = False
        for number, item, record in _items(value.value):
            found = True
            place = f"{value.place}{number}"
            operation = text_of(_attributes(item), "gen_ai.operation.name")
            if not _holds_messages(item, record):
                kind = operation or ("log record" if record else "span")
                self.others.append((place, label(kind), "it holds no messages"))
            else:
                self._add(place, item, record, replaced=value.replaced)
        if not found:
            self.others.append((value.place, "other", "it holds no spans or log records"))

    def _add(self, place: str, item: Any, record: bool, *, replaced: bool) -> None:
        ids = _ids(item)
        request = self.requests.setdefault(ids if any(ids) else (place, ""), _Request(place))
        request.replaced = request.replaced or replaced
        if not record or not request.start[0]:
            request.start = _time(item)
        attributes = _attributes(item)
        if not record:
            request.attributes |= attributes
        for name, fields in _events(item, record):
            if name == _DETAILS:
                request.attributes |= fields
            else:
                request.events.append((name, fields))
        conversation = identifier(request.attributes, "gen_ai.conversation.id")
        request.group = conversation or identifier(attributes, "gen_ai.conversation.id") or ids[0]

    def conversations(self) -> Iterator[Conversation]:
        """Yield the conversations of the file."""
        groups: dict[str, list[_Request]] = defaultdict(list)
        for request in sorted(self.requests.values(), key=lambda known: known.start):
            groups[request.group].append(request)
        first = True
        for name, requests in groups.items():
            for thread in self._threads(name, requests):
                if first:
                    for place, kind, reason in self.others:
                        thread.conversation.ledger.enter(place, kind).skip(reason)
                    first = False
                thread.conversation.name_missing()
                yield thread.conversation

    def _threads(self, name: str, requests: list[_Request]) -> list[_Thread]:
        threads: list[_Thread] = []
        agents = [r for r in requests if text_of(r.attributes, "gen_ai.operation.name") in _AGENTS]
        inner = [request for request in requests if request not in agents] or requests
        for request in inner:
            _place(request, name, threads)
        if len(inner) < len(requests):
            for request in agents:
                line = threads[0].conversation.ledger.enter(request.place, "agent")
                line.skip("it repeats what the requests within it hold")
        return threads


def _place(request: _Request, name: str, threads: list[_Thread]) -> None:
    """Add a request to the conversation that it goes on with, or open one."""
    sent, back = request.messages()
    keys = [_key(message) for message in sent]
    fitting = [thread for thread in threads if thread.goes_on_with(keys, sent)]
    thread = max(fitting, key=lambda known: len(known.keys), default=None)
    if thread is None:
        number = len(threads) + 1
        part = "" if number == 1 else f"thread-{number}"
        conversation = Conversation("otel", "OpenTelemetry spans", name, part=part)
        users = (_key(message) for message in sent if text_of(message, "role") == "user")
        asked = next(users, None)
        if any(asked in known.keys for known in threads):
            conversation.caveats.append(_ALIKE)
        thread = _Thread(conversation, ChatMessages(conversation))
        threads.append(thread)
    conversation, attributes = thread.conversation, request.attributes
    line = conversation.ledger.enter(request.place, "request")
    line.skip("a request; the messages that it adds are entered one by one")
    if request.replaced:
        line.leave_out("bytes", REPLACED_BYTES)
    if len(_listed(attributes.get(_OUTPUT))) > 1:
        line.leave_out("choices", "only the first answer was gone on with")
    models = [text_of(attributes, f"gen_ai.{key}.model") for key in ("response", "request")]
    conversation.model = origin(next(filter(None, models), "")) or conversation.model
    conversation.tools = tool_definitions(_listed(attributes.get(_TOOLS)))[0] or conversation.tools
    instructions = _listed(attributes.get(_INSTRUCTIONS))
    if instructions and not conversation.drafts:
        thread.add({"role": "system", "parts": instructions}, f"{request.place}, instructions")
    for number in range(len(thread.keys), len(sent)):
        thread.add(sent[number], f"{request.place}, input {number}")
    thread.keys = keys
    for message in back:
        thread.answers[len(keys)] = _gist(message)
        thread.add(message, f"{request.place}, output")
        thread.keys = [*keys, _key(message)]


def _recognise(source: SourceFile) -> str | None:
    values = source.head or [source.document]
    if any(map(_is_own, values)):
        return "spans or events with messages of gen_ai"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    file = _File()
    for value in records(source):
        try:
            file.take(value)
        except RecursionError:
            file.others.append((value.place, "unreadable", "nested too deeply"))
    if not file.requests:
        raise DataError(f"{source.path}: expected {_EXPECTED}, found none")
    yield from file.conversations()


FORMAT = Format("otel", "OpenTelemetry GenAI spans (OTLP JSON, JSONL)", _recognise, _read)
