"""Turning text into search terms and into a token estimate, for English, Chinese and Japanese.

A coding conversation is searched by pieces of identifiers as often as by whole ones, so a name such
as ``parse_retry_after`` gives the whole name and its parts. Chinese and Japanese have no spaces;
overlapping pairs of characters stand in for words there.
"""

import math
import re
import unicodedata
from functools import lru_cache

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_LATIN = "0-9A-Za-z_\u00c0-\u024f"
_RUN = re.compile(rf"[{_LATIN}]+(?:[.\-/:@#][{_LATIN}]+)*|[{_CJK}\u3005\u30fc]+")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z\u00c0-\u024f]+|\d+")
_CJK_CHARACTER = re.compile(rf"[{_CJK}\uac00-\ud7af\uff00-\uffef\u3000-\u303f]")
_LONGEST_RUN = 120
"""Longer runs are encoded data, whose pieces nobody asks for."""

_CHARACTERS_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Return a rough token count: four characters each, one for a Chinese or Japanese character."""
    wide = len(_CJK_CHARACTER.findall(text)) if not text.isascii() else 0
    return wide + math.ceil((len(text) - wide) / _CHARACTERS_PER_TOKEN)


def is_wide(text: str) -> bool:
    """Say whether any Chinese or Japanese character occurs."""
    return not text.isascii() and _CJK_CHARACTER.search(text) is not None


def terms(text: str) -> list[str]:
    """Return the search terms of a text in order, repeated as often as they occur."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    found: list[str] = []
    for run in _RUN.findall(text):
        if len(run) <= _LONGEST_RUN:
            found.extend(_terms_of(run))
        else:
            found.append(run.casefold())
    return found


@lru_cache(maxsize=50_000)
def _terms_of(run: str) -> tuple[str, ...]:
    if run[0] > "\u3000":
        return tuple(run[at : at + 2] for at in range(len(run) - 1)) or (run,)
    pieces = [_stem(piece.casefold()) for piece in _PIECE.findall(run)]
    if len(pieces) <= 1:
        return (pieces[0] if pieces and pieces[0].isdigit() is False else run.casefold(),)
    return tuple(dict.fromkeys([run.casefold(), *_dotted(run), *pieces]))


def _dotted(run: str) -> list[str]:
    """Return the names between separators: ``store.py`` and ``src`` of ``src/store.py:12``."""
    names = re.split(r"[/:@#]", run)
    return [name.casefold() for name in names if name] if len(names) > 1 else []


def _stem(word: str) -> str:
    """Cut the commonest English endings, so that ``renamed`` finds ``rename`` and ``renaming``."""
    if len(word) <= 3 or not word.isascii() or word.isdigit():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    for ending in ("ing", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]
            return word.removesuffix("e")
    if word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word
