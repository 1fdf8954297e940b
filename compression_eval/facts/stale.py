"""Superseded and forbidden values that an answer or a state gives as if they held.

Naming an earlier value as an earlier one is right and often asked for, so an occurrence counts
only if nothing around it says that it is past or ruled out. The signs are words in the rubric's
data. Before a value the nearest sign decides ("from 3000 to 8080"); after it there must be one
that speaks of the value itself ("3000 was replaced"). Where in doubt, nothing is held against the
text: this is a check for plain mistakes, not a reader.

An answer is about one question, and a state about everything: a bare number such as ``24`` stands
in it for many things. So where a bank gives a superseded value as a number alone, it is looked for
in a state in the place of the fact's own number: ``max_connections=24`` where the fact is
``max_connections=8``.
"""

import functools
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compression_eval.facts.markers import ValueMarkers, last
from compression_eval.fixtures.banks import ExpectedFact, Probe
from compression_eval.text.matching import Text, normalise

_SENTENCE_END = re.compile(r"(?<=[!?。！？;；])|(?<=\.)(?=\s)|\n+|(?<=,)(?=\s*\")")
"""Ends of sentences, lines and JSON fields, which bound the reach of a sign."""

_CLAUSE_END = re.compile(r"\s*(?:[,.;:)\]}'，。；、）]|$|but\b|and\b|then\b)")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\d_]|\.\d)")
_NAME = re.compile(r"[^\W\d_]{3,}")
_HIDDEN = "\ue001"
"""Placeholder for a right form that contains a wrong one."""


@dataclass(frozen=True)
class WrongValue:
    """A value that must not be given as current, with the forms that are right instead."""

    value: str
    """The form shown to people."""
    forms: tuple[str, ...]
    right: tuple[str, ...] = ()
    """Accepted forms of the fact; none for a forbidden one."""


def wrong_values(probe: Probe) -> list[WrongValue]:
    """Return every superseded and forbidden value of a probe."""
    superseded = [
        WrongValue(value, (value,), tuple(fact.forms))
        for fact in probe.expected_facts
        for value in fact.superseded
    ]
    forbidden = [WrongValue(fact.fact, tuple(fact.forms)) for fact in probe.forbidden_facts]
    return superseded + forbidden


def violations(probe: Probe, answer: str, markers: ValueMarkers) -> list[str]:
    """Return the superseded and forbidden values that an answer gives as current.

    Args:
        probe: The question with its ground truth.
        answer: What the model said.
        markers: The signs of the past in the answer's language.
    """
    wrong = (each.value for each in wrong_values(probe) if _as_current(answer, each, markers))
    return list(dict.fromkeys(wrong))


def stale_values(fact: ExpectedFact, state: Text, markers: ValueMarkers) -> list[str]:
    """Return the superseded values of a fact that a state gives as current.

    Args:
        fact: The fact with its superseded values.
        state: What the state says.
        markers: The signs of the past in the state's language.
    """
    if not fact.superseded:
        return []
    wrong = [WrongValue(old, stale_forms(fact, old), tuple(fact.forms)) for old in fact.superseded]
    # Most values do not occur: one look-up saves reading every sentence.
    return [
        each.value
        for each in wrong
        if state.has_any(each.forms) and _as_current(state.source, each, markers)
    ]


def stale_forms(fact: ExpectedFact, value: str) -> tuple[str, ...]:
    """Return the forms by which a superseded value is recognised in a state; perhaps none.

    They are the value itself unless it is a bare number, and forms of the fact with the value's
    number in the place of their own: all of them for a bare number; else, where the value is
    written like one of them, those that name what the number is of if the value does
    (``attempts=5``), or those that do not if it does not (``47 s``).
    """
    own = _split(value)
    if own is None:
        return (value,)
    forms = [] if own[1] == ("", "") else [value]
    return tuple(dict.fromkeys([*forms, *_substituted(fact, *own)]))


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
    numbers = list(_NUMBER.finditer(text))
    if len(numbers) != 1:
        return None
    start, end = numbers[0].span()
    return text[start:end], (text[:start], text[end:])


def _as_current(text: str, wrong: WrongValue, markers: ValueMarkers) -> bool:
    """Return whether some occurrence of a wrong value in a text is given as current."""
    signs = _signs(markers)
    # Right forms that have a wrong one inside ("v1" in "v1 beta").
    hidden = [
        normalise(right)
        for right in wrong.right
        if any(right != form and Text(right).spells(form) for form in wrong.forms)
    ]
    for raw in _SENTENCE_END.split(text):
        plain = normalise(raw or "")
        for right in hidden:
            plain = plain.replace(right, _HIDDEN)
        sentence = Text(plain)
        for form in wrong.forms:
            length = max(len(normalise(form)), 1)
            spans = [(start, start + length) for start, _ in sentence.occurrences(form)]
            followed = _followed(sentence.normalised, spans, wrong.right)
            for number, (start, end) in enumerate(spans):
                if not signs.past(sentence.normalised, start, end, contrasted=number < followed):
                    return True
    return False


def _followed(sentence: str, spans: Sequence[tuple[int, int]], right: Sequence[str]) -> int:
    """Return how many of the occurrences, from the first, have a right value after them.

    A sentence may repeat a value thousands of times, and each look to its end reads all of it.
    """
    if not right:
        return 0

    def none_follows(span: tuple[int, int]) -> bool:
        rest = Text(sentence[span[1] :])
        return not any(map(rest.spells, right))

    return bisect_left(spans, True, key=none_follows)


class _Signs:
    """Markers, compiled."""

    def __init__(self, markers: ValueMarkers) -> None:
        def pattern(phrases: Sequence[str]) -> re.Pattern[str]:
            return markers.pattern(map(normalise, phrases))

        self._reach = markers.window_before, markers.window_after
        self._past = pattern(markers.past_before)
        self._beside = pattern(markers.past_beside)
        self._weak_past = pattern(markers.weak_past_before)
        self._current = pattern(markers.current_before)
        self._chained = pattern(markers.chained_before)
        self._after = pattern(markers.past_after)
        self._weak_after = pattern(markers.weak_past_after)
        self._after_closing = pattern(markers.past_after_closing)

    def past(self, sentence: str, start: int, end: int, *, contrasted: bool) -> bool:
        """Return whether ``sentence[start:end]`` is marked as past or ruled out.

        Args:
            sentence: A normalised sentence.
            start: Where the value begins.
            end: Where it ends.
            contrasted: Whether a right value follows, so that weak signs count.
        """
        reach_before, reach_after = self._reach
        before = sentence[max(0, start - reach_before) : start]
        past = _end(self._past, before)
        if (beside := _end(self._beside, before)) == len(before.rstrip(" '")):
            past = beside
        if contrasted:
            past = max(past, _end(self._weak_past, before))
        current = _end(self._current, before)
        bracket = before.rfind("(")
        if not before.rfind(")") < bracket <= past:  # outside of brackets with a sign of the past
            current = max(current, _end(self._chained, before))
        if past > current:
            return True
        after = sentence[end : end + 2 * reach_after]
        for pattern in [self._after, self._weak_after] if contrasted else [self._after]:
            if (sign := pattern.search(after)) and sign.start() <= reach_after:
                return True
        return any(
            sign.start() <= reach_after and _CLAUSE_END.match(after, sign.end())
            for sign in self._after_closing.finditer(after)
        )


@functools.lru_cache(maxsize=8)
def _signs(markers: ValueMarkers) -> _Signs:
    return _Signs(markers)


def _end(pattern: re.Pattern[str], text: str) -> int:
    match = last(pattern, text)
    return match.end() if match else -1
