"""Places in a text that a rule wants replaced."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Hit:
    """One place: characters ``start`` to ``end``, the rule that found it, and what kind it is."""

    start: int
    end: int
    rule: str
    kind: str


@dataclass
class Remembered(Generic[_Found]):
    """A search whose results are kept: each text is read to learn from it, and then to replace."""

    search: Callable[[str], Iterable[_Found]]
    _results: dict[str, tuple[_Found, ...]] = field(default_factory=dict, repr=False)

    def __call__(self, text: str) -> tuple[_Found, ...]:
        """Return what the search finds in a text."""
        if text not in self._results:
            self._results[text] = tuple(self.search(text))
        return self._results[text]


def without_overlaps(hits: Iterable[Hit]) -> list[Hit]:
    """Return hits in order, of any that overlap the one that begins first, then the longest."""
    chosen: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end, hit.rule)):
        if hit.end > hit.start and (not chosen or hit.start >= chosen[-1].end):
            chosen.append(hit)
    return chosen


def shape(text: str, length: int = 24) -> str:
    """Return what a value looks like without showing it: ``Aaa9-99`` for ``Bob7-42``.

    Runs keep their length up to three; the whole is cut to ``length`` characters.
    """
    result: list[str] = []
    for character in text:
        mark = character
        if character.isdigit():
            mark = "9"
        elif character.isalpha():
            mark = "A" if character.isupper() else "a"
        elif not character.isprintable() or character.isspace():
            mark = "_"
        if result[-3:] != [mark] * 3:
            result.append(mark)
        if len(result) > length:
            return "".join(result[:length]) + "…"
    return "".join(result)
