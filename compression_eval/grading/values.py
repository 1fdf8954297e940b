"""Which superseded or forbidden values an answer gives as if they held.

Naming an earlier value as an earlier one is right and often asked for, so an occurrence counts
only if nothing around it says that it is past or ruled out. The signs are words in the rubric's
data. Before a value the nearest sign decides ("from 3000 to 8080"); after it there must be one
that speaks of the value itself ("3000 was replaced"). Where in doubt, nothing is held against the
answer: this is a check for plain mistakes, not a reader.
"""

import functools
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.matching import Text, normalise
from compression_eval.grading.rubric_models import ValueMarkers

_SENTENCE_END = re.compile(r"(?<=[!?。！？;；])|(?<=\.)(?=\s)|\n+|(?<=,)(?=\s*\")")
"""Ends of sentences, lines and fields of JSON: a sign does not reach beyond them."""

_CLAUSE_END = re.compile(r"\s*(?:[,.;:)\]}'，。；、）]|$|but\b|and\b|then\b)")


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
    """Return the superseded and forbidden values that ``answer`` gives as current.

    Args:
        probe: The question with its ground truth.
        answer: What the model said.
        markers: The signs of the past in the answer's language.
    """
    found = (
        wrong.value for wrong in wrong_values(probe) if given_as_current(answer, wrong, markers)
    )
    return list(dict.fromkeys(found))


def given_as_current(answer: str, wrong: WrongValue, markers: ValueMarkers) -> bool:
    """Return whether some occurrence of a wrong value in ``answer`` is given as current."""
    signs = _signs(markers.model_dump_json())
    # Right forms that have a wrong one inside ("v1" in "v1 beta").
    hidden = [
        normalise(right)
        for right in wrong.right
        if any(right != form and Text(right).spells(form) for form in wrong.forms)
    ]
    for raw in _SENTENCE_END.split(answer):
        sentence = normalise(raw or "")
        for right in hidden:
            sentence = sentence.replace(right, _HIDDEN)
        text = Text(sentence)
        for form in wrong.forms:
            length = max(len(normalise(form)), 1)
            spans = [(start, start + length) for start, _ in text.occurrences(form)]
            if not spans:
                continue
            followed = _followed(text.normalised, spans, wrong.right)
            for number, (start, end) in enumerate(spans):
                if not signs.past(text.normalised, start, end, contrasted=number < followed):
                    return True
    return False


_HIDDEN = "\ue001"


def _followed(sentence: str, spans: Sequence[tuple[int, int]], right: Sequence[str]) -> int:
    """Return after how many of some occurrences a right value follows: the first so many.

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
        self._markers = markers
        self._past = self._pattern(markers.past_before)
        self._weak_past = self._pattern(markers.weak_past_before)
        self._current = self._pattern(markers.current_before)
        self._after = self._pattern(markers.past_after)
        self._weak_after = self._pattern(markers.weak_past_after)
        self._after_closing = self._pattern(markers.past_after_closing)

    def past(self, sentence: str, start: int, end: int, *, contrasted: bool) -> bool:
        """Return whether ``sentence[start:end]`` is named as something that does not hold.

        Args:
            sentence: A normalised sentence.
            start: Where the value begins.
            end: Where it ends.
            contrasted: Whether a right value follows, so that weak signs count.
        """
        before = sentence[max(0, start - self._markers.window_before) : start]
        past = _last_end(self._past, before)
        if contrasted:
            past = max(past, _last_end(self._weak_past, before))
        if past > _last_end(self._current, before):
            return True
        after = sentence[end : end + 2 * self._markers.window_after]
        return self._follows(after, contrasted=contrasted)

    def _follows(self, after: str, *, contrasted: bool) -> bool:
        patterns = [self._after, self._weak_after] if contrasted else [self._after]
        for pattern in patterns:
            match = pattern.search(after)
            if match and match.start() <= self._markers.window_after:
                return True
        return any(
            match.start() <= self._markers.window_after and _CLAUSE_END.match(after, match.end())
            for match in self._after_closing.finditer(after)
        )

    def _pattern(self, phrases: Sequence[str]) -> re.Pattern[str]:
        if not phrases:
            return re.compile(r"(?!)")
        words = sorted({normalise(phrase) for phrase in phrases}, key=len, reverse=True)
        return re.compile("|".join(self._bounded(word) for word in words))

    def _bounded(self, word: str) -> str:
        escaped = re.escape(word)
        if not self._markers.word_boundaries:
            return escaped
        left = r"(?<![a-z0-9])" if word[0].isalnum() else ""
        right = r"(?![a-z0-9])" if word[-1].isalnum() else ""
        return f"{left}{escaped}{right}"


@functools.lru_cache(maxsize=8)
def _signs(markers: str) -> _Signs:
    return _Signs(ValueMarkers.model_validate_json(markers))


def _last_end(pattern: re.Pattern[str], text: str) -> int:
    """Return where the last match ends; -1 if there is none."""
    return max((match.end() for match in pattern.finditer(text)), default=-1)
