"""What conversations taught the passes: values that are replaced wherever they stand.

A password stands besides its name once, and bare in the command that uses it; a user's name stands
in a home path, and in a sentence. So the passes first read everything and note such values here,
and then each text is searched for them.

A secret or a host is sure as soon as its form shows it. The name of an account or a person is
not: one test literal can look like a home folder. It needs two signs of different kinds, or one
that only a real account leaves. With one it is replaced where accounts stand (``@name``,
``name/branch``, ``forge.com/name``, a whole JSON string), with two as a word of its own, and in
neither case inside identifiers, module paths, addresses of pages, hashes and format strings. A
name that the code has as well (a package, a command, a folder, a repository) is no person's: the
session is about it, and it is left.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compression_eval.conversations.scrubbing.pseudonyms import is_pseudonym
from compression_eval.conversations.scrubbing.rules import (
    Hit,
    is_common,
    is_personal,
    is_word,
    without_overlaps,
)
from compression_eval.errors import DataError

MAX_VALUES = 500_000
"""Values of one import; more are taken for a fault, since all of them are held in memory."""

SURE = "sure"
"""The sign of what needs no other: a form that only the real thing has."""

FOLDER, HOME, LOGIN = "folder", "home", "login"
OWN = "own-remote"
"""The sign, and the rule, of whom the repository belongs to that a session pushes to."""
OPENED = "opened"
"""The sign of whose home folder the calls of a session work in."""
NAMED = "named"
"""The sign of an account whose description does not say whether it is a person's."""

_PAGE, _DECLARED = "profile-page", "declared"
_CODE = {
    *("command", "package", "installed", "manifest", "repository"),
    *("bot", "app", "organization", "company"),
}
"""Signs that a name is one of the code, and no person's. A folder is one, too, if nothing but a
home folder shows an account of that name: work may are in ``/data/lab/jane``."""
_PLACES = {FOLDER, HOME, SURE, OPENED}
_OWNS = {"owner", "scope", "site"}
"""Signs that an account has repositories, packages or pages, as a person or a company does."""
_EITHERS = {NAMED, _PAGE}
"""Signs that the account of a company leaves as well as a person's."""
_NOBODYS = _OWNS | {FOLDER, _DECLARED}

JOINED = "joined-name"
"""The rule for first and last name written as one: nothing else is called so."""
ANYWHERE = ("listed", JOINED)
IN_HOST = "within-host"
"""The rule for a name that is looked for in the names of hosts only."""

_RUN = re.compile(r"[A-Za-z0-9]+")
_RUN_BEHIND_ESCAPE = re.compile(r"(?:\\(?:[nrtbf]|u[0-9A-Fa-f]{4})|%2f)([A-Za-z0-9]+)")
_ESCAPED_LETTER = re.compile(r"\\u(?:00[3-7c-fC-F]|01[0-7]|212[aA])")
"""A letter or digit of ASCII, or a character that one in lower case is, as JSON may write it."""
_BEFORE = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%2[Ff]))")
_BEHIND = re.compile(r"(?![A-Za-z0-9])")

