"""Pass ``handles``: personal handles, and the names that a person listed.

``@word`` alone is a decorator, a package scope or an annotation far more often than a person, so
a handle counts where the words around it say so, and from then on wherever it stands.
"""

import re
from collections.abc import Iterator
from functools import partial

from compression_eval.conversations.scrubbing.hits import Hit, Remembered
from compression_eval.conversations.scrubbing.listed import Listed
from compression_eval.conversations.scrubbing.vocabulary import Learnt, Vocabulary
from compression_eval.conversations.scrubbing.words import is_account, is_common

_ascii = partial(re.compile, flags=re.ASCII)
NAME = "handles"

_HANDLE = r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9_]|-(?=[A-Za-z0-9])){1,38})(?![\w/.@-]*[@/(])"
_AT = _ascii("@" + _HANDLE)
_ADDRESSED = _ascii(
    r"(?i:(?<![A-Za-z])(?:cc|by|from|thanks|thank\ you|thx|ping|hey|hi|hello|dear|ask|assign|"
    r"assigned\ to|assignees?|reviewers?|requested|author|opened|approved|merged|mentions?|owners?|"
    r"with|to|kudos)\s{0,2}[:,]?\s{0,2})\Z"
)
_ADDRESSED_CHARACTERS = 20
_LOGIN = _ascii(
    r"""(?i:["']?\blogin["']?[ ]{0,2}[:=][ ]{0,2}["'])(?P<name>[A-Za-z0-9][A-Za-z0-9-]{1,38})["']"""
)
_REMOTE = _ascii(
    r"(?:github\.com|gitlab\.com|bitbucket\.org|codeberg\.org)[:/](?P<name>[A-Za-z0-9][\w.-]{0,38})/"
)


class Handles:
    """Finds handles that stand as a person's; owners of git remotes only if asked to."""

    name = NAME

    def __init__(self, listed: Listed, *, remote_owners: bool) -> None:
        self._listed = listed
        self._remote_owners = remote_owners
        self._found = Remembered(self._search)

    def learn(self, text: str, vocabulary: Vocabulary) -> None:
        """Note the listed names once, and the handles of this text."""
        for entry in self._listed.entries:
            vocabulary.learn(NAME, entry)
        for rule, start, end in self._found(text):
            handle = text[start:end]
            if not is_common(handle):
                vocabulary.learn(NAME, Learnt(handle, "user", rule, any_case=True))

    def hits(self, text: str) -> Iterator[Hit]:
        """Yield the handles of one text that their form shows."""
        for rule, start, end in self._found(text):
            yield Hit(start, end, rule, "user")

    def _search(self, text: str) -> Iterator[tuple[str, int, int]]:
        for found in _AT.finditer(text):
            before = text[max(0, found.start() - _ADDRESSED_CHARACTERS) : found.start()]
            if _ADDRESSED.search(before) and _is_person(found["name"]):
                yield "handle", *found.span("name")
        forms = {"login": _LOGIN} if "ogin" in text else {}
        if self._remote_owners:
            forms["remote-owner"] = _REMOTE
        for rule, form in forms.items():
            for found in form.finditer(text):
                if _is_person(found["name"]):
                    yield rule, *found.span("name")


def _is_person(handle: str) -> bool:
    return not is_account(handle) and not handle.isdigit()
