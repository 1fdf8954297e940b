"""What a conversation taught the passes: values that are replaced wherever they stand.

A password stands beside its name once, and bare in the command that uses it; a user's name stands
in a home path, and in a sentence. So the passes first read the whole conversation and note such
values here, and then each text is searched for them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from compression_eval.conversations.scrubbing.hits import Hit

_END_EDGE = r"(?![A-Za-z0-9])"
_START_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4}))"


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

    def __len__(self) -> int:
        return sum(map(len, self._by_pass.values()))

    def learn(self, passage: str, learnt: Learnt) -> None:
        """Note a value for a pass; the first rule that taught it stays."""
        self._by_pass.setdefault(passage, {}).setdefault(learnt.value, learnt)

    def hits(self, passage: str, text: str) -> Iterator[Hit]:
        """Yield where a text holds what the pass learnt, as whole words, longest first."""
        learnt = self._by_pass.get(passage)
        if not learnt:
            return
        lowered = text.lower()
        present = [
            entry
            for value, entry in learnt.items()
            if (value.lower() in lowered if entry.any_case else value in text)
        ]
        if not present:
            return
        for any_case in (False, True):
            chosen = {entry.value: entry for entry in present if entry.any_case == any_case}
            if not chosen:
                continue
            folded = {value.lower(): entry for value, entry in chosen.items()}
            for found in self._pattern(tuple(sorted(chosen)), any_case).finditer(text):
                entry = chosen.get(found[0]) or folded.get(found[0].lower())
                if entry is not None:
                    yield Hit(found.start(), found.end(), entry.rule, entry.kind)

    def _pattern(self, values: tuple[str, ...], any_case: bool) -> re.Pattern[str]:
        key = (str(any_case), *values)
        if key not in self._patterns:
            if len(self._patterns) > 256:
                self._patterns.clear()
            parts = (_whole(value) for value in sorted(values, key=len, reverse=True))
            flags = re.IGNORECASE if any_case else 0
            self._patterns[key] = re.compile("|".join(parts), flags)
        return self._patterns[key]


def _whole(value: str) -> str:
    """Return a pattern for a value that is no part of a longer word.

    Chinese and Japanese set no words apart, and what begins or ends with a mark needs no edge.
    """
    before = _START_EDGE if value[0].isascii() and value[0].isalnum() else ""
    after = _END_EDGE if value[-1].isascii() and value[-1].isalnum() else ""
    return before + re.escape(value) + after
