"""The word lists of ``lexicon.yaml``, ready to match."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from compression_eval.offline.tokens import is_wide


@cache
def _data() -> dict[str, Any]:
    text = resources.files("compression_eval.offline").joinpath("lexicon.yaml").read_text("utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def _pattern(words: list[str]) -> re.Pattern[str]:
    latin, wide = [], []
    for word in words:
        if is_wide(word):
            wide.append(re.escape(word))
        else:
            ending = r"\w*" if word.endswith("*") else ""
            latin.append(re.escape(word.removesuffix("*")) + ending)
    parts = [rf"(?<![\w-])(?:{'|'.join(latin)})(?!\w)"] if latin else []
    return re.compile("|".join([*parts, *sorted(wide, key=len, reverse=True)]), re.IGNORECASE)


@cache
def cue(name: str) -> re.Pattern[str]:
    """Return the pattern that shows that a question is about ``name``."""
    return _pattern(" ".join(_data()["cues"][name]).split())


@cache
def cue_names() -> tuple[str, ...]:
    """Return the names of all cues, in the order of the file."""
    return tuple(_data()["cues"])


@cache
def sought(name: str) -> re.Pattern[str]:
    """Return the pattern of what answers to questions about ``name`` tend to hold."""
    return _pattern(" ".join(_data()["sought"][name]).split())


@cache
def sought_names() -> tuple[str, ...]:
    """Return the names that have a `sought` pattern."""
    return tuple(_data()["sought"])


@cache
def state(name: str) -> re.Pattern[str]:
    """Return the pattern of phrases that show a state: done, earlier, unknown or fetch."""
    entries: list[str] = _data()["states"][name]
    phrases = entries if name in ("unknown", "fetch") else " ".join(entries).split()
    return _pattern(phrases)


@dataclass(frozen=True)
class Ignored:
    """What carries no content in a question.

    Attributes:
        words: Latin words, in lower case.
        phrases: Chinese and Japanese expressions of two characters and more.
        characters: Single ones. They also stand inside words with a meaning, so they may only be
            left out together with another such character.
    """

    words: frozenset[str]
    phrases: re.Pattern[str]
    characters: frozenset[str]


@cache
def ignored() -> Ignored:
    """Return what carries no content in a question."""
    words = " ".join(_data()["ignored"]).split()
    wide = sorted((word for word in words if is_wide(word)), key=len, reverse=True)
    hiragana = (chr(code) for code in range(0x3041, 0x3097))
    return Ignored(
        words=frozenset(word for word in words if not is_wide(word)),
        phrases=re.compile("|".join(re.escape(word) for word in wide if len(word) > 1)),
        characters=frozenset([*hiragana, *(word for word in wide if len(word) == 1)]),
    )
