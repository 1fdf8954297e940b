"""mini-swe-agent trajectories: a bare list of messages, or, later, an object that holds one.

Commands in fenced blocks stay text, as the model wrote and saw them: a call made of one would
need an id that nobody gave, and would turn the results, which are user messages, into something
else. Models that call tools have calls and ids of their own, which are kept.
"""

from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Conversation, Draft, DraftCall
from compression_eval.conversations.fields import as_text, label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.openai_content import content_of
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
    TEXT_ACTIONS,
    identifier,
    json_document,
    leave_out_thinking,
    origin,
    without_thinking,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.errors import DataError

_EXPECTED = "a mini-swe-agent trajectory: a list of messages, or an object with messages and info"
_FENCES = ("```mswea_bash_command", "```bash")
_RESULTS = ("<returncode>", "Observation:")
_ROLES = ("system", "user", "assistant")


def _draft(message: dict[str, Any], line: Line) -> Draft | None:
    role = text_of(message, "role")
    if text_of(message, "object") == "response":
        return _response(message, line)
    if text_of(message, "type") == "function_call_output":
        content = content_of(message.get("output"), line)
        return Draft("tool", content, call_id=identifier(message, "call_id"))
    content = content_of(message.get("content"), line)
    if message.get("reasoning_content") or message.get("thinking_blocks"):
        leave_out_thinking(line)
    if role == "assistant":
        return _turn(content, list_of(message, "tool_calls"), line)
    if role == "tool":
        return Draft("tool", content, call_id=identifier(message, "tool_call_id"))
    if role in ("system", "user"):
        return Draft("system" if role == "system" else "user", content)
    if role == "exit":
        line.skip("the end of the run, which the model does not see")
    else:
        line.is_unknown("expected a message of role system, user, assistant, tool or exit")
    return None


def _turn(content: list[Any], calls: list[Any], line: Line) -> Draft:
    turn = Draft("assistant")
    for part in content:
        turn.content.append(without_thinking(part, line) if isinstance(part, str) else part)
    for call in calls:
        function = mapping_of(call, "function")
        if not function:
            line.leave_out("tool call", "expected a call of a function")
            continue
        arguments = as_text(function.get("arguments"))
        turn.calls.append(DraftCall(identifier(call, "id"), text_of(function, "name"), arguments))
    return turn


def _response(message: dict[str, Any], line: Line) -> Draft:
    """Return the turn of a reply in the form of the Responses API."""
    turn = Draft("assistant")
    for item in list_of(message, "output"):
        kind = text_of(item, "type")
        if kind == "message":
            turn.content.extend(content_of(item.get("content"), line))
        elif kind == "function_call":
            arguments = as_text(item.get("arguments"))
            turn.calls.append(
                DraftCall(identifier(item, "call_id"), text_of(item, "name"), arguments)
            )
        elif kind == "reasoning":
            leave_out_thinking(line)
        else:
            line.leave_out(f"item {label(kind)}", "unknown kind of content")
    return turn


def _messages(document: Any) -> list[Any]:
    return document if isinstance(document, list) else list_of(document, "messages")


def _named(document: Any) -> bool:
    """Tell whether an object says of itself that it is a trajectory of mini-swe-agent."""
    named = text_of(document, "trajectory_format").startswith("mini-swe-agent")
    return named or bool(text_of(mapping_of(document, "info"), "mini_version"))


def _has_fences(messages: list[Any]) -> bool:
    return any(
        text_of(message, "role") == "assistant"
        and any(fence in text_of(message, "content") for fence in _FENCES)
        for message in messages
    )


def _recognise(source: SourceFile) -> str | None:
    document = source.document
    if _named(document) and list_of(document, "messages"):
        return "a JSON object of mini-swe-agent with messages"
    messages = _messages(document)
    results = any(
        text_of(message, "role") == "user" and text_of(message, "content").startswith(_RESULTS)
        for message in messages
    )
    if isinstance(document, list) and results and _has_fences(messages):
        return "a list of messages with commands in fenced blocks and their return codes"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    document = json_document(source, _EXPECTED)
    messages = _messages(document)
    marked = _named(document) or _has_fences(messages)
    if not marked or not any(text_of(message, "role") in _ROLES for message in messages):
        raise DataError(f"{source.path}: expected {_EXPECTED}, found none")
    info = mapping_of(document, "info")
    model = mapping_of(mapping_of(info, "config"), "model")
    conversation = Conversation(
        "mini-swe-agent",
        origin("mini-swe-agent", text_of(info, "mini_version")),
        identifier(document, "instance_id"),
        Ledger(),
        model=origin(text_of(model, "model_name")),
        caveats=[NO_TOOLS],
    )
    for number, message in enumerate(messages, 1):
        kind = text_of(message, "role") or text_of(message, "type") or text_of(message, "object")
        line = conversation.ledger.enter(f"message {number}", label(kind))
        if not isinstance(message, dict):
            line.is_unknown("expected an object with role and content")
        elif (draft := _draft(message, line)) is not None:
            conversation.drafts.append(line.became(draft))
    if not any(draft.role == "system" for draft in conversation.drafts):
        conversation.caveats.append(NO_SYSTEM_PROMPT)
    if _has_fences(messages) and not any(draft.calls for draft in conversation.drafts):
        conversation.caveats.append(TEXT_ACTIONS)
    if source.document_replaced:
        conversation.caveats.append(REPLACED_BYTES)
    yield conversation


FORMAT = Format(
    name="mini-swe-agent",
    title="mini-swe-agent trajectories (.traj.json)",
    recognise=_recognise,
    read=_read,
)
