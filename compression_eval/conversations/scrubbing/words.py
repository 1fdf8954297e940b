"""Words that the rules must know, from `words.yaml` and the package ``english-words``."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from compression_eval.conversations.scrubbing.rules import yaml_file
from compression_eval.fixtures.errors import DataError

_BOT = re.compile(r"(?:^|[^a-z])bot\]?$|^app/")
_BETWEEN_WORDS = re.compile(r"[-_.\s]+")
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


def missing(package: str) -> DataError:
    """Return the error that a package of the extra ``scrub`` is not there."""
    return DataError(
        f"the scrubber needs the package {package}; install it with: "
        "pip install 'compression_eval[scrub]'"
    )


@cache
def words(name: str) -> frozenset[str]:
    """Return one list of `words.yaml`, lower case."""
    return frozenset(yaml_file("words")[name].split())


def is_bot(name: str) -> bool:
    """Return whether a name says that a program has it: ``dependabot[bot]``, ``app/renovate``."""
    return bool(_BOT.search(name.casefold()))


def is_account(name: str) -> bool:
    """Return whether an account names a role, a program or a placeholder, and not a person."""
    lowered = name.casefold()
    return (
        lowered in words("accounts")
        or lowered.rstrip("0123456789") in words("numbered")
        or is_bot(lowered)
    )


def is_common(name: str) -> bool:
    """Return whether a name says too much else to be replaced wherever it stands.

    So does a word of the language or of programs, and a name made of such words (``git-sync``).
    """
    lowered = name.casefold()
    if len(lowered) < 3 and lowered.isascii():
        return True
    parts = [part for part in _BETWEEN_WORDS.split(lowered) if part]
    return is_account(lowered) or all(map(_is_word, parts))


@lru_cache(maxsize=100_000)
def _is_word(part: str) -> bool:
    stem = part[:-1] if part[-1:].isdigit() and not part[-2:].isdigit() else part
    if not stem.isascii():
        return False
    if len(stem) < 3 or is_account(part) or words("common") & {part, stem}:
        return True
    return not _is_name(stem) and any(
        base in words("common") or (base in _dictionary() and not _is_name(base))
        for base in _base_forms(stem)
    )


def _is_name(word: str) -> bool:
    return word in words("names") or word.capitalize() in _dictionary()


def _base_forms(word: str) -> Iterator[str]:
    """Yield a word, and what it may be a form of; most of these are no words."""
    yield word
    for ending, instead in _INFLECTIONS:
        base, changed = ending.subn(instead, word)
        if changed:
            yield base


@cache
def _dictionary() -> frozenset[str]:
    """Return the words of a dictionary that writes names with a capital.

    Without those that a second one lacks: many are surnames before they are words (``das``).
    """
    try:
        from english_words import get_english_words_set
    except ImportError as error:
        raise missing("english-words") from error
    web2 = get_english_words_set(["web2"])
    gcide = get_english_words_set(["gcide"], lower=True)
    return frozenset(word for word in web2 if word in gcide or not word.islower())
