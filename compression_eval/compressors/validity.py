"""Check whether an agent could continue from a state, and whether its summary looks real.

The first is a verdict: a provider must accept the state, and it must be smaller. The second only
lists signs for people to check: a model may refuse in words, or fill in headings only. Such a
state is smaller and well-formed, so the result counts; but it measures a model that did not do its
job.
"""

import json
import re
from collections.abc import Callable, Sequence

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ContentData

from compression_eval.compressors.budget import groups, split_system
from compression_eval.compressors.state import StateStatus
from compression_eval.compressors.tokens import token_counter
from compression_eval.facts.records import FactRecord
from compression_eval.fixtures.conversation import message_text
from compression_eval.fixtures.models import leaves

DEFAULT_MIN_REMOVED = 0.1
"""Minimum share of the tokens, without the system prompt, that a compression must remove.

A product that gives up half-way keeps nearly everything and would win every table; one such release
removed 7 %. Real strategies remove 25 % of a short conversation and over 90 % of a long one.
"""

_REFUSALS = (
    *("i cannot help", "i can't help", "i cannot assist", "i can't assist", "i cannot comply"),
    *("i can't comply", "i cannot provide", "i can't provide", "i'm sorry, but", "i am sorry, but"),
    *("sorry, i", "i'm unable to", "i am unable to", "i'm not able to", "i must decline"),
    *("很抱歉", "抱歉", "对不起", "我无法", "我不能"),
    *("申し訳", "お手伝いできません", "お答えできません"),
)
"""Beginnings of lines of a refusal, casefolded and with straight apostrophes."""

_MAX_REFUSAL = 1_500
"""Characters; a longer text is no refusal, whatever its lines begin with."""

_MIN_SHARE_OF_BUDGET = 0.05
_MIN_TOKENS = 12
"""Minimum tokens of a summary if the strategy has no budget."""

_MIN_FACTS = 3
"""With fewer expected facts, naming none of them may be chance."""

_TAG = re.compile(r"<[^<>\n]*>")
_EMPTY = re.compile(r"#.*|[-*]?[ \t]*\(?(?:none|n/a|empty|无|なし)\)?", re.I)
"""A stripped line without content."""


def state_problem(
    before: Sequence[ChatMessage], after: Sequence[ChatMessage], min_removed: float | None = None
) -> tuple[StateStatus, str] | None:
    """Return why the result of a compression is not a valid state, or None.

    Without ``min_removed`` (see `size_problem`) its size does not matter.
    """
    if all(message.role == "system" for message in after):
        return "empty", "nothing but the system prompt is left"
    if [message_text(m) for m in before] == [message_text(m) for m in after]:
        return "not_applied", "the messages came back unchanged"
    if min_removed is not None and (problem := size_problem(before, after, min_removed)):
        return "not_smaller", problem
    if problem := structural_problem(after, before):
        return "invalid_structure", problem
    return None


