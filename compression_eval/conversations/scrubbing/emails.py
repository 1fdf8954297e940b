"""Pass ``emails``: addresses, and the names in author lines.

An address is looked for from its ``@``, both ways, so the time grows with the text only. What
looks like one and is none: ``name@v1.2.3``, ``user@host`` in a URL, ``git@host:path``, and a
decorator after an escaped line break. What is nobody's stays: ``test@…``, ``you@…``,
``alice@company.com``, programs.
"""

import re
from collections.abc import Iterator

from compression_eval.conversations.scrubbing.hits import Hit, Remembered
from compression_eval.conversations.scrubbing.vocabulary import Learnt, Vocabulary
from compression_eval.conversations.scrubbing.words import is_account, is_bot, is_common, words

NAME = "emails"

_LOCAL_END = re.compile(r"[A-Za-z0-9._%+'-]{1,64}\Z")
_DOMAIN = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![\w-])", re.ASCII
)
_VERSION = re.compile(r"v?\d+\.|\d+x\.|sha\d+\.")
_RESERVED = frozenset(("example", "test", "invalid", "localhost"))
_SILENT = frozenset(("noreply", "no-reply", "donotreply", "do-not-reply", "git", "hg", "svn"))

_LETTERS = r"""[^\s<>"'`:;,=(){}\[\]|\\@#*/+]"""
_WORDS = _LETTERS + "{1,30}"
_PERSON = _WORDS + r"(?:[ ]" + _WORDS + r"){0,3}"
_ADDRESS_AFTER = re.compile(r"[ ]<[^<>@\s]{1,80}@[^<>@\s]{1,120}>")
_TRAILER = (
    r"(?i:author|committer|commit|tagger|co-authored-by|signed-off-by|reviewed-by|acked-by|tested-by|"
    r"reported-by|suggested-by|helped-by|authorship|from|to|cc|maintainers?|authors?)"
)
_BEFORE_ADDRESS = {
    "author-line": re.compile(_TRAILER + r"[:=]?[ ]{1,10}[\"']?(?P<name>" + _PERSON + r")\Z"),
    "named-address": re.compile(
        r"(?<![^\s\"'(\[:,\\n])(?P<name>[^\W\d_a-z]"
        + _LETTERS
        + "{0,29}(?:[ ]"
        + _WORDS
        + r"){0,2})\Z"
    ),
}
_LINE_CHARACTERS = 160
_TRAILERS = ("author-line", "git-config", "config-section", "login-and-name", "blame")
_PEOPLE = {
    "git-config": re.compile(
        r"""(?:user\.name[ =]{1,3}|GIT_(?:AUTHOR|COMMITTER)_NAME=)["'\\]{0,3}(?P<name>"""
        + _PERSON
        + r")(?=[\"'\\\n]|$)"
    ),
    "config-section": re.compile(
        r"\[user\](?:\\n|\s)(?:[^\[\n]{0,200}\n){0,4}?(?:\\t|[ \t]){0,8}name[ \t]{0,8}=[ \t]{0,8}"
        r"[\"']?"
        r"(?P<name>" + _PERSON + r")(?=[\"'\\\n]|$)"
    ),
    "login-and-name": re.compile(
        r"""["']?\blogin["']?\s{0,2}[:=]\s{0,2}["'][^"'\n]{1,60}["'],?\s{0,20}"""
        r"""(?:["']?\w{1,30}["']?\s{0,2}[:=]\s{0,2}(?:["'][^"'\n]{0,200}["']|\w{1,20}),?\s{1,20}){0,4}"""
        r"""["']?name["']?\s{0,2}[:=]\s{0,2}["'](?P<name>""" + _PERSON + r""")["']"""
    ),
    "name-and-login": re.compile(
        r"""(?:["']name["']\s{0,2}:\s{0,2}["']|\bname[ ]=[ ]")(?P<name>"""
        + _PERSON
        + r""")["'],?\s{1,20}["']?login["']?[ ]{0,2}[:=]"""
    ),
    "role-name": re.compile(
        r"""(?i:(?<![A-Za-z])["']?(?:author|display_?name|full_?name|created_?by|updated_?by|assigned_?to"""
        r"""|assignees?|reviewers?|reporter)["']?[ ]{0,2}[:=][ ]{0,2}\[?["'])(?P<name>"""
        + _WORDS
        + r"(?:[ ]"
        + _WORDS
        + r"""){1,3})["']"""
    ),
    "blame": re.compile(
        r"\b[0-9a-f]{7,40}[ ][^\n(]{0,200}\((?P<name>"
        + _PERSON
        + r")[ ]{1,30}\d{4}-\d\d-\d\d[ ]\d\d:\d\d:\d\d[ ]"
    ),
    "name-and-email": re.compile(
        r"""(?i:["']?\b(?:author_?)?name["']?[ ]{0,2}[:=][ ]{0,2}["'])(?P<name>"""
        + _PERSON
        + r""")["'],?\s{1,20}["']?(?:[\w.]{0,20})(?i:e-?mail)["']?[ ]{0,2}[:=]"""
    ),
}
_HINTS = {
    "git-config": "ame",
    "config-section": "[user]",
    "login-and-name": "login",
    "name-and-login": "login",
    "role-name": "",
    "blame": "(",
    "name-and-email": "mail",
}
_NO_PERSON = re.compile(
    r"(?i:your name|.*test user|github.*|gitlab.*|claude.*|codex.*|copilot.*|cursor.*|dependabot.*|"
    r"renovate.*|not committed yet|example.*|alice|bob|co-authored-by.*|the .*|openai.*|"
    r"anthropic.*)"
)
_NAME_WORD = re.compile(r"[^\W\d_][\w.'’-]*")
_MIN_LOCAL = 4


