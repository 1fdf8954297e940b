"""The embedded model's language tools: search terms, token estimates, words and phrases.

A coding conversation is searched by pieces of identifiers as often as by whole ones, so a name such
as ``parse_retry_after`` gives the whole name and its parts. Chinese and Japanese have no spaces;
overlapping pairs of characters replace words there. Words are in ``lexicon.yaml``, phrases in
``phrases.yaml``.
"""

import math
import re
import unicodedata
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Literal

import yaml

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_LATIN = "0-9A-Za-z_\u00c0-\u024f"
_RUN = re.compile(rf"[{_LATIN}]+(?:[.\-/:@#][{_LATIN}]+)*|[{_CJK}\u3005\u30fc]+")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z\u00c0-\u024f]+|\d+")
_CJK_CHARACTER = re.compile(rf"[{_CJK}\uac00-\ud7af\uff00-\uffef\u3000-\u303f]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_WORD = re.compile(r"(?<![\w.-])[A-Za-z']+(?![\w-]|\.\w)")
_MAX_RUN = 120
"""Maximum length of a run that is split; longer ones are encoded data."""
_CHARACTERS_PER_TOKEN = 4

SECTIONS = ("intent", "constraints", "files", "decisions", "state", "problems", "next_steps")
"""Sections of a summary, in the order they are written."""


def estimate_tokens(text: str) -> int:
    """Return a rough token count: four characters each, one for a Chinese or Japanese character."""
    wide = len(_CJK_CHARACTER.findall(text)) if not text.isascii() else 0
    return wide + math.ceil((len(text) - wide) / _CHARACTERS_PER_TOKEN)


def is_wide(text: str) -> bool:
    """Return whether a text has any Chinese or Japanese character."""
    return not text.isascii() and _CJK_CHARACTER.search(text) is not None


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


def content_terms(text: str) -> list[str]:
    """Return the terms of a text without words that carry no content."""
    words, phrases, characters = _ignored()
    kept = _WORD.sub(lambda word: " " if word[0].casefold() in words else word[0], text)
    return [term for term in terms(phrases.sub(" ", kept)) if not characters.issuperset(term)]


@cache
def _ignored() -> tuple[frozenset[str], re.Pattern[str], frozenset[str]]:
    """Return what carries no content: Latin words, wide expressions, single wide characters.

    Single characters also occur inside words with a meaning, so they are only left out next to
    another such character.
    """
    words = " ".join(_data("lexicon.yaml")["ignored"]).split()
    wide = sorted((word for word in words if is_wide(word)), key=len, reverse=True)
    hiragana = (chr(code) for code in range(0x3041, 0x3097))
    return (
        frozenset(word for word in words if not is_wide(word)),
        re.compile("|".join(re.escape(word) for word in wide if len(word) > 1)),
        frozenset([*hiragana, *(word for word in wide if len(word) == 1)]),
    )


@cache
def names_of(group: Literal["cues", "sought"]) -> tuple[str, ...]:
    """Return the names in a group of the lexicon, in the order of the file."""
    return tuple(_data("lexicon.yaml")[group])


@cache
def words(group: Literal["cues", "sought", "states"], name: str) -> re.Pattern[str]:
    """Return the pattern of a list of words in the lexicon.

    Args:
        group: ``cues`` show what a question is about, ``sought`` is what answers to it tend to
            hold, ``states`` show that something is done, earlier, unknown, or to be fetched.
        name: Of the list.
    """
    entries: list[str] = _data("lexicon.yaml")[group][name]
    phrases = entries if name in ("unknown", "fetch") else " ".join(entries).split()
    wide = sorted((re.escape(each) for each in phrases if is_wide(each)), key=len, reverse=True)
    latin = [
        re.escape(each.removesuffix("*")) + (r"\w*" if each.endswith("*") else "")
        for each in phrases
        if not is_wide(each)
    ]
    bounded = [rf"(?<![\w-])(?:{'|'.join(latin)})(?!\w)"] if latin else []
    return re.compile("|".join([*bounded, *wide]), re.IGNORECASE)


def phrase(name: str, like: str) -> str:
    """Return a fixed phrase in the language of the text ``like``."""
    language = "ja" if _KANA.search(like) else "zh" if is_wide(like) else "en"
    text: str = _data("phrases.yaml")[name][language]
    return text


def section_of(title: str) -> str | None:
    """Return the section of a heading in any language; None if there is none."""
    plain = title.strip().casefold().replace("_", " ")
    for section in SECTIONS:
        names = [*_data("phrases.yaml")[section].values(), section.replace("_", " ")]
        if plain in (name.casefold() for name in names):
            return section
    return None


@cache
def _data(name: str) -> dict[str, Any]:
    text = (resources.files("compression_eval.embedded") / name).read_text("utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data
