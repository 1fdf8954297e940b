"""OpenAI's two interfaces: what a request must be, what it says, and what a reply looks like."""

import json
from collections.abc import Iterator
from typing import Any

from tests.e2e.vendors.wire import Asked, Failed, Part, Said, check_schema_is_meant, need

Body = dict[str, Any]


def parts(path: str, body: Body) -> list[Part]:
    """Take a request apart; refuses it as the vendor would.

    Raises:
        RefusedError: The request is not acceptable.
    """
    _check_common(body)
    if path.endswith("/responses"):
        _check_schema(body.get("text", {}).get("format"))
        if isinstance(body["input"], str):
            return [Part("user", "text", body["input"])]
        return _response_parts(body["input"])
    schema = body.get("response_format", {})
    _check_schema({**schema, **schema.get("json_schema", {})} if schema else None)
    return _chat_parts(body["messages"])


def _check_common(body: Body) -> None:
    need(body.get("model"), "you must provide a model parameter")
    if "tool_choice" in body:
        need(body.get("tools"), "'tool_choice' is only allowed when 'tools' are specified.")
    need(body.get("tools", [1]), "[] is too short - 'tools'")


def _check_schema(schema: Body | None) -> None:
    if schema is None:
        return
    check_schema_is_meant(schema["schema"])
    if not schema.get("strict"):
        return
    for node in _objects(schema["schema"]):
        need(node.get("additionalProperties") is False, "additionalProperties must be false")
        named, required = set(node.get("properties", {})), set(node.get("required", []))
        need(named == required, "'required' must include every key in properties")


def _objects(node: Any) -> Iterator[Body]:
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for value in node.values():
            yield from _objects(value)
    elif isinstance(node, list):
        for value in node:
            yield from _objects(value)


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(str(part["text"]) for part in content)


def _chat_parts(messages: list[Body]) -> list[Part]:
    found: list[Part] = []
    waiting: set[str] = set()
    for message in messages:
        role = message["role"]
        if role == "tool":
            id_ = message["tool_call_id"]
            need(
                id_ in waiting,
                "messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'",
            )
            waiting.discard(id_)
            found.append(Part(role, "result", _text(message["content"]), id_))
            continue
        need(not waiting, f"tool_call_ids did not have response messages: {sorted(waiting)}")
        need(role in ("system", "developer", "user", "assistant"), f"unknown role {role}")
        text = _text(message.get("content"))
        calls = message.get("tool_calls", [])
        need(text or calls, f"a {role} message without content")
        if text:
            found.append(Part(role, "text", text))
        for call in calls:
            waiting.add(call["id"])
            function = call["function"]
            found.append(Part(role, "call", function["arguments"], call["id"], function["name"]))
    need(not waiting, f"tool_call_ids did not have response messages: {sorted(waiting)}")
    return found


def _response_parts(items: list[Body]) -> list[Part]:
    found: list[Part] = []
    waiting: set[str] = set()
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call":
            waiting.add(item["call_id"])
            found.append(
                Part("assistant", "call", item["arguments"], item["call_id"], item["name"])
            )
        elif kind == "function_call_output":
            id_ = item["call_id"]
            need(id_ in waiting, f"No tool call found for function call output with call_id {id_}")
            waiting.discard(id_)
            found.append(Part("tool", "result", _text(item["output"]), id_))
        else:
            need(kind == "message", f"unknown item {kind}")
            found.append(Part(item["role"], "text", _text(item["content"])))
    need(not waiting, f"No tool output found for function call {sorted(waiting)}")
    return found


def reply(asked: Asked, said: Said) -> Body:
    """Put a reply into the form of the interface that was asked."""
    return _response(asked, said) if asked.path.endswith("/responses") else _chat(asked, said)


def _chat(asked: Asked, said: Said) -> Body:
    message: Body = {"role": "assistant", "content": said.text or None, "refusal": None}
    if said.refused:
        message |= {"content": None, "refusal": "I cannot help with that."}
    reason = "length" if said.cut_off else "stop"
    if said.call:
        name, arguments = said.call
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": "call_new", "type": "function", "function": function}]
        reason = "tool_calls"
    choice: Body = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    return {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": 1_750_000_000,
        "model": asked.model,
        "choices": [] if said.nothing else [choice],
        "usage": {
            "prompt_tokens": said.input_tokens,
            "completion_tokens": said.output_tokens,
            "total_tokens": said.input_tokens + said.output_tokens,
        },
    }


def _response(asked: Asked, said: Said) -> Body:
    content: Body = {"type": "output_text", "text": said.text, "annotations": []}
    if said.refused:
        content = {"type": "refusal", "refusal": said.text or "I cannot help with that."}
    output: list[Body] = [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [content],
        }
    ]
    if said.call:
        name, arguments = said.call
        output = [
            {
                "id": "fc_1",
                "type": "function_call",
                "call_id": "call_new",
                "name": name,
                "arguments": json.dumps(arguments),
                "status": "completed",
            }
        ]
    return {
        "id": f"resp_{asked.number}",
        "object": "response",
        "created_at": 1_750_000_000,
        "model": asked.model,
        "status": "incomplete" if said.cut_off else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if said.cut_off else None,
        "error": None,
        "output": [] if said.nothing else output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": said.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": said.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": said.input_tokens + said.output_tokens,
        },
    }


def error(failed: Failed) -> Body:
    """Put an error into the vendor's form."""
    return {
        "error": {
            "message": failed.message,
            "type": failed.kind,
            "param": None,
            "code": failed.code,
        }
    }