class Emails:
    """Finds addresses and the names that stand in author lines."""

    name = NAME

    def __init__(self) -> None:
        self._people = Remembered(_people)

    def learn(self, text: str, vocabulary: Vocabulary) -> None:
        """Note the people of author lines, with the longer parts of a whole name, and accounts.

        First and last name together are sure; one word, or common words, need a second sign, such
        as the same word in an address.
        """
        for rule, start, end in self._people(text):
            name = text[start:end]
            if not name.isascii() or (" " in name and not is_common(name)):
                vocabulary.learn(NAME, Learnt(name, "person", rule))
            elif " " in name or not is_common(name):
                vocabulary.learn(NAME, Learnt(name, "person", rule), "author")
            for part in name.split() if " " in name else ():
                if part[:1].isupper() and part.isalpha() and not is_common(part):
                    vocabulary.learn(NAME, Learnt(part, "person", rule))
        for hit in _addresses(text) if "@" in text else ():
            local = text[hit.start : text.index("@", hit.start)].rpartition("+")[2]
            if len(local) >= _MIN_LOCAL and not is_common(local):
                vocabulary.learn(NAME, Learnt(local, "user", "e-mail", any_case=True), "address")
            if "." in local:
                vocabulary.add_sign(local.replace(".", " "), "address")

    def hits(self, text: str) -> Iterator[Hit]:
        """Yield the addresses, and the names that stand before one."""
        if "@" in text:
            yield from _addresses(text)
        for rule, start, end in self._people(text):
            yield Hit(start, end, rule, "person")


def _people(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield rule and place of every name that its surroundings show to be a person's."""
    for rule, start, end in _people_places(text):
        if _is_person(text[start:end], rule):
            yield rule, start, end


def _is_person(name: str, rule: str) -> bool:
    """Return whether a name is a person's, and no placeholder, program or word of a grammar."""
    parts = name.split()
    if not all(_NAME_WORD.fullmatch(part) for part in parts):
        return False
    if _NO_PERSON.fullmatch(name) or is_account(name):
        return False
    if not is_common(name):
        return True
    capitalised = all(part[0].isupper() for part in parts)
    nobody = any(part.casefold() in words("nobody") or is_account(part) for part in parts)
    return rule in _TRAILERS and capitalised and not nobody


def _people_places(text: str) -> Iterator[tuple[str, int, int]]:
    for address in _ADDRESS_AFTER.finditer(text) if "@" in text else ():
        base = max(0, address.start() - _LINE_CHARACTERS)
        base = max(base, text.rfind("\n", base, address.start()) + 1)
        for rule, form in _BEFORE_ADDRESS.items():
            if found := form.search(text[base : address.start()]):
                yield rule, base + found.start("name"), base + found.end("name")
                break
    for rule, form in _PEOPLE.items():
        if _HINTS[rule] in text:
            for found in form.finditer(text):
                yield rule, *found.span("name")


def _addresses(text: str) -> Iterator[Hit]:
    at = text.find("@")
    while at >= 0:
        span = _around(text, at)
        if span is not None:
            yield Hit(*span, "e-mail", "email")
        at = text.find("@", at + 1)


def _around(text: str, at: int) -> tuple[int, int] | None:
    """Return the address around an ``@``, or None if there is none."""
    right = _DOMAIN.match(text, at + 1)
    if right is None:
        return None
    base = max(0, at - 65)
    left = _LOCAL_END.search(text[base:at])
    if left is None:
        return None
    start, end = base + left.start(), right.end()
    if start and text[start - 1] == "\\" and text[start] in "nrtbf":
        start += 1
    while start < at and text[start] in ".-+'%":
        start += 1
    is_format = start > 0 and text[start - 1] == "%" and at - start == 1
    if start == at or is_format or not _is_address(text[start:at], right[0].lower()):
        return None
    before = text[max(0, start - 3) : start]
    if before.endswith("//") or (before.endswith(":") and "//" in text[max(0, start - 90) : start]):
        return None  # a user in a URL
    return start, end


def _is_address(local: str, domain: str) -> bool:
    labels = domain.split(".")
    if labels[-1] in _RESERVED or "example" in labels:
        return False
    if _VERSION.match(domain) or labels[-1] in words("file_ends"):
        return False
    local = local.casefold()
    if local in _SILENT or is_bot(local):
        return False
    who = local.rstrip("0123456789")
    if who in words("neutral_locals") or re.match(r"test(?![a-z])|tester|testuser", who):
        return False
    return not (who in words("neutral_people") and labels[-2] in words("neutral_domains"))
