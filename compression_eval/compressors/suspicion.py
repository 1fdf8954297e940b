"""Signs that a summary is none, though nothing failed: for people to look at, never a verdict.

A model may decline in words, fill in headings and nothing else, or write about something else. All
of that shrinks the conversation and is sound in structure, so the strategy's result counts; but
what is measured then is a model that did not do its work.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence

from inspect_ai.model import ChatMessage

from compression_eval.compressors.state import FactRecord
from compression_eval.compressors.tokens import content_text
from compression_eval.fixtures.models import leaves

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