_FORGE_BEFORE = re.compile(
    r"(?:(?:github|gitlab|bitbucket|codeberg|githubusercontent)\.(?:com|org)[:/]"
    r"(?:users/|repos/|orgs/)?|(?<![\w/])(?:gh|github)[:/]|(?<![\w.-])/?(?:repos|users|orgs)/"
    r"|(?:huggingface\.co|hf\.co)/(?:datasets/|spaces/)?|pull request #\d{1,7} from "
    r"|(?<![\w./-])(?:\.\.[/\\])*(?:Users|home)[/\\]|(?<![A-Za-z0-9])Users-"
    r"|(?:ghcr|docker)\.io/|/(?:gh|git)/|%2[Ff]|\]\(/|\blabel[\"'\\]{0,3}\s?[:=]\s?[\"'\\]{1,2})\Z"
)
"""What an account's name is behind, whatever it is."""
_BRANCH_BEFORE = re.compile(
    r"(?:(?:^|[^\w./@-]|\\[nrt])(?:(?:origin|(?:refs/)?heads|remotes/\w+)/)?|\.{2,3})\Z"
)
_BRANCH_BEHIND = re.compile(r"/(?=[A-Za-z0-9])[\w.-]*+(?<!\.)(?!/)")
_MEMBER_BEFORE = re.compile(r"[\"']\s{0,2}:\s{0,2}\\{0,3}\"\Z")
_MEMBER_BEHIND = re.compile(r"\\{0,3}\"")
"""Around a value in JSON, which may be in a string itself."""
_WHOLE_BEHIND = re.compile(r"(?::[A-Za-z][\w./-]{0,200})?\Z")
"""Behind a name that is a whole string, or in ``name:branch``."""
_FILE_END = re.compile(r"\.[A-Za-z]{1,5}\Z")
_CODE_BEFORE = re.compile(
    r"(?:[_$%#&]|(?<=\S)\.|::|->"
    r"|(?:^|\n|\\n)[ \t]*(?:import(?:[ ]type)?[ ](?:[\w.]+,[ ]?)*|package[ ]))\Z"
)
_CODE_BEHIND = re.compile(r"[_(]|\.\w|::|->|[ ]import[ ]")
"""Around a name that is part of an identifier, a placeholder or an import."""
_PATH_BEFORE = re.compile(r"[\w.~:@%+/\\-]*\Z")
_ABSOLUTE = re.compile(r"(?:file://)?(?:~|/|[A-Za-z]:[/\\])")
_NUMBER_BEFORE = re.compile(r"(?:[iI][dD][\"'\\]{0,2}\s{0,3}[:=]\s{0,3}[\"'\\]{0,2}|/u/)\Z")
_MACHINE_BEHIND = re.compile(
    r"-(?:s-)?(?:mac|macbook|imac|laptop|desktop|pc|phone|server|patch|fix|dev)(?![A-Za-z])"
)
_ENCODED_BEFORE = re.compile(r"(?i:(?:(?<![a-z0-9])users|-home)-)\Z")
_URL_BEFORE = re.compile(r"://(?:[\w-]{1,40}\.){0,3}\Z")
_DOMAIN_BEHIND = re.compile(r"(?:\.[a-z][a-z0-9-]{0,30}){0,3}\.[a-z]{2,10}(?![\w-]|\.\w)")
_HOSTED_BEHIND = re.compile(
    r"(?:\.[a-z0-9-]{1,30})?\.(?:(?:workers|pages|web|fly|deno)\.(?:dev|app)|(?:vercel|netlify)\.app"
    r"|(?:github|gitlab)\.io|herokuapp\.com|onrender\.com)(?![\w-])"
)
_LETTERS = {
    code: ord(unicodedata.normalize("NFKD", chr(code))[0])
    for code in range(0xC0, 0x180)
    if unicodedata.normalize("NFKD", chr(code))[0].isascii()
}
_SURNAME = re.compile(r"[ ]([A-Z][a-z\u00df-\u00ff]{2,20})(?![\w-])")
_NEAR = 200
_MIN_OWN_CHARACTERS = 4


@dataclass(frozen=True)
class Learnt:
    """One value, and how it is looked for."""

    value: str
    kind: str
    rule: str
    any_case: bool = False
    """Whether other spellings in upper and lower case are the same value."""


