"""The wording that checks of probe banks go by, from ``check_words.yaml``."""

import functools
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict

from compression_eval.fixtures.models import Language

WordKind = Literal["artifact", "continuation", "decision", "several", "or", "numbers"]


class _Words(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    en: list[str]
    zh: list[str]
    ja: list[str]


def words(kind: WordKind, language: Language) -> list[str]:
    """Return the words of one kind in one language."""
    found: list[str] = getattr(_all()[kind], language)
    return found


def mentions(kind: WordKind, text: str, language: Language) -> bool:
    """Return whether a text has a word of a kind, in its own language or in English."""
    folded = text.casefold()
    return any(_pattern(kind, name).search(folded) for name in {language, "en"})


@functools.cache
def _pattern(kind: WordKind, language: Language) -> re.Pattern[str]:
    return re.compile("|".join(map(_bounded, _longest_first(words(kind, language)))))


def _longest_first(phrases: Sequence[str]) -> list[str]:
    return sorted((phrase.casefold() for phrase in phrases), key=len, reverse=True)


def _bounded(phrase: str) -> str:
    before = r"(?<![a-z0-9_])" if phrase[0].isascii() and phrase[0].isalnum() else ""
    after = r"(?![a-z0-9_])" if phrase[-1].isascii() and phrase[-1].isalnum() else ""
    return f"{before}{re.escape(phrase)}{after}"


@functools.cache
def _all() -> dict[str, _Words]:
    content = (files(__package__) / "check_words.yaml").read_text(encoding="utf-8")
    return {kind: _Words.model_validate(item) for kind, item in yaml.safe_load(content).items()}
