"""Pass ``handles``: personal handles, and the names that a person listed.

``@word`` alone is a decorator, a package scope or an annotation far more often than a person, so
a handle counts where the words around it say so: after ``cc``, under ``login`` or ``assignee``, in
``gh pr view``, as the first part of a branch.
"""

import re
from collections.abc import Iterator
from functools import partial

from compression_eval.conversations.scrubbing.hits import Hit, Remembered
from compression_eval.conversations.scrubbing.listed import Listed
from compression_eval.conversations.scrubbing.vocabulary import SURE, Learnt, Vocabulary
from compression_eval.conversations.scrubbing.words import is_account, is_common

_ascii = partial(re.compile, flags=re.ASCII)
NAME = "handles"

_HANDLE = r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9_]|-(?=[A-Za-z0-9])){1,38})(?![\w/.@-]*[@/(])"
_AT = _ascii("@" + _HANDLE)
_ADDRESSED = _ascii(
    r"(?i:(?<![A-Za-z])(?:cc|by|from|thanks|thank\ you|thx|ping|hey|hi|hello|dear|ask|assign|"
    r"assigned\ to|assignees?|reviewers?|requested|author|opened|approved|merged|mentions?|owners?|"
    r"with|to|kudos)\s{0,2}[:,]?\s{0,2}\[?)\Z"
)
_ADDRESSED_CHARACTERS = 20
_REMOTE = _ascii(
    r"(?:github\.com|gitlab\.com|bitbucket\.org|codeberg\.org)[:/]"
    r"(?P<name>[A-Za-z0-9][\w.-]{0,38})/"
)
_ROLES = (
    r"created_?by|updated_?by|modified_?by|merged_?by|requested_?by|closed_?by|assigned_?to|assignees?"
    r"|reviewers?|reporter"
)
_VIEW = _ascii(r"(?m:^(?:author|assignees|reviewers):\t(?P<names>[^\n]{1,400}))")
_VIEWED = _ascii(r"(?:^|, )(?P<name>[A-Za-z0-9][A-Za-z0-9-]{1,38})(?=,| \(|$)")
_BRANCH = _ascii(
    r"(?:(?i:branch(?:es)?)(?:[ ]name)?[\"'`]{0,2}(?:[ ]=)?[:\s][\s\"'`]{0,3}"
    r"|\[new[ ]branch\]\s{1,8}"
    r"|Merge[ ]pull[ ]request[ ]\#\d{1,7}[ ]from[ ][\w.-]{1,40}/|/pull/new/"
    r"|HEAD[ ]->[ ]|refs/(?:heads|remotes/[\w.-]{1,40})/|(?<![\w/.-])origin/"
    r"|git[ ](?:checkout|switch)[ ]-[bBcC][ ]|git[ ]push(?:[ ]-[\w-]{1,20}){0,3}[ ]origin[ ]"
    r"|(?:head|base)Ref(?:Name)?[\"'\\]{0,3}\s{0,2}[:=]\s{0,2}[\"'\\]{0,3})(?:users?/)?"
    r"(?P<name>[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+){0,3})/(?=[A-Za-z0-9][\w.-]*(?![\w./-]))"
)
_FILE = _ascii(r"[\w.-]*\.[A-Za-z]{1,4}(?![\w.-])")
_TICKET = _ascii(r"[A-Za-z]{1,5}-\d+.*")
_FORMS = {
    "login": (
        "ogin",
        _ascii(
            r"""(?i:["']?\blogin["']?[ ]{0,2}[:=]{1,3}[ ]{0,2}["'])"""
            r"""(?P<name>[A-Za-z0-9][A-Za-z0-9-]{1,38})["']"""
        ),
    ),
    "role": (
        "",
        _ascii(
            rf"""(?i:(?<![A-Za-z])["']?(?:{_ROLES})["']?[ ]{{0,2}}[:=][ ]{{0,2}}\[?["'])"""
            r"""(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{1,38})["']"""
        ),
    ),
    "argument": (
        "",
        _ascii(
            r"(?<![\w-])(?:--(?:author|assignee|reviewer|committer)[ =]|author[ :])[\"'\\@]{1,3}"
            r"(?P<name>[A-Za-z0-9][A-Za-z0-9-]{1,38})[\"'\\]"
        ),
    ),
    "forge-address": (
        "noreply.github",
        _ascii(r"\d\+(?P<name>[A-Za-z0-9-]{2,39})@users\.noreply\.github\.com"),
    ),
}
_MADE_BY_MACHINES = ("login", "forge-address")
"""Forms that the API of a forge writes: what stands there is an account, even if it is a word."""


class Handles:
    """Finds handles that stand as a person's; owners of git remotes only if asked to."""

    name = NAME

    def __init__(self, listed: Listed, *, remote_owners: bool) -> None:
        self._listed = listed
        self._remote_owners = remote_owners
        self._found = Remembered(self._search)

    def learn(self, text: str, vocabulary: Vocabulary) -> None:
        """Note the listed names, and the handles of this text."""
        for entry in self._listed.entries:
            vocabulary.learn(NAME, entry)
        for rule, start, end in self._found(text):
            handle = text[start:end]
            if not is_common(handle):
                # Who asks for the owners of remotes wants them wherever they stand; and an
                # address that a forge made holds the number and the name of a real account.
                sign = SURE if rule in ("remote-owner", "forge-address") else rule
                vocabulary.learn(NAME, Learnt(handle, "user", rule, any_case=True), sign)

    def hits(self, text: str) -> Iterator[Hit]:
        """Yield the handles of one text that their form shows."""
        for rule, start, end in self._found(text):
            if rule != "forge-address":
                yield Hit(start, end, rule, "user")

    def _search(self, text: str) -> Iterator[tuple[str, int, int]]:
        for rule, start, end in self._places(text):
            handle = text[start:end]
            if not is_account(handle) and not handle.isdigit():
                yield rule, start, end

    def _places(self, text: str) -> Iterator[tuple[str, int, int]]:
        yield from _addressed(text)
        for rule, (hint, form) in _FORMS.items():
            for found in form.finditer(text) if hint in text else ():
                if rule in _MADE_BY_MACHINES or not is_common(found["name"]):
                    yield rule, *found.span("name")
        yield from _viewed(text)
        yield from _branches(text)
        if self._remote_owners:
            yield from (("remote-owner", *found.span("name")) for found in _REMOTE.finditer(text))


def _addressed(text: str) -> Iterator[tuple[str, int, int]]:
    for found in _AT.finditer(text) if "@" in text else ():
        before = text[max(0, found.start() - _ADDRESSED_CHARACTERS) : found.start()]
        if _ADDRESSED.search(before) and not is_common(found["name"]):
            yield "handle", *found.span("name")


def _viewed(text: str) -> Iterator[tuple[str, int, int]]:
    for line in _VIEW.finditer(text) if ":\t" in text else ():
        base = line.start("names")
        for found in _VIEWED.finditer(line["names"]):
            yield "gh-view", base + found.start("name"), base + found.end("name")


def _branches(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the first parts of branches that are accounts, and no kind of work or ticket."""
    for found in _BRANCH.finditer(text) if "/" in text else ():
        is_file = _FILE.match(text, found.end(), found.end() + 80)
        if not (is_file or is_common(found["name"]) or _TICKET.fullmatch(found["name"])):
            yield "branch", *found.span("name")
