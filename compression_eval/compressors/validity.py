"""Whether a state is one that a provider would accept and an agent could go on from."""

from collections.abc import Sequence

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ContentData

from compression_eval.compressors.tokens import message_text, token_counter
from compression_eval.compressors.window import groups

DEFAULT_MIN_REMOVED = 0.1
"""Share of the tokens beside the system prompt that a compression must at least remove.

A product that gives up half-way leaves nearly everything and would win every table; one release
that did removed 7 %. The strategies in use remove 25 % of a short conversation and over 90 % of a
long one.
"""


def size_problem(
    before: Sequence[ChatMessage], after: Sequence[ChatMessage], min_removed: float
) -> str | None:
    """Return why a state is not smaller than what was compressed, or None.

    Leading system messages are not counted, because no strategy may remove them: a short
    conversation under a long system prompt can be compressed like any other. In a chain each
    compression is held to its own input, so that one that does nothing cannot hide behind an
    earlier one that did much.

    Args:
        before: What was compressed: the history, or an earlier state with what followed it.
        after: The state that was left.
        min_removed: Least share to be removed, 0 to 1; with 0 one token less is enough.
    """
    counter = token_counter()
    was = counter.messages(_body(before))
    left = counter.messages(_body(after))
    if left < was and was - left >= min_removed * was:
        return None
    removed = (was - left) / was if was else 0.0
    return (
        f"{was} tokens before, {left} after (system prompt not counted): {removed:.1%} removed, "
        f"at least {min_removed:.1%} is asked for (min_removed)"
    )


def structural_problem(
    messages: Sequence[ChatMessage], before: Sequence[ChatMessage] = ()
) -> str | None:
    """Return what is wrong with the structure of a state, or None.

    Checked: system messages come first, then a user message; every tool result follows its call
    and every call has its result; no message is empty; the last user message is not gone without
    a trace (see `_request_lost`).

    Args:
        messages: The state.
        before: What was compressed; without it nothing can be said of the last user message.
    """
    body = _body(messages)
    if body and body[0].role != "user" and not _opens_with_block(body[0]):
        return f"the first message after the system prompt is from the {body[0].role}, not the user"
    for position, message in enumerate(body):
        if message.role == "system":
            return f"a system message stands in the middle (position {position})"
        # A command that prints nothing is normal, and every provider takes its empty result.
        if message.role == "tool" or isinstance(message.content, list):
            continue
        if not message_text(message).strip():
            return f"an empty {message.role} message (position {position})"
    if problem := _pairing_problem(body):
        return problem
    if _request_lost(before, body):
        return "the last user message is gone, and nothing was written in its place"
    return None


def _pairing_problem(body: Sequence[ChatMessage]) -> str | None:
    for group in groups(body):
        first = group[0]
        if first.role == "tool":
            return f"a tool result without its call ({first.tool_call_id})"
        calls = (first.tool_calls or []) if isinstance(first, ChatMessageAssistant) else []
        answered = {message.tool_call_id for message in group[1:] if message.role == "tool"}
        for call in calls:
            if call.id not in answered:
                return f"a tool call without its result ({call.id})"
    return None


def _body(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages after the leading system messages."""
    start = 0
    while start < len(messages) and messages[start].role == "system":
        start += 1
    return list(messages[start:])


def _opens_with_block(message: ChatMessage) -> bool:
    """Return whether a message is a vendor's compaction block, which may open a conversation."""
    content = message.content
    return isinstance(content, list) and isinstance(next(iter(content), None), ContentData)


def _request_lost(before: Sequence[ChatMessage], body: Sequence[ChatMessage]) -> bool:
    """Return whether the request that the agent is at work on has left no trace in a state.

    It is kept if its message is there (perhaps cut to fit a budget), or its text stands word for
    word in another message. Where it was replaced, by a message of the user's or the assistant's
    side that was not there before, its content cannot be judged here, only by the probes. What
    is left is a strategy that merely dropped it.
    """
    last = next((message for message in reversed(before) if message.role == "user"), None)
    if last is None:
        return False
    request = " ".join(message_text(last).split())
    known = {message.id for message in before}
    return not any(
        message.id == last.id
        or request in " ".join(message_text(message).split())
        or (message.id not in known and message.role in ("user", "assistant"))
        for message in body
    )
