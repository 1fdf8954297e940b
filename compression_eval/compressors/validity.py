"""Whether a state is one that an agent could go on from, and its summary looks like one.

The first is a verdict: a provider must accept the state, and it must be smaller. The second is only
a list of signs for people to look at: a model may decline in words, fill in headings and nothing
else, or write about something else. All of that shrinks the conversation and is sound in structure,
so the strategy's result counts; but what is measured then is a model that did not do its work.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ContentData

from compression_eval.compressors.budget import groups
from compression_eval.compressors.tokens import token_counter
from compression_eval.facts.records import FactRecord
from compression_eval.fixtures.message_text import content_text, message_text
from compression_eval.fixtures.models import leaves

DEFAULT_MIN_REMOVED = 0.1
"""Share of the tokens beside the system prompt that a compression must at least remove.

A product that gives up half-way leaves nearly everything and would win every table; one release
that did removed 7 %. The strategies in use remove 25 % of a short conversation and over 90 % of a
long one.
"""


_REFUSALS = (
    *("i cannot help", "i can't help", "i cannot assist", "i can't assist", "i cannot comply"),
    *("i can't comply", "i cannot provide", "i can't provide", "i'm sorry, but", "i am sorry, but"),
    *("sorry, i", "i'm unable to", "i am unable to", "i'm not able to", "i must decline"),
    *(
        "很抱歉",
        "抱歉",
        "对不起",
        "我无法",
        "我不能",
        "申し訳",
        "お手伝いできません",
        "お答えできません",
    ),
)
"""Beginnings of lines by which a model declines, folded and with straight apostrophes."""

_MAX_REFUSAL = 1_500
"""Characters: what is longer than this says more than no, whatever its lines begin with."""

_MIN_SHARE_OF_BUDGET = 0.05
_MIN_TOKENS = 12
"""Where a strategy has no budget; shorter than this no account of a conversation is."""

_MIN_FACTS = 3
"""With fewer expected facts, that none is named is chance."""

_MIN_FOREIGN, _MAX_KNOWN = 0.3, 0.01
"""Shares of a reply's and of a conversation's letters in a script that make it a foreign one."""

_TAG = re.compile(r"<[^<>\n]*>")
_EMPTY = re.compile(r"#.*|[-*]?[ \t]*\(?(?:none|n/a|empty|无|なし)\)?", re.I)
"""A line, without the space around it, that says nothing."""

_SCRIPTS = {
    "Chinese or Japanese": re.compile("[\u3040-\u30ff\u3400-\u9fff]"),
    "Korean": re.compile("[\uac00-\ud7af]"),
    "Cyrillic": re.compile("[\u0400-\u04ff]"),
    "Arabic": re.compile("[\u0600-\u06ff]"),
    "Latin": re.compile("[A-Za-z\u00c0-\u024f]"),
}


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


def suspicions(
    replies: Sequence[str],
    history: Sequence[ChatMessage],
    facts: Sequence[FactRecord],
    budget: int | None,
    count: Callable[[str], int],
) -> list[str]:
    """Return the signs that a summary is none, each in one line that begins with its name.

    ``refusal``: it declines in words. ``blank``: headings only. ``short``: far below its budget.
    ``no_fact``: of the expected facts that only the summary could hold, it holds none.
    ``language``: it is in a script that the conversation's people and agent did not use.

    Args:
        replies: What the summarising model said, over all calls and cycles; none, no signs.
        history: The conversation before the cut.
        facts: Where the expected facts are.
        budget: Tokens that the summary was given, if the strategy has such an argument.
        count: Counts the tokens of a text.
    """
    if not replies:
        return []
    text = "\n".join(map(_decoded, replies))
    signs = []
    if len(text) <= _MAX_REFUSAL and (line := _refusing_line(text)):
        signs.append(f"refusal: {line[:80]!r}")
    if not any(map(_says_something, text.splitlines())):
        signs.append("blank: nothing but headings")
    tokens = count(text)
    least = _MIN_SHARE_OF_BUDGET * budget if budget else _MIN_TOKENS
    if tokens < least:
        signs.append(f"short: {tokens} tokens" + (f" of a budget of {budget}" if budget else ""))
    asked = [fact for fact in facts if fact.fed and not {"head", "tail"} & set(fact.regions)]
    if len(asked) >= _MIN_FACTS and not any(fact.in_state for fact in asked):
        signs.append(f"no_fact: none of the {len(asked)} expected facts that only it could hold")
    if script := _foreign_script(text, history):
        signs.append(f"language: {script} script, which the conversation does not use")
    return signs


def _decoded(reply: str) -> str:
    """Return what a reply says if it is JSON, perhaps in a code fence; else the reply.

    A summary in prose may quote JSON, which is not all that it says.
    """
    fence, brace, rest = reply.strip().removesuffix("```").partition("{")
    if not brace or fence.strip().lower() not in ("", "```", "```json"):
        return reply
    try:
        return "\n".join(leaves(json.loads(brace + rest)))
    except (ValueError, RecursionError):
        return reply


def _says_something(line: str) -> bool:
    plain = _TAG.sub("", line).strip()
    return not _EMPTY.fullmatch(plain) and any(map(str.isalnum, plain))


def _refusing_line(text: str) -> str:
    for line in text.splitlines():
        plain = line.strip(" \t#>*-_\"'").replace("’", "'")
        if plain.casefold().startswith(_REFUSALS):
            return plain
    return ""


def _foreign_script(text: str, history: Sequence[ChatMessage]) -> str:
    said = "\n".join(content_text(m) for m in history if m.role in ("user", "assistant"))
    own, known = _letters(text), _letters(said)
    for script, number in own.items():
        if script == "Latin":
            # Names and code are Latin everywhere.
            continue
        share = known[script] / max(known.total(), 1)
        if number >= max(_MIN_FOREIGN * own.total(), 1) and share <= _MAX_KNOWN:
            return script
    return ""


def _letters(text: str) -> Counter[str]:
    return Counter({script: len(form.findall(text)) for script, form in _SCRIPTS.items()})
