"""Which superseded values of a fact a compressed state gives as current.

The rules are those by which answers are held to account (`grading.values`). But an answer is about
one question, and a state about everything: a bare number such as ``24`` stands in it for many
things. So where a bank gives a superseded value as a number alone, it is looked for in the place
of the fact's own number: ``max_connections=24`` where the fact is ``max_connections=8``.
"""

import re
from collections.abc import Iterator

from compression_eval.compressors.facts import StaleValues
from compression_eval.fixtures.banks import ExpectedFact
from compression_eval.fixtures.matching import Text, normalise
from compression_eval.fixtures.models import Language
from compression_eval.grading.rubric import load_rubric
from compression_eval.grading.values import WrongValue, given_as_current

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\d_]|\.\d)")

_NAME = re.compile(r"[^\W\d_]{3,}")


def stale_values(language: Language) -> StaleValues:
    """Return the look-up of superseded values for states in a language.

    Args:
        language: The language of the signs that a value is named as one of the past.
    """
    markers = load_rubric(language).text.values

    def stale(text: str, fact: ExpectedFact) -> list[str]:
        found = []
        looked_up = Text(text) if fact.superseded else None
        for value in fact.superseded:
            wrong = WrongValue(value, stale_forms(fact, value), tuple(fact.forms))
            # Most values are nowhere: one look-up spares the reading of every sentence.
            if looked_up is None or not looked_up.has_any(wrong.forms):
                continue
            if given_as_current(text, wrong, markers):
                found.append(value)
        return found

    return stale


def stale_forms(fact: ExpectedFact, value: str) -> tuple[str, ...]:
    """Return the forms by which a superseded value of a fact is recognised; perhaps none.

    They are the value itself unless it is a bare number, and forms of the fact with the value's
    number in the place of their own: all of them for a bare number; else, where the value is
    written like one of them, those that name what the number is of if the value does
    (``attempts=5``), or those that do not if it does not (``47 s``).
    """
    own = _split(value)
    forms = [] if own and own[1] == ("", "") else [value]
    if own:
        forms.extend(_substituted(fact, *own))
    return tuple(dict.fromkeys(forms))


def _substituted(fact: ExpectedFact, number: str, around: tuple[str, str]) -> Iterator[str]:
    parts = [split[1] for form in fact.forms if (split := _split(form))]
    bare = around == ("", "")
    if not bare and around not in parts:
        return
    for before, after in parts:
        says_something = (before + after).strip("'\"., ")
        if says_something and (bare or bool(_NAME.search(before)) == bool(_NAME.search(around[0]))):
            yield f"{before}{number}{after}"


def _split(form: str) -> tuple[str, tuple[str, str]] | None:
    """Return the number of a form and what stands around it; None unless there is just one."""
    text = normalise(form)
    matches = list(_NUMBER.finditer(text))
    if len(matches) != 1:
        return None
    match = matches[0]
    return match[0], (text[: match.start()], text[match.end() :])
