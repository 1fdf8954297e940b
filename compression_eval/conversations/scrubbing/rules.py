"""The rules of all passes, from `rules.yaml`, where a text contains what they look for, and words.

The words that rules must know are those of `words.yaml` and of the package ``english-words``.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import yaml

from compression_eval.conversations.scrubbing.pseudonyms import KINDS
from compression_eval.errors import DataError, lacking

_WHOLE_TEXT = ((0, sys.maxsize),)

_BOT = re.compile(r"(?:^|[^a-z])bot\]?$|^app/")
_YOUR = re.compile(
    r"(?:your[-_. ]?|(?:seu|sua|tu|su|votre|dein|deine|ihr|vostro|tuo)[-_. ])"
    r"(?:user|usu|uten|nutz|util|nom|name|e-?mail|compte|cuenta|conta|konto|account|github|org|repo).*"
)
"""What stands where a reader shall put their own, in the languages that are met."""
_BETWEEN_WORDS = re.compile(r"[-_.\s]+|(?<=[a-z]{3})(?=[A-Z][a-z]{2})")
_INFLECTIONS = [
    (re.compile(ending), instead)
    for ending, instead in (
        (r"(?<=...)(?<!s)s$", ""),
        (r"(?:(?<=[sxzo])|(?<=[cs]h))es$", ""),
        (r"(?<=..)i(?:es|ed|er|est|ly)$", "y"),
        (r"(?<=..)(?:ed|er|est|ing)$", "e"),
        (r"(?<=...)(?:ed|er|est|ing)$", ""),
        (r"(?<=..)([^aeiou])\1(?:ed|er|est|ing)$", r"\1"),
        (r"(?<=....)ly$", ""),
        (r"(?<=...)ly$", "le"),
    )
]
"""Endings, and what a word has in their place: ``retries``, ``cached``, ``logging``, ``simply``."""


@dataclass(frozen=True)
class Hit:
    """One place: characters ``start`` to ``end``, the rule that found it, and what kind it is."""

    start: int
    end: int
    rule: str
    kind: str
    value: str = ""
    """What is there, where it is written in another way (see `reading`)."""

    def of(self, text: str) -> str:
        """Return what is at the place in a text."""
        return self.value or text[self.start : self.end]


@dataclass(frozen=True)
class Rule:
    """One rule of a pass, as `rules.yaml` explains them."""

    name: str
    hints: tuple[str, ...]
    needs: re.Pattern[str] | None
    pattern: re.Pattern[str]
    each: re.Pattern[str] | None
    named: str


Match = tuple[Rule, re.Match[str], Hit]


def matches(
    passage: str, text: str, windows: Iterable[tuple[int, int]] = _WHOLE_TEXT
) -> Iterator[Match]:
    """Yield every value that the rules of a pass find in a text, or in parts of it."""
    hints: tuple[str, ...] = ()
    hinted = True
    for rule in rules(passage):
        if rule.hints != hints:  # neighbours share theirs
            hints, hinted = rule.hints, not rule.hints or holds_any(text, rule.hints)
        if not hinted or (rule.needs and not rule.needs.search(text)):
            continue
        for start, end in windows:
            for found in rule.pattern.finditer(text, start, end):
                inner = rule.each.finditer(text, *found.span("listed")) if rule.each else (found,)
                for match in inner:
                    for group in match.re.groupindex:
                        kind = group.partition("_")[0]
                        if kind in KINDS and match[group]:
                            yield rule, found, Hit(*match.span(group), rule.name, kind)


def holds_any(text: str, hints: Iterable[str]) -> bool:
    """Return whether a text contains any of some literals, which are in lower case."""
    lowered = _lowered(text)
    return any(hint in lowered for hint in hints)


@lru_cache(maxsize=1)
def _lowered(text: str) -> str:
    return text.lower()  # once for all passes


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
    flags = re.VERBOSE if passage in ("emails", "profiles") else re.VERBOSE | re.ASCII

    def compiled(pattern: str) -> re.Pattern[str]:
        while "${" in pattern:
            pattern = re.sub(r"\$\{(\w+)\}", lambda part: every["parts"][part[1]], pattern)
        return re.compile(pattern, flags)

    return tuple(
        Rule(
            name,
            tuple(rule.get("hints", ())),
            compiled(rule["needs"]) if "needs" in rule else None,
            compiled(rule["pattern"]),
            compiled(rule["each"]) if "each" in rule else None,
            rule.get("named", ""),
        )
        for name, rule in every[passage].items()
    )


@cache
def yaml_file(name: str) -> Any:
    """Return what a YAML file of this folder contains."""
    return yaml.safe_load((files(__package__) / f"{name}.yaml").read_text(encoding="utf-8"))


def missing() -> DataError:
    """Return the error that a package of the extra ``scrub`` is not there."""
    return lacking("scrubbing", "scrub")


@cache
def words(name: str) -> frozenset[str]:
    """Return one list of `words.yaml`, lower case."""
    return frozenset(yaml_file("words")[name].split())


def is_bot(name: str) -> bool:
    """Return whether a name says that a program has it: ``dependabot[bot]``, ``app/renovate``."""
    return bool(_BOT.search(name.casefold()))


@lru_cache(maxsize=10_000)
def is_account(name: str) -> bool:
    """Return whether an account names a role, a program or a placeholder, and not a person."""
    lowered = name.casefold()
    return (
        lowered in words("accounts")
        or lowered.rstrip("0123456789") in words("numbered")
        or is_bot(lowered)
        or bool(_YOUR.fullmatch(lowered))
    )


@lru_cache(maxsize=10_000)
def is_common(name: str) -> bool:
    """Return whether a name says too much else to be replaced wherever it stands.

    So does a word of the language or of programs, and a name made of such words (``git-sync``).
    """
    lowered = name.casefold()
    if len(lowered) < 3 and lowered.isascii():
        return True
    parts = [part.casefold() for part in _BETWEEN_WORDS.split(name) if part]
    return is_account(lowered) or all(map(is_word, parts))


@lru_cache(maxsize=100_000)
def is_word(part: str) -> bool:
    """Return whether a part of a name is a word of the language or of programs; in lower case."""
    stem = part[:-1] if part[-1:].isdigit() and not part[-2:].isdigit() else part
    if not stem.isascii():
        return False
    if len(stem) < 3 or is_account(part) or words("common") & {part, stem}:
        return True
    # What it may be a form of; most of these are no words.
    bases = {stem, *(ending.sub(instead, stem) for ending, instead in _INFLECTIONS)}
    return not is_name(stem) and any(
        base in words("common") or (base in dictionary() and not is_name(base)) for base in bases
    )


def is_personal(name: str) -> bool:
    """Return whether a part of a name is one that people have, by the dictionary: ``jane-7``."""
    parts = re.findall(r"[a-z]{3,}", name.casefold())
    return not is_common(name) and any(map(is_name, parts))


def is_name(word: str) -> bool:
    """Return whether people have a word as a name, too; it is in lower case."""
    return word in words("names") or word.capitalize() in dictionary()


@cache
def dictionary() -> frozenset[str]:
    """Return the words of a dictionary that writes names with a capital; it takes 40 MB.

    Without those that a second one lacks: many are surnames before they are words (``das``).
    """
    try:
        from english_words import get_english_words_set
    except ImportError as error:
        raise missing() from error
    web2 = get_english_words_set(["web2"])
    gcide = get_english_words_set(["gcide"], lower=True)
    return frozenset(word for word in web2 if word in gcide or not word.islower())
