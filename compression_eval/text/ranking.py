"""Rank texts by the words of a query.

A coding conversation is searched by pieces of identifiers as often as by whole ones, so a name such
as ``parse_retry_after`` gives the whole name and its parts. Chinese and Japanese have no spaces;
overlapping pairs of characters replace words there.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Chinese and Japanese characters, as ranges for a pattern."""

_LATIN = "0-9A-Za-z_\u00c0-\u024f"
_RUN = re.compile(rf"[{_LATIN}]+(?:[.\-/:@#][{_LATIN}]+)*|[{CJK}\u3005\u30fc]+")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z\u00c0-\u024f]+|\d+")
_MAX_RUN = 120
"""Maximum length of a run that is split; longer ones are encoded data."""


def terms(text: str) -> list[str]:
    """Return the search terms of a text in order, with repetitions."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    result: list[str] = []
    for run in _RUN.findall(text):
        result.extend(_terms_of(run) if len(run) <= _MAX_RUN else (run.casefold(),))
    return result


@lru_cache(maxsize=50_000)
def _terms_of(run: str) -> tuple[str, ...]:
    if run[0] > "\u3000":
        return tuple(run[at : at + 2] for at in range(len(run) - 1)) or (run,)
    pieces = [_stem(piece.casefold()) for piece in _PIECE.findall(run)]
    if len(pieces) <= 1:
        return (pieces[0] if pieces and not pieces[0].isdigit() else run.casefold(),)
    # Names between separators, too: ``store.py`` and ``src`` of ``src/store.py:12``.
    names = [name.casefold() for name in re.split(r"[/:@#]", run) if name]
    return tuple(dict.fromkeys([run.casefold(), *names, *pieces]))


def _stem(word: str) -> str:
    """Cut the commonest English endings, so that ``renamed`` finds ``rename`` and ``renaming``."""
    if len(word) <= 3 or not word.isascii() or word.isdigit():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    for ending in ("ing", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]
            return word.removesuffix("e")
    if word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


class Bm25:
    """One index over a list of texts."""

    def __init__(self, texts: Sequence[str], *, b: float) -> None:
        import bm25s

        documents = [terms(text) for text in texts]
        self._size = len(documents)
        self._index: Any = None
        if not any(documents):
            return
        numbers: dict[str, int] = {}
        ids = [
            [numbers.setdefault(term, len(numbers)) for term in document] for document in documents
        ]
        self._index = bm25s.BM25(k1=1.2, b=b, method="lucene", backend="numpy", csc_backend="numpy")
        self._index.index((ids, numbers), create_empty_token=False, show_progress=False)

    def scores(self, query: Sequence[str]) -> "NDArray[np.float32]":
        """Return one score per text for the terms of a query; all 0 if nothing matches."""
        import numpy as np

        known = [] if self._index is None else self._index.get_tokens_ids(list(query))
        if not known:
            return np.zeros(self._size, dtype=np.float32)
        scores: NDArray[np.float32] = self._index.get_scores_from_ids(known)
        return scores
