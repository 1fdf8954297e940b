"""Anthropic's messages interface: what a request must be, what it says, and its replies."""

from collections.abc import Iterator
from typing import Any

from tests.e2e.vendors.wire import Asked, Failed, Part, Said, as_json, check_schema_is_meant, need

Body = dict[str, Any]

MOST_BREAKPOINTS = 4


def parts(path: str, body: Body) -> list[Part]:
    """Take a request apart; refuses it as the vendor would.

    Raises:
        RefusedError: The request is not acceptable.
    """
    need(path.endswith("/v1/messages"), f"no such interface: {path}")
    need(body.get("max_tokens", 0) > 0, "max_tokens: field required")
    if "output_format" in body:
        check_schema_is_meant(body["output_format"]["schema"])
    system = body.get("system", [])
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    found = [Part("system", "text", block["text"]) for block in system]
    _check_messages(body["messages"])
    for message in body["messages"]:
        found.extend(_block_part(message["role"], block) for block in blocks(message))
    if any(part.kind != "text" for part in found):
        need(
            body.get("tools"),
            "Requests which include `tool_use` or `tool_result` blocks must define tools",
        )
    marked = as_json(body).count('"cache_control"')
    need(marked <= MOST_BREAKPOINTS, f"a maximum of 4 blocks with cache_control, found {marked}")
    return found


def blocks(message: Body) -> list[Body]:
    """Return the content of a message as blocks."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _check_messages(messages: list[Body]) -> None:
    need(messages, "messages: at least one message is required")
    need(messages[0]["role"] == "user", "messages: first message must use the user role")
    for index, message in enumerate(messages):
        need(message["role"] in ("user", "assistant"), f"messages.{index}: unknown role")
        if index:
            need(
                messages[index - 1]["role"] != message["role"],
                "messages: roles must alternate",
            )
        for block in blocks(message):
            need(block["type"] != "text" or block["text"], "text content blocks must be non-empty")
        before = {b["id"] for b in blocks(messages[index - 1]) if b["type"] == "tool_use"}
        before = before if index else set()
        results = {b["tool_use_id"] for b in blocks(message) if b["type"] == "tool_result"}
        need(before <= results, f"tool_use ids without tool_result blocks: {before - results}")
        need(results <= before, f"unexpected tool_use_id in tool_result: {results - before}")
    last = {b["id"] for b in blocks(messages[-1]) if b["type"] == "tool_use"}
    need(not last, f"tool_use ids without tool_result blocks: {last}")


def _block_part(role: str, block: Body) -> Part:
    if block["type"] == "tool_use":
        return Part(role, "call", as_json(block["input"]), block["id"], block["name"])
    if block["type"] == "tool_result":
        content = block["content"]
        text = content if isinstance(content, str) else "\n".join(b["text"] for b in content)
        return Part(role, "result", text, block["tool_use_id"])
    need(block["type"] == "text", f"unknown block {block['type']}")
    return Part(role, "text", block["text"])


def reply(asked: Asked, said: Said) -> Body:
    """Put a reply into the vendor's form."""
    content: list[Body] = (
        [{"type": "text", "text": said.text}] if said.text and not said.nothing else []
    )
    reason = "max_tokens" if said.cut_off else "refusal" if said.refused else "end_turn"
    if said.call:
        name, arguments = said.call
        content.append({"type": "tool_use", "id": "toolu_new", "name": name, "input": arguments})
        reason = "tool_use"
    return {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": said.input_tokens,
            "output_tokens": said.output_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def stream(whole: Body) -> Iterator[tuple[str, Body]]:
    """Yield a reply as the events that it is streamed in."""
    start = {**whole, "content": [], "stop_reason": None}
    yield "message_start", {"message": start}
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        elif block["type"] == "compaction":
            empty = {**block, "content": None}
            delta = {"type": "compaction_delta", "content": block["content"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": as_json(block["input"])}
        yield "content_block_start", {"index": index, "content_block": empty}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": ending, "usage": whole["usage"]}
    yield "message_stop", {}


def error(failed: Failed) -> Body:
    """Put an error into the vendor's form."""
    return {"type": "error", "error": {"type": failed.kind, "message": failed.message}}
