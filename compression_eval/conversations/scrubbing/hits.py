"""Places in a text that a rule wants replaced."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Generic, TypeVar

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Hit:
    """One place: characters ``start`` to ``end``, the rule that found it, and what kind it is."""

    start: int
    end: int
    rule: str
    kind: str


MAX_REMEMBERED = 100_000
"""Texts of which a search keeps its results, the latest: some 20 MB, whatever is imported."""


@dataclass
class Remembered(Generic[_Found]):
    """A search whose results are kept: each text is read to learn from it, to replace, to audit.

    The search must depend on the text alone. Of the text itself only a digest is kept.
    """

    search: Callable[[str], Iterable[_Found]]
    _results: dict[bytes, tuple[_Found, ...]] = field(default_factory=dict, repr=False)

    def __call__(self, text: str) -> tuple[_Found, ...]:
        """Return what the search finds in a text."""
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        found = self._results.get(key)
        if found is None:
            if len(self._results) >= MAX_REMEMBERED:
                del self._results[next(iter(self._results))]
            found = self._results[key] = tuple(self.search(text))
        return found


def without_overlaps(hits: Iterable[Hit]) -> list[Hit]:
    """Return hits in order, of any that overlap the one that begins first, then the longest.

    Of hits at one place the first given counts.
    """
    chosen: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
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
