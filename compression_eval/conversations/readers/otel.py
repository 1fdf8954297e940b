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

from compression_eval.conversations.drafts import ENTERED_APART, REPLACED_BYTES, Conversation
from compression_eval.conversations.fields import (
    Json,
    as_text,
    entries,
    from_json,
    json_object,
    label,
    origin,
    tool_definitions,
)
from compression_eval.conversations.readers.base import Format, records
from compression_eval.conversations.readers.openai import ChatMessages
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.errors import DataError

_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_DETAILS = "gen_ai.client.inference.operation.details"
_ROLES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
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
    attributes: Json = field(default_factory=Json)
    events: list[tuple[str, Json]] = field(default_factory=list)
    replaced: bool = False

    def listed(self, name: str) -> list[Any]:
        """Return an attribute that is a list, perhaps as JSON text."""
        value = _parsed(self.attributes.get(name))
        return value if isinstance(value, list) else []

    def messages(self) -> tuple[list[Any], list[Any]]:
        """Return the messages sent and those that came back, in the form of chat messages."""
        sent = [_role(message) for message in self.listed(_INPUT)]
        back = [_role(message) for message in self.listed(_OUTPUT)[:1]]
        for name, fields in self.events:
            if name in _ROLES:
                sent.append(_of_event(_ROLES[name], fields))
            elif name == _CHOICE and not back:
                message = _parsed(fields.at("message"))
                inner = Json(message) if isinstance(message, dict) else fields
                back.append(_of_event("assistant", inner))
        return sent, back


class _Thread(Conversation):
    """A conversation whose requests each repeat and go on with what came before."""

    def __init__(self, session: str, part: str) -> None:
        super().__init__("otel", "OpenTelemetry spans", session, part=part)
        self._reader = ChatMessages()
        self.keys: list[str] = []
        self._answers: dict[int, list[str]] = {}
        """By place, what is sure of a message that a model gave back; sent again, it may differ."""

    def goes_on_with(self, keys: list[str], sent: list[Any]) -> bool:
        """Return whether a request repeats all of this conversation."""
        return len(keys) >= len(self.keys) and all(
            known == key or (place in self._answers and self._answers[place] == _gist(message))
            for place, (known, key, message) in enumerate(zip(self.keys, keys, sent, strict=False))
        )

    def _add(self, message: Any, place: str) -> None:
        line = self.ledger.enter(place, label(Json.of(message).text("role")))
        for part in _chat(message):
            self.say(line, *self._reader.read(line, Json.of(part)))

    def take(self, request: _Request, sent: list[Any], keys: list[str], back: list[Any]) -> None:
        line = self.ledger.enter(request.place, "request")
        line.skip(f"a request; the messages that it adds {ENTERED_APART}")
        if request.replaced:
            line.leave_out("bytes", REPLACED_BYTES)
        if len(request.listed(_OUTPUT)) > 1:
            line.leave_out("choices", "only the first answer was gone on with")
        model = request.attributes.first("gen_ai.response.model", "gen_ai.request.model")
        self.model = origin(model) or self.model
        tools = tool_definitions(request.listed("gen_ai.tool.definitions"))[0]
        self.tools = tools or self.tools
        instructions = request.listed("gen_ai.system_instructions")
        if instructions and not self.drafts:
            self._add({"role": "system", "parts": instructions}, f"{request.place}, instructions")
        for number in range(len(self.keys), len(sent)):
            self._add(sent[number], f"{request.place}, input {number}")
        self.keys = keys
        for message in back:
            self._answers[len(keys)] = _gist(message)
            self._add(message, f"{request.place}, output")
            self.keys = [*keys, _key(message)]


def _chat(message: Any) -> list[Any]:
    """Return a message with parts as chat messages: each result is one of its own."""
    parts, role = Json.of(message).at("parts"), Json.of(message).text("role")
    if not isinstance(parts, list):
        return [message]
    content: list[Any] = []
    calls: list[Any] = []
    results: list[Any] = []
    for value in parts:
        part = Json.of(value)
        match part.text("type"):
            case "text":
                content.append({"type": "text", "text": part.text("content")})
            case "tool_call" | "server_tool_call" as kind:
                arguments = part.at("arguments" if kind == "tool_call" else kind)
                function = {"name": part.text("name"), "arguments": as_text(arguments or {})}
                calls.append({"id": part.name("id"), "function": function})
            case "tool_call_response" | "server_tool_call_response" as kind:
                found = (part[key] for key in ("response", "result", kind) if key in part)
                result = {"role": "tool", "tool_call_id": part.name("id")}
                results.append({**result, "content": as_text(next(found, ""))})
            case "blob" | "uri" as kind if part.text("modality") == "image":
                url = part.text("uri")
                if kind == "blob":
                    url = f"data:{part.text('mime_type')};base64,{part.text('content')}"
                content.append({"type": "image_url", "image_url": {"url": url}})
            case "blob" | "uri" | "file" if part.text("modality") in ("image", ""):
                content.append({"type": "file"})
            case _:
                content.append(value)
    if role == "tool" and results and not content:
        return results
    said = {"role": role, "content": content, "tool_calls": calls}
    # Results that the provider's own tools gave stand behind their calls in one message.
    behind = [said, *results] if calls else [*results, said]
    return behind if content or calls or not results else results


