"""Facts of one probe that look like spellings of each other, yet are all required.

Expected facts are joined by "and". A bank that lists ``3``, ``three`` and ``three attempts`` as
three facts demands all of them of one answer, and no good answer has them all.
"""

import re
from collections.abc import Iterator
from itertools import combinations

from compression_eval.authoring.check_words import mentions, words
from compression_eval.authoring.history import History
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.errors import shorten
from compression_eval.fixtures.findings import Finding
from compression_eval.fixtures.matching import Text, normalise
from compression_eval.fixtures.models import Language

_NOT_A_LETTER = re.compile(r"[\W_]+")
_QUANTITY = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>[^\W\d]*|%)")
_HINT = "every fact is required; spellings of one thing belong into any_of"


def alternative_findings(probe: Probe, history: History, language: Language) -> Iterator[Finding]:
    """Warn of facts that an answer is not likely to give together.

    Args:
        probe: The probe.
        history: What lies before its cut.
        language: The language it asks in.
    """
    for position, fact in enumerate(probe.expected_facts):
        sides = _sides(fact.fact, language)
        if len(sides) > 1 and not history.stated_in([fact.fact]):
            shown = " and ".join(map(shorten, sides))
            text = f"{shorten(fact.fact)} joins {shown}: give one as the fact, the rest in any_of"
            yield Finding("warning", f".expected_facts[{position}]", text)
    for (first, one), (second, other) in combinations(enumerate(probe.expected_facts), 2):
        reason = _same_thing(one.fact, other.fact, language) or _rival_values(
            probe, history, one.forms, other.forms, language
        )
        if reason:
            text = f"{shorten(one.fact)} and {shorten(other.fact)} {reason}; {_HINT}"
            yield Finding("warning", f".expected_facts[{first}] and [{second}]", text)


def _sides(fact: str, language: Language) -> list[str]:
    """Return what a fact joins by a word for "or"; the fact alone if there is none."""
    for name in dict.fromkeys((language, "en")):
        for word in words("or", name):
            parts = [part.strip() for part in fact.split(word)]
            if len(parts) > 1 and all(parts):
                return parts
    return [fact]


def _same_thing(one: str, other: str, language: Language) -> str:
    first, second = _plain(one, language), _plain(other, language)
    if first.replace(" ", "") == second.replace(" ", ""):
        return "are spellings of the same thing"
    if _holds(one, other) or _holds(first, second):
        return "overlap: whoever gives the longer has given the shorter"
    return ""


def _holds(one: str, other: str) -> bool:
    return Text(one).spells(other) or Text(other).spells(one)


def _plain(fact: str, language: Language) -> str:
    """Return a fact without punctuation and with digits for the words of small numbers."""
    text = f" {_NOT_A_LETTER.sub(' ', normalise(fact))} "
    for number, word in enumerate(words("numbers", language)):
        text = text.replace(f" {word} ", f" {number} ")
    return text.strip()


def _rival_values(
    probe: Probe, history: History, one: list[str], other: list[str], language: Language
) -> str:
    """Say so if two facts are values of one quantity that the question asks for once."""
    kinds = {_unit(forms[0]) for forms in (one, other)}
    if len(kinds) > 1 or None in kinds or mentions("several", probe.question, language):
        return ""
    together = set(history.stated_in(one)) & set(history.stated_in(other))
    return "" if together else "never stand in one message, and the question asks for one value"


def _unit(fact: str) -> str | None:
    """Return the unit of a quantity, empty for a bare number; None for what is no quantity."""
    found = _QUANTITY.fullmatch(normalise(fact))
    return found["unit"] if found else None
