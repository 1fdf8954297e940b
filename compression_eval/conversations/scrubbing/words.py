"""Words that the rules must know, from `words.yaml` and a spell checker's list."""

import re
from functools import cache
from importlib.resources import files

import yaml

_BOT = re.compile(r"(?:^|[^a-z])bot\]?$|^app/")
_BETWEEN_WORDS = re.compile(r"[-_.\s]+")


@cache
def words(name: str) -> frozenset[str]:
    """Return one list of `words.yaml`, lower case."""
    text = (files(__package__) / "words.yaml").read_text(encoding="utf-8")
    data: dict[str, str] = yaml.safe_load(text)
    return frozenset(data[name].split())


@cache
def _english_words() -> frozenset[str]:
    text = (files(__package__) / "english_words.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.split("\n") if line and not line.startswith("#"))


def is_account(name: str) -> bool:
    """Return whether an account names a role, a program or a placeholder, and not a person."""
    lowered = name.casefold()
    return (
        lowered in words("accounts")
        or lowered.rstrip("0123456789") in words("numbered")
        or is_bot(lowered)
    )


def is_bot(name: str) -> bool:
    """Return whether a name says that a program has it: ``dependabot[bot]``, ``app/renovate``."""
    return bool(_BOT.search(name.casefold()))


def is_common(name: str) -> bool:
    """Return whether a name says too much else to be replaced wherever it stands.

    So does a word of the language or of programs, and a name made of such words (``git-sync``).
    """
    lowered = name.casefold()
    if len(lowered) < 3 and lowered.isascii():
        return True
    parts = [part for part in _BETWEEN_WORDS.split(lowered) if part]
    return is_account(lowered) or all(map(_is_word, parts))


def _is_word(part: str) -> bool:
    stem = part[:-1] if part[-1:].isdigit() and not part[-2:].isdigit() else part
    if not stem.isascii():
        return False
    return (
        len(stem) < 3
        or is_account(part)
        or any(
            form in known for form in (part, stem) for known in (words("common"), _english_words())
        )
    )
