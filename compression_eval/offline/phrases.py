"""The few fixed phrases of the embedded model's answers, in the language of the question."""

import re
from functools import cache
from importlib import resources

import yaml

from compression_eval.offline.tokens import is_wide

_KANA = re.compile(r"[\u3040-\u30ff]")


@cache
def _phrases() -> dict[str, dict[str, str]]:
    text = resources.files("compression_eval.offline").joinpath("phrases.yaml").read_text("utf-8")
    data: dict[str, dict[str, str]] = yaml.safe_load(text)
    return data


def language_of(text: str) -> str:
    """Return ``ja`` where kana occur, else ``zh`` where Chinese characters occur, else ``en``."""
    if _KANA.search(text):
        return "ja"
    return "zh" if is_wide(text) else "en"


def phrase(name: str, like: str) -> str:
    """Return a fixed phrase in the language of the text ``like``."""
    return _phrases()[name][language_of(like)]


SECTIONS = ("intent", "constraints", "files", "decisions", "state", "problems", "next_steps")
"""Sections of a summary, in the order they are written."""


def section_of(title: str) -> str | None:
    """Return the section that a heading stands for in any language; None if for none."""
    plain = title.strip().casefold().replace("_", " ")
    for section in SECTIONS:
        names = {*_phrases()[section].values(), section.replace("_", " ")}
        if plain in {name.casefold() for name in names}:
            return section
    return None
