"""The stand-ins of one conversation."""

import re

from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms

_SMALL = frozenset(("ipv4", "mac", "phone", "ssn", "card"))
"""Kinds with so few stand-ins that two values of one conversation may meet."""

_ATTEMPTS = 50


class Mapping:
    """Gives every value its stand-in; two values that meet get different ones.

    Who comes first keeps the stand-in that is the same in every file. The order is that of the
    conversation, so the same input gives the same bytes.
    """

    def __init__(self, pseudonyms: Pseudonyms) -> None:
        self._pseudonyms = pseudonyms
        self._made: dict[tuple[str, str], str] = {}
        self._taken: dict[str, str] = {}

    def of(self, kind: str, value: str) -> str:
        """Return the stand-in of a value."""
        key = (kind, value)
        if key not in self._made:
            self._made[key] = self._new(kind, value)
        return self._made[key]

    def digest(self, value: str) -> bytes:
        """Return what a value can be counted by."""
        return self._pseudonyms.digest(value)

    def _new(self, kind: str, value: str) -> str:
        made = self._pseudonyms.of(kind, value)
        if kind not in _SMALL:
            return made
        same = re.sub(r"[^0-9a-f]", "", value.lower()) if kind != "ipv4" else value
        for attempt in range(1, _ATTEMPTS):
            if self._taken.setdefault(f"{kind}:{made}", same) == same:
                break
            made = self._pseudonyms.of(kind, value, attempt)
        return made