def size_problem(
    before: Sequence[ChatMessage], after: Sequence[ChatMessage], min_removed: float
) -> str | None:
    """Return why a state is not smaller than its input, or None.

    Leading system messages are not counted, because no strategy may remove them. In a chain each
    compression is compared with its own input, so that one that does nothing cannot hide behind an
    effective earlier one.

    Args:
        before: The input: the history, or an earlier state with the messages after it.
        after: The state.
        min_removed: Minimum share to remove, 0 to 1; with 0 one token less is enough.
    """
    was, left = (token_counter().messages(split_system(each)[1]) for each in (before, after))
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

    Checked: system messages come first, but for later ones of the input, in its order; then a user
    message or a vendor's compaction block; every tool result follows its call and every call has
    its result; no message is empty; the last user message is not lost without a trace (see
    `_request_lost`).

    Args:
        messages: The state.
        before: The input; without it the last user message is not checked, and no later system
            message is allowed.
    """
    body = split_system(messages)[1]
    opening = body[0].content if body else ""
    is_block = isinstance(opening, list) and isinstance(next(iter(opening), None), ContentData)
    if body and body[0].role != "user" and not is_block:
        return f"the first message after the system prompt is from the {body[0].role}, not the user"
    late = iter([message.id for message in split_system(before)[1] if message.role == "system"])
    for position, message in enumerate(body):
        # Searching an iterator uses it up as far as the match, so this contains the order, too.
        if message.role == "system" and message.id not in late:
            return f"a system message is in the middle (position {position})"
        # Commands often print nothing, and every provider accepts an empty result.
        plain = message.role != "tool" and isinstance(message.content, str)
        if plain and not message_text(message).strip():
            return f"an empty {message.role} message (position {position})"
    for first, *results in groups(body):
        if first.role == "tool":
            return f"a tool result without its call ({first.tool_call_id})"
        calls = first.tool_calls if isinstance(first, ChatMessageAssistant) else None
        answered = {message.tool_call_id for message in results if message.role == "tool"}
        if lost := [call.id for call in calls or () if call.id not in answered]:
            return f"a tool call without its result ({lost[0]})"
    lost_request = "the last user message is gone, and nothing was written in its place"
    return lost_request if _request_lost(before, body) else None


def _request_lost(before: Sequence[ChatMessage], body: Sequence[ChatMessage]) -> bool:
    """Return whether the user's current request has left no trace in a state.

    It is kept if its message is there (perhaps cut to fit a budget), or its text occurs verbatim in
    another message. If a new user or assistant message replaced it, only the probes can judge the
    content. What remains is a strategy that merely dropped it.
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


def suspicions(
    replies: Sequence[str],
    facts: Sequence[FactRecord],
    budget: int | None,
    count: Callable[[str], int],
) -> list[str]:
    """Return signs that a summary is not a real one, a line each that begins with its name.

    ``refusal``: it refuses in words. ``blank``: headings only. ``short``: far below its budget.
    ``no_fact``: of the expected facts that only the summary could hold, it contains none.

    Args:
        replies: The summarising model's replies over all calls and cycles; without any, no signs.
        facts: Records of the expected facts.
        budget: Token budget of the summary, if the strategy has one.
        count: Counts the tokens of a text.
    """
    if not replies:
        return []
    text = "\n".join(map(_decoded, replies))
    lines = text.splitlines()
    signs = []
    starts = [line.strip(" \t#>*-_\"'").replace("’", "'") for line in lines]
    refusal = next((line for line in starts if line.casefold().startswith(_REFUSALS)), None)
    if refusal and len(text) <= _MAX_REFUSAL:
        signs.append(f"refusal: {refusal[:80]!r}")
    plain = [_TAG.sub("", line).strip() for line in lines]
    if not any(not _EMPTY.fullmatch(line) and any(map(str.isalnum, line)) for line in plain):
        signs.append("blank: nothing but headings")
    tokens = count(text)
    least = _MIN_SHARE_OF_BUDGET * budget if budget else _MIN_TOKENS
    if tokens < least:
        signs.append(f"short: {tokens} tokens" + (f" of a budget of {budget}" if budget else ""))
    asked = [fact for fact in facts if fact.fed and not {"head", "tail"} & set(fact.regions)]
    if len(asked) >= _MIN_FACTS and not any(fact.in_state for fact in asked):
        signs.append(f"no_fact: none of the {len(asked)} expected facts that only it could hold")
    return signs


def _decoded(reply: str) -> str:
    """Return the texts of a reply that is JSON, perhaps in a code fence; else the reply.

    A summary in prose may quote JSON among other text.
    """
    fence, brace, rest = reply.strip().removesuffix("```").partition("{")
    if not brace or fence.strip().lower() not in ("", "```", "```json"):
        return reply
    try:
        return "\n".join(leaves(json.loads(brace + rest)))
    except (ValueError, RecursionError):
        return reply
