"""The embedded model's language tools: terms with content, token estimates, words and phrases.

Words are in ``lexicon.yaml``, phrases in ``phrases.yaml``.
"""

import math
import re
from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml

from compression_eval.text.ranking import CJK, terms

_CJK_CHARACTER = re.compile(rf"[{CJK}\uac00-\ud7af\uff00-\uffef\u3000-\u303f]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_WORD = re.compile(r"(?<![\w.-])[A-Za-z']+(?![\w-]|\.\w)")
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
