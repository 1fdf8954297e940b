"""The rules of all passes, from `rules.yaml`, and where a text holds what they look for."""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from compression_eval.conversations.scrubbing.pseudonyms import KINDS

_WHOLE_TEXT = ((0, sys.maxsize),)


@dataclass(frozen=True)
class Hit:
    """One place: characters ``start`` to ``end``, the rule that found it, and what kind it is."""

    start: int
    end: int
    rule: str
    kind: str


@dataclass(frozen=True)
class Rule:
    """One rule of a pass, as `rules.yaml` explains them."""

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    each: re.Pattern[str] | None
    named: bool


Match = tuple[Rule, re.Match[str], Hit]


def matches(
    passage: str, text: str, windows: Iterable[tuple[int, int]] = _WHOLE_TEXT
) -> Iterator[Match]:
    """Yield every value that the rules of a pass find in a text, or in parts of it."""
    lowered = text.lower()
    for rule in rules(passage):
        if rule.hints and not any(hint in lowered for hint in rule.hints):
            continue
        for start, end in windows:
            for found in rule.pattern.finditer(text, start, end):
                inner = rule.each.finditer(text, *found.span("listed")) if rule.each else (found,)
                for match in inner:
                    for group in match.re.groupindex:
                        kind = group.partition("_")[0]
                        if kind in KINDS and match[group]:
                            yield rule, found, Hit(*match.span(group), rule.name, kind)


def without_overlaps(hits: Iterable[Hit]) -> list[Hit]:
    """Return hits in order, of any that overlap the one that begins first, then the longest.

    Of hits at one place the first given counts.
    """
    chosen: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
        if hit.end > hit.start and (not chosen or hit.start >= chosen[-1].end):
            chosen.append(hit)
    return chosen


@cache
def rules(passage: str) -> tuple[Rule, ...]:
    """Return the rules of a pass, in their order."""
    every = yaml_file("rules")
    flags = re.VERBOSE if passage == "emails" else re.VERBOSE | re.ASCII

    def compiled(pattern: str) -> re.Pattern[str]:
        while "${" in pattern:
            pattern = re.sub(r"\$\{(\w+)\}", lambda part: every["parts"][part[1]], pattern)
        return re.compile(pattern, flags)

    return tuple(
        Rule(
            name,
            tuple(rule.get("hints", ())),
            compiled(rule["pattern"]),
            compiled(rule["each"]) if "each" in rule else None,
            rule.get("named", False),
        )
        for name, rule in every[passage].items()
    )


@cache
def yaml_file(name: str) -> Any:
    """Return what a YAML file of this folder holds."""
    return yaml.safe_load((files(__package__) / f"{name}.yaml").read_text(encoding="utf-8"))