def _of_event(role: str, fields: Json) -> dict[str, Any]:
    """Return the message of an event of the older conventions."""
    calls, content = _parsed(fields.at("tool_calls")), _parsed(fields.at("content"))
    message = {
        "role": fields.text("role") or role,
        "content": content if isinstance(content, str | list | None) else as_text(content),
        "tool_calls": calls if isinstance(calls, list) else [],
    }
    if role == "tool":
        message |= {"role": "tool", "tool_call_id": fields.name("id")}
    return message


def _role(message: Any) -> Any:
    """Return a message whose role is one of the chat form, where instrumentations differ."""
    if Json.of(message).text("role") == "model":
        return {**message, "role": "assistant"}
    return message


def _key(message: Any) -> str:
    """Return what two copies of a message have in common."""
    try:
        return json.dumps([_bare(part) for part in _chat(message)], sort_keys=True)
    except RecursionError:
        return f"nested too deeply {id(message)}"


def _bare(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    message, calls = Json(value), []
    for call in message.entries("tool_calls"):
        text = call.json("function", "arguments")
        arguments = json_object(text) if text else {}
        calls.append([call.name("id"), call.text("function", "name"), arguments])
    return [message.text("role"), _text(message), calls, message.name("tool_call_id")]


def _gist(message: Any) -> list[str]:
    """Return the role and the ids of the calls of a message, or else its words."""
    parts = entries([part for part in _chat(message) if isinstance(part, dict)])
    ids = [call.name("id") for part in parts for call in part.entries("tool_calls")]
    words = [word for part in parts for word in str(_text(part)).split()]
    return [Json.of(message).text("role"), *(ids if any(ids) else words)]


def _text(message: Json) -> Any:
    content = message.at("content")
    if not isinstance(content, list):
        return content or ""
    return "\n".join(filter(None, (part.text("text") for part in entries(content))))


def _parsed(value: Any) -> Any:
    """Return what a text with JSON holds; anything else as it is."""
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    found = from_json(value)
    return value if found is None else found


def _any_value(value: Any) -> Any:
    """Return a value of OTLP as a plain one."""
    if not isinstance(value, dict):
        return value
    for key in ("stringValue", "boolValue", "intValue", "doubleValue", "bytesValue"):
        if key in value:
            return value[key]
    if "arrayValue" in value:
        return [_any_value(item) for item in Json(value).listed("arrayValue", "values")]
    if "kvlistValue" in value:
        return _attributes(Json(attributes=Json(value).listed("kvlistValue", "values")))
    return None


def _attributes(holder: Json) -> Json:
    """Return the attributes of a span, an event or a log record."""
    listed = holder.entries("attributes")
    found = {item.text("key"): _any_value(item.at("value")) for item in listed if item.text("key")}
    return holder.entry("attributes") or Json(found)


def _items(value: Any) -> Iterator[tuple[str, Json, bool]]:
    """Yield number, span or log record, and whether it is a record, of a value of a file."""
    if isinstance(value, list):
        for number, item in enumerate(entries(value), 1):
            yield f", item {number}", item, False
        return
    batch, number = Json.of(value), 0
    for outer, scopes, inner in (
        ("resourceSpans", "scopeSpans", "spans"),
        ("resourceLogs", "scopeLogs", "logRecords"),
    ):
        for resource in batch.entries(outer):
            for scope in resource.entries(scopes):
                for item in scope.entries(inner):
                    number += 1
                    yield f", {inner[:-1]} {number}", item, inner == "logRecords"
    if not number and "attributes" in batch:
        yield "", batch, "body" in batch


def _holds_messages(item: Json, record: bool) -> bool:
    names = [name for name, _ in _events(item, record)]
    return bool(_attributes(item).keys() & {_INPUT, _OUTPUT}) or any(
        name in (*_ROLES, _CHOICE, _DETAILS) for name in names
    )


def _events(item: Json, record: bool) -> Iterator[tuple[str, Json]]:
    """Yield name and fields of the events of a span, or of a log record, which is one."""
    if not record:
        for event in item.entries("events"):
            yield event.text("name"), _attributes(event)
        return
    attributes, body = _attributes(item), _any_value(item.entry("body") or None)
    name = item.text("eventName") or attributes.text("event.name")
    yield name, Json({**attributes, **Json.of(body)})


def _id(item: Json, camel: str, snake: str) -> str:
    """Return the trace or the span that something belongs to."""
    found = item.first(camel, snake) or item.text("context", snake)
    return found.removeprefix("0x")


class _File:
    """All requests of a file, and what is none."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str], _Request] = {}
        self.others: list[tuple[str, str, str]] = []
        """Place, kind and reason of what holds no messages."""

    def take(self, value: Value) -> None:
        if value.problem:
            self.others.append((value.place, "unreadable", value.problem))
            return
        found = False
        for number, item, record in _items(value.value):
            found = True
            place = f"{value.place}{number}"
            if not _holds_messages(item, record):
                operation = _attributes(item).text("gen_ai.operation.name")
                kind = label(operation or ("log record" if record else "span"))
                self.others.append((place, kind, "it holds no messages"))
            else:
                self._add(place, item, record, replaced=value.replaced)
        if not found:
            self.others.append((value.place, "other", "it holds no spans or log records"))

    def _add(self, place: str, item: Json, record: bool, *, replaced: bool) -> None:
        ids = _id(item, "traceId", "trace_id"), _id(item, "spanId", "span_id")
        request = self.requests.setdefault(ids if any(ids) else (place, ""), _Request(place))
        request.replaced = request.replaced or replaced
        if not record or not request.start[0]:
            names = map(item.name, ("startTimeUnixNano", "timeUnixNano", "start_time"))
            time = next(filter(None, names), "")
            number = time.isascii() and time.isdigit()
            request.start = (int(time), "") if number else (0, time)
        attributes = _attributes(item)
        if not record:
            request.attributes |= attributes
        for name, fields in _events(item, record):
            if name == _DETAILS:
                request.attributes |= fields
            else:
                request.events.append((name, fields))
        holders = (request.attributes, attributes)
        named = (holder.name("gen_ai.conversation.id") for holder in holders)
        request.group = next(filter(None, named), ids[0])

    def conversations(self) -> Iterator[Conversation]:
        groups: dict[str, list[_Request]] = defaultdict(list)
        for request in sorted(self.requests.values(), key=lambda known: known.start):
            groups[request.group].append(request)
        for name, requests in groups.items():
            for thread in _threads(name, requests):
                for place, kind, reason in self.others:
                    thread.ledger.enter(place, kind).skip(reason)
                self.others.clear()
                thread.name_missing()
                yield thread


def _threads(name: str, requests: list[_Request]) -> list[_Thread]:
    """Return the conversations of a group; a request goes on with one of them or opens another."""
    threads: list[_Thread] = []
    agents = [r for r in requests if r.attributes.text("gen_ai.operation.name") in _AGENTS]
    inner = [request for request in requests if request not in agents] or requests
    for request in inner:
        sent, back = request.messages()
        keys = [_key(message) for message in sent]
        fitting = [thread for thread in threads if thread.goes_on_with(keys, sent)]
        thread = max(fitting, key=lambda known: len(known.keys), default=None)
        if thread is None:
            thread = _Thread(name, f"thread-{len(threads) + 1}" if threads else "")
            users = (_key(said) for said in sent if Json.of(said).text("role") == "user")
            asked = next(users, None)
            if any(asked in known.keys for known in threads):
                thread.caveat(_ALIKE)
            threads.append(thread)
        thread.take(request, sent, keys, back)
    if len(inner) < len(requests):
        for request in agents:
            line = threads[0].ledger.enter(request.place, "agent")
            line.skip("it repeats what the requests within it hold")
    return threads


def _recognise(source: SourceFile) -> str | None:
    for value in source.head or [source.document]:
        try:
            if any(_holds_messages(item, record) for _, item, record in _items(value)):
                return "spans or events with messages of gen_ai"
        except RecursionError:
            continue
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    file = _File()
    for value in records(source):
        try:
            file.take(value)
        except RecursionError:
            file.others.append((value.place, "unreadable", "nested too deeply"))
    if not file.requests:
        expected = "spans or events with gen_ai.input.messages or gen_ai.*.message"
        raise DataError(f"{source.path}: expected {expected}, found none")
    yield from file.conversations()


FORMAT = Format("otel", "OpenTelemetry GenAI spans (OTLP JSON, JSONL)", _recognise, _read)
