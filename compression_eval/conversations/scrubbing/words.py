"""Words that the rules must know, from `words.yaml`."""

from functools import cache
from importlib.resources import files

import yaml


@cache
def words(name: str) -> frozenset[str]:
    """Return one list of `words.yaml`, lower case."""
    text = (files(__package__) / "words.yaml").read_text(encoding="utf-8")
    data: dict[str, str] = yaml.safe_load(text)
    return frozenset(data[name].split())


def is_account(name: str) -> bool:
    """Return whether an account names a role or a placeholder, and not a person."""
    lowered = name.casefold()
    return lowered in words("accounts") or lowered.rstrip("0123456789") in words("numbered")


def is_common(word: str) -> bool:
    """Return whether a word says too much else to be replaced wherever it stands."""
    lowered = word.casefold()
    return len(lowered) < 3 or lowered in words("common") or is_account(lowered)