class Vocabulary:
    """The values that conversations taught, by the pass that looks for them.

    Args:
        shared: What other conversations of the same import taught; it is read and never changed.
    """

    def __init__(self, shared: "Vocabulary | None" = None) -> None:
        self._shared = shared
        self._learnt: dict[tuple[str, str], Learnt] = {}
        """By pass and value."""
        self._by_run: dict[str, list[tuple[str, str]]] = {}
        """Pass and value by the value's longest run of letters and digits, lower case."""
        self._signs: dict[str, set[str]] = {}
        self.changes = 0
        """Grows with everything that was learnt."""

    def learn(self, passage: str, learnt: Learnt | str, sign: str = SURE) -> None:
        """Note a value for a pass, and the sign that shows it, if there is any.

        Of two rules that taught it the first by kind and name counts, so that the order in which
        texts are read does not matter. Of a mere text only the sign is noted, for the case that it
        is learnt itself.

        Raises:
            DataError: There are more than `MAX_VALUES`.
        """
        kind, value = ("user", learnt) if isinstance(learnt, str) else (learnt.kind, learnt.value)
        if not is_pseudonym(kind, value):
            self._add_sign(value, sign)
            if isinstance(learnt, Learnt):
                self._add(passage, learnt)

    @classmethod
    def of(cls, parts: "Iterable[Vocabulary]") -> "Vocabulary":
        """Return everything that several hold, which is the same in whatever order they come."""
        whole = cls()
        for part in parts:
            for (passage, _), learnt in part._learnt.items():
                whole._add(passage, learnt)
            for value, signs in part._signs.items():
                for sign in signs:
                    whole._add_sign(value, sign)
        return whole

    def _add(self, passage: str, learnt: Learnt) -> None:
        key = passage, learnt.value
        before = self._find(key)
        if before is not None and (before.kind, before.rule) <= (learnt.kind, learnt.rule):
            return
        if key not in self._learnt:
            run = max(_RUN.findall(_plain(learnt.value)), key=len, default="")
            self._by_run.setdefault(run, []).append(key)
        self._learnt[key] = learnt
        self.changes += 1

    def _find(self, key: tuple[str, str]) -> Learnt | None:
        known = self._learnt.get(key)
        return known or (self._shared._find(key) if self._shared else None)

    def _add_sign(self, value: str, sign: str) -> None:
        key = value.casefold()
        if not sign or sign in self._signs_of(key):
            return
        self._signs.setdefault(key, set()).add(sign)
        self.changes += 1
        if len(self._signs) > MAX_VALUES:
            raise DataError(
                f"scrubbing: more than {MAX_VALUES:,} values were learnt; scrub fewer files at once"
            )

    def _signs_of(self, key: str) -> set[str]:
        shared = self._shared._signs_of(key) if self._shared else set()
        return self._signs.get(key, set()) | shared

    def may_be_in(self, text: str) -> bool:
        """Return False only if no value is in a text, nor in any JSON that it contains."""
        if any(self._tables()) and _ESCAPED_LETTER.search(text):
            return True  # decoded it may contain runs that it does not contain as it stands
        plain = _plain(text)
        return any(
            run or "\\" in text or _plain(learnt.value) in plain
            for run, _, learnt in self._candidates(plain)
        )

    def hits(self, text: str) -> dict[str, list[Hit]]:
        """Return, by pass, where a text contains what was learnt, as whole words."""
        plain = _plain(text)
        learnt: dict[str, dict[str, Learnt]] = {}
        for _, passage, entry in self._candidates(plain):
            learnt.setdefault(passage, {})[entry.value] = entry
        found: dict[str, list[Hit]] = {}
        for passage, candidates in learnt.items():
            for hit, entry in _places(candidates.values(), text, plain):
                if self._is_meant(entry, text, hit):
                    found.setdefault(passage, []).append(hit)
                    found[passage] += self._surname(entry, text, hit)
        return found

    def _candidates(self, plain: str) -> Iterator[tuple[str, str, Learnt]]:
        """Yield what a text may hold: the run it was found by, the pass, and the value.

        A value is looked for as a whole word, so its runs of letters and digits are whole runs of
        the text, too: the time grows with the text, and not with what was learnt.
        """
        tables = [*self._tables()]
        runs = {"", *(_RUN.findall(plain) if tables else ())}
        if "\\" in plain or "%2" in plain:
            runs.update(_RUN_BEHIND_ESCAPE.findall(plain))
        for table in tables:
            for run in sorted(runs & table._by_run.keys()):
                for key in sorted(table._by_run[run]):
                    yield run, key[0], table._learnt[key]

    def _tables(self) -> "Iterator[Vocabulary]":
        """Yield this, and what others taught, where there is anything."""
        if self._by_run:
            yield self
        if self._shared:
            yield from self._shared._tables()

    def is_of_code(self, name: str) -> bool:
        """Return whether a name is one of the code of these sessions, and so no person's."""
        return _are_of_code(self._signs_of(name.casefold()))

    def _is_meant(self, entry: Learnt, text: str, hit: Hit) -> bool:
        """Return whether a value that is in a text is what was learnt."""
        near = text[max(0, hit.start - _NEAR) : hit.start]
        if entry.kind == "number":
            return bool(_NUMBER_BEFORE.search(near))
        if entry.kind not in ("user", "person") or entry.rule in ANYWHERE:
            return True
        if entry.rule == IN_HOST:
            return _is_in_host(text, hit.end, near)
        if self.is_of_code(entry.value):
            return False
        signs = self._signs_of(entry.value.casefold())
        if len(entry.value) >= _MIN_OWN_CHARACTERS and (
            OWN in signs or (OPENED in signs and _is_of_its_own(entry.value, signs))
        ):
            return True  # their packages, folders and pages are called after them
        return _is_free(text, hit, near, sure=_are_sure(signs))

    def _surname(self, entry: Learnt, text: str, hit: Hit) -> Iterator[Hit]:
        """Yield the last name that is behind a first one: no word, and not of the code."""
        first = text[hit.start : hit.end]
        is_first = entry.kind in ("user", "person") and first.isalpha() and first.istitle()
        found = _SURNAME.match(text, hit.end) if is_first and len(first) > 3 else None
        if found and not (is_word(found[1].casefold()) or self.is_of_code(found[1])):
            yield Hit(*found.span(1), "surname", "person")


def _are_of_code(signs: set[str]) -> bool:
    is_folder = FOLDER in signs and signs - _OWNS <= _PLACES
    shown = signs - _NOBODYS
    is_owner = not _OWNS.isdisjoint(signs) and bool(shown) and shown <= _EITHERS
    # Who pushes may do so for a company, whose packages and pages others use.
    is_company = OWN in signs and shown <= {*_EITHERS, OWN} and bool(signs & {"scope", "site"})
    # Who pushes may have called their packages after themselves.
    code = _CODE - {"package"} if {OWN, _DECLARED} <= signs else _CODE
    return bool(code & signs) or is_folder or is_owner or is_company


