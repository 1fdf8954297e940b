"""What a conversation taught the passes: values that are replaced wherever they stand.

A password stands beside its name once, and bare in the command that uses it; a user's name stands
in a home path, and in a sentence. So the passes first read the whole conversation and note such
values here, and then each text is searched for them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from compression_eval.conversations.scrubbing.hits import Hit, without_overlaps

_SCANNED = 32
"""Up to so many values a text is searched for each; more are looked up by the words they hold."""

_RUN = re.compile(r"[A-Za-z0-9]+")
_RUN_BEHIND_ESCAPE = re.compile(r"\\(?:[nrt]|u[0-9A-Fa-f]{4})([A-Za-z0-9]+)")
_END_EDGE = r"(?![A-Za-z0-9])"
_START_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4}))"
_BEFORE = re.compile(_START_EDGE)
_BEHIND = re.compile(_END_EDGE)


@dataclass(frozen=True)
class Learnt:
    """One value, and how it is looked for."""

    value: str
    kind: str
    rule: str
    any_case: bool = False
    """Whether other spellings in upper and lower case are the same value."""


@dataclass
class Vocabulary:
    """The values that one conversation taught, by the pass that looks for them."""

    _by_pass: dict[str, dict[str, Learnt]] = field(default_factory=dict, repr=False)
    _patterns: dict[tuple[str, ...], re.Pattern[str]] = field(default_factory=dict, repr=False)
    _by_run: dict[str, dict[str, list[Learnt]]] = field(default_factory=dict, repr=False)
    """By pass, then by the longest run of letters and digits of a value, lower case."""

    def __len__(self) -> int:
        return sum(map(len, self._by_pass.values()))

    def learn(self, passage: str, learnt: Learnt) -> None:
        """Note a value for a pass; the first rule that taught it stays."""
        known = self._by_pass.setdefault(passage, {})
        if learnt.value not in known:
            known[learnt.value] = learnt
            run = max(_RUN.findall(learnt.value), key=len, default="").lower()
            self._by_run.setdefault(passage, {}).setdefault(run, []).append(learnt)

    def hits(self, passage: str, text: str) -> Iterator[Hit]:
        """Yield where a text holds what the pass learnt, as whole words, longest first."""
        learnt = self._by_pass.get(passage)
        if not learnt:
            return
        lowered = text.lower()
        present = [
            entry
            for entry in self._candidates(passage, text, lowered)
            if (entry.value.lower() in lowered if entry.any_case else entry.value in text)
        ]
        if not present:
            return
        for any_case in (False, True):
            chosen = {entry.value: entry for entry in present if entry.any_case == any_case}
            if not chosen:
                continue
            if len(chosen) > _SCANNED and len(lowered) == len(text):
                yield from _found(chosen.values(), lowered if any_case else text, text)
                continue
            folded = {value.lower(): entry for value, entry in chosen.items()}
            for found in self._pattern(tuple(sorted(chosen)), any_case).finditer(text):
                entry = chosen.get(found[0]) or folded.get(found[0].lower())
                if entry is not None:
                    yield Hit(found.start(), found.end(), entry.rule, entry.kind)

    def _candidates(self, passage: str, text: str, lowered: str) -> Iterable[Learnt]:
        """Return the values that a text may hold.

        A value is looked for as a whole word, so its runs of letters and digits are whole runs of
        the text, too; a conversation that teaches a value with every message takes time that
        grows with its length, and not with its square.
        """
        learnt, by_run = self._by_pass[passage], self._by_run[passage]
        if len(learnt) <= _SCANNED:
            return learnt.values()
        runs = {"", *_RUN.findall(lowered), *_RUN_BEHIND_ESCAPE.findall(lowered)}
        if not text.isascii():
            # Lower case makes letters of some marks, as of the sign for kelvin.
            runs.update(run.lower() for run in _RUN.findall(text))
        return chain.from_iterable(by_run[run] for run in sorted(runs & by_run.keys()))

    def _pattern(self, values: tuple[str, ...], any_case: bool) -> re.Pattern[str]:
        key = (str(any_case), *values)
        if key not in self._patterns:
            if len(self._patterns) > 256:
                self._patterns.clear()
            parts = (_whole(value) for value in sorted(values, key=len, reverse=True))
            flags = re.IGNORECASE if any_case else 0
            self._patterns[key] = re.compile("|".join(parts), flags)
        return self._patterns[key]


def _found(entries: Iterable[Learnt], searched: str, text: str) -> list[Hit]:
    """Return where a text holds many values: one pattern of them all would try each everywhere."""
    hits: list[Hit] = []
    for entry in entries:
        value = entry.value.lower() if entry.any_case else entry.value
        start = searched.find(value)
        while start >= 0:
            end = start + len(value)
            if (not _is_edged(value[0]) or _BEFORE.match(text, start)) and (
                not _is_edged(value[-1]) or _BEHIND.match(text, end)
            ):
                hits.append(Hit(start, end, entry.rule, entry.kind))
            start = searched.find(value, start + 1)
    return without_overlaps(hits)


def _is_edged(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _whole(value: str) -> str:
    """Return a pattern for a value that is no part of a longer word.

    Chinese and Japanese set no words apart, and what begins or ends with a mark needs no edge.
    """
    before = _START_EDGE if _is_edged(value[0]) else ""
    after = _END_EDGE if _is_edged(value[-1]) else ""
    return before + re.escape(value) + after