def _is_of_its_own(name: str, signs: set[str]) -> bool:
    """Return whether an account's name is nothing else: no person's, and no company's."""
    return len(name) > _MIN_OWN_CHARACTERS and signs.isdisjoint(_NOBODYS) and not is_personal(name)


def _are_sure(signs: set[str]) -> bool:
    """Return whether signs show an account wherever its name stands."""
    shown = {LOGIN if sign == NAMED else sign for sign in signs - _NOBODYS - {_PAGE, OPENED}}
    return SURE in signs or len(shown) > 1


def _is_in_host(text: str, end: int, near: str) -> bool:
    """Return whether a name is a label of a host's name, as of somebody's own pages."""
    is_url = bool(_URL_BEFORE.search(near) and _DOMAIN_BEHIND.match(text, end))
    return is_url or bool(_HOSTED_BEHIND.match(text, end))


def _places(candidates: Iterable[Learnt], text: str, plain: str) -> Iterator[tuple[Hit, Learnt]]:
    if len(plain) != len(text):
        plain = "".join(map(_lowered, text))
    for any_case, searched in ((False, text), (True, plain)):
        exact = {entry.value: entry for entry in candidates if entry.any_case == any_case}
        found: dict[Hit, Learnt] = {}
        folded = {_plain(key) if any_case else key: entry for key, entry in exact.items()}
        for value, otherwise in folded.items():
            for start, end in _whole_words(value, searched, text):
                entry = exact.get(text[start:end], otherwise)
                found[Hit(start, end, entry.rule, entry.kind)] = entry
        for hit in without_overlaps(found):
            yield hit, found[hit]


def _plain(text: str) -> str:
    """Return a text in lower case and without marks on its letters: `märklin` as `marklin`."""
    return text.lower() if text.isascii() else text.lower().translate(_LETTERS)


def _lowered(character: str) -> str:
    """Return a character in lower case where that is one character, too."""
    lower = _plain(character)
    return lower if len(lower) == 1 else character


def _whole_words(value: str, searched: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where a value stands and is no part of a longer word.

    Chinese and Japanese set no words apart, and what begins or ends with a mark needs no edge.
    """
    start = searched.find(value)
    while start >= 0:
        end = start + len(value)
        if (not _RUN.match(value[0]) or _BEFORE.match(text, start)) and (
            not _RUN.match(value[-1]) or _BEHIND.match(text, end)
        ):
            yield start, end
        start = searched.find(value, start + 1)


def _is_free(text: str, hit: Hit, near: str, *, sure: bool) -> bool:
    """Return whether a name that is in a text means the account or the person there.

    Args:
        text: Where it stands.
        hit: Its place.
        near: What is before it.
        sure: Whether the name is known by two signs; else it must be where accounts do.
    """
    start, end = hit.start, hit.end
    if _stands_as_account(text, start, end, near):
        return True
    if not sure or (hit.kind == "user" and is_common(text[start:end])):
        return False
    if _is_in_host(text, end, near):
        return True
    first = text[end : end + 1]
    path = _PATH_BEFORE.search(near)
    is_in_path = bool(path and _ABSOLUTE.match(path[0]))
    if (
        _CODE_BEFORE.search(near)
        or _CODE_BEHIND.match(text, end)
        or (near.endswith("{") and first == "}")
    ):
        return False
    if first == "-" and text[end + 1 : end + 2].isalnum() and not _MACHINE_BEHIND.match(text, end):
        return is_in_path or bool(_ENCODED_BEFORE.search(near))  # else an identifier: "name-core"
    return is_in_path or not (near.endswith(("/", "\\")) or first in ("/", "\\"))


def _stands_as_account(text: str, start: int, end: int, near: str) -> bool:
    behind = text[end : end + 1]
    if _FORGE_BEFORE.search(near):
        return behind not in ("_", ".")
    if is_common(text[start:end]):
        return False
    if near.endswith("users.") or (behind == "@" and not text[end + 1 : end + 2].isdigit()):
        return True
    if near.endswith("@"):
        return not near[-2:-1].isalnum() and behind not in ("(", ".", "_")
    if behind == "/" and _BRANCH_BEFORE.search(near):
        found = _BRANCH_BEHIND.match(text, end, end + _NEAR)
        return bool(found and not _FILE_END.search(found[0]))
    is_member = _MEMBER_BEFORE.search(near) and _MEMBER_BEHIND.match(text, end)
    is_whole = start == 0 and _WHOLE_BEHIND.match(text, end)
    return bool(is_member or is_whole or text.startswith("](/", end))
