"""Pass ``secrets``: keys, tokens, passwords, connection strings.

No rule asks how random a value looks: the paths and hashes that probes are about look random too.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from compression_eval.conversations.scrubbing.detector import detect
from compression_eval.conversations.scrubbing.hits import Hit, Remembered, without_overlaps
from compression_eval.conversations.scrubbing.pseudonyms import without_secret_pseudonyms
from compression_eval.conversations.scrubbing.vocabulary import Learnt, Vocabulary
from compression_eval.conversations.scrubbing.words import words

NAME = "secrets"

_HASH = re.compile(r"[0-9a-f]{7,40}|[0-9A-F]{7,40}")
_UUID = re.compile(r"(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_IDENTIFIER = re.compile(r"(?:toolu|call|fc|msg|resp|chatcmpl|rs|req|run|item)[_-][\w-]+")
_NOT_A_VALUE = re.compile(
    r"[$<%{(*\[!@#].*|.*(?:\$\{|\{|\}|\(|\[|\]|\.\.\.|…|\*\*\*|://|process\.env|os\.environ).*"
    r"|(?i:x+|\.+|-+|_+|.*(?:redacted|placeholder|example|your[_-]|changeme|dummy).*)"
)
_MEMBER = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+[?!]?")
_PATH = re.compile(r"(?:\.{1,2}|~)?/.*|(?:[\w.-]+/)+[\w.-]*\.\w{1,5}|[A-Za-z]:\\.*")
_CODE = re.compile(r"[A-Z]{2,12}-\d{1,6}")
_SURE = ("password-flag", "curl-user", "password-glued-to-a-flag")
_HEADERS = ("authorization-header", "basic-credentials")
_SPOKEN = ("password-in-prose", "pgpass", "netrc")
_CASE_CHANGE = re.compile(r"[a-z][A-Z]")
_KEY_CHARACTERS = re.compile(r"(?=.*\d)(?=.*[A-Z])(?=.*[a-z])[A-Za-z0-9/+=]{32,}")
_WORDS = re.compile(r"[A-Za-z]+(?:[_.-]+[A-Za-z]+)*")
_NO_SECRET_SUFFIX = re.compile(
    r"[_.-]?(?i:id|ids|name|names|url|uri|path|file|type|types|count|counts|length|len|size|limit|"
    r"ttl|exp\w*|env\w*|header|headers|field|prefix|hash|hashes|sha\d*|at|usage|used|budget|kind|"
    r"label|index|field|param|policy|validator|regex|pattern|version|scope|status|length|min\w*|"
    r"max\w*|s|ize\w*|iz\w*|less|ary|ar\w*|manager|store|arn|ref|reset\w*|required|enabled)"
    r"(?:[_.-].*)?"
)
_CAMEL_SUFFIX = re.compile(r"(?:Id|Name|Url|Uri|Path|File|Type|Count|Hash|Usage|Limit|Exp|At|s)\w*")
_TRAILING = ".,:)]}>?!"
_LEARNT_CHARACTERS = 8


@dataclass(frozen=True)
class _Rule:
    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    named: bool


class Secrets:
    """Finds secrets where they stand, and notes them for where they stand alone."""

    name = NAME

    def __init__(self) -> None:
        self._found = Remembered(_secrets)

    def learn(self, text: str, vocabulary: Vocabulary) -> None:
        """Note every secret that can be told in a text."""
        for hit in without_overlaps(self._found(text)):
            value = text[hit.start : hit.end]
            for form in {value, value.rstrip("!")}:
                if _stands_for_itself(form):
                    vocabulary.learn(NAME, Learnt(form, "secret", hit.rule))

    def hits(self, text: str) -> Iterator[Hit]:
        """Yield the secrets in one text."""
        yield from self._found(text)


def _secrets(text: str) -> Iterator[Hit]:
    if len(text) < 8:
        return
    for hit in detect(text):
        value = text[hit.start : hit.end]
        if not _is_fact(value) and not _is_placeholder(value):
            yield hit
    lowered = text.lower()
    for rule in _rules():
        if any(hint in lowered for hint in rule.hints):
            yield from _own(rule, text)


@cache
def _rules() -> tuple[_Rule, ...]:
    text = (files(__package__) / "secret_rules.yaml").read_text(encoding="utf-8")
    return tuple(
        _Rule(
            name,
            tuple(hint.lower() for hint in data["hints"]),
            re.compile(data["pattern"], re.VERBOSE | re.ASCII),
            bool(data.get("named")),
        )
        for name, data in yaml.safe_load(text).items()
    )


def _own(rule: _Rule, text: str) -> Iterator[Hit]:
    for found in rule.pattern.finditer(text):
        start, end = found.span("value")
        if rule.named:
            # A password may well end in "!"; a sentence about one, too, so both are looked for.
            trailing = _TRAILING.rstrip("!") if rule.name == "assigned-secret" else _TRAILING
            while end > start and text[end - 1] in trailing:
                end -= 1
            if not _is_secret(rule, found, text[start:end]):
                continue
        yield Hit(start, end, rule.name, "secret")


def _is_secret(rule: _Rule, found: re.Match[str], value: str) -> bool:
    """Return whether a value that only a name before it gives away is one."""
    if without_secret_pseudonyms(value) != value:
        return _is_partly_hidden(value)
    if rule.name == "password-in-url" or _is_placeholder(value):
        return not _is_placeholder(value)
    if len(value) < 4 or any(form.fullmatch(value) for form in (_MEMBER, _IDENTIFIER, _CODE)):
        return False
    if rule.name == "assigned-secret":
        return _is_assigned(found, value)
    if rule.name in _HEADERS:
        password = _password_of(value)
        if password is not None or rule.name == "basic-credentials":
            return not _is_placeholder(password or "")
    return _is_spoken(value) if rule.name in _SPOKEN else rule.name in _SURE or _is_mixed(value, 12)


def _is_spoken(value: str) -> bool:
    return _is_mixed(value, 6) or len(_CASE_CHANGE.findall(value)) > 1


def _password_of(value: str) -> str | None:
    """Return the password that Base64 of ``user:password`` holds; None if it is something else."""
    try:
        user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return None
    return password if colon and user and password and password.isprintable() else None


def _is_assigned(found: re.Match[str], value: str) -> bool:
    """Return whether what is assigned to a name such as ``api_key`` is a value, and no expression.

    Letters alone are a word of the program, unless they are quoted and a password.
    """
    suffix = found["suffix"]
    if _NO_SECRET_SUFFIX.fullmatch(suffix) or _CAMEL_SUFFIX.fullmatch(suffix):
        return False
    quoted = bool(found["quote"])
    password = found["name"].lower() in ("password", "passwd", "passphrase", "pwd")
    if len(value) < 6 or (_PATH.fullmatch(value) and not _KEY_CHARACTERS.fullmatch(value)):
        return False
    if value.isdigit() or value.isalpha():
        return password and quoted and (value.isdigit() or len(value) >= 8)
    return _is_mixed(value, 6 if quoted else 8)


def _is_mixed(value: str, length: int) -> bool:
    """Return whether a value has letters and something else, and is long enough."""
    letters = any(character.isalpha() for character in value)
    return len(value) >= length and letters and not value.isalpha() and not _WORDS.fullmatch(value)


def _is_placeholder(value: str) -> bool:
    return (
        value.casefold() in words("placeholders")
        or bool(_NOT_A_VALUE.fullmatch(value))
        or len(set(value)) < 3
    )


def _is_partly_hidden(value: str) -> bool:
    """Return whether a stand-in stands beside something that may still be a secret."""
    rest = without_secret_pseudonyms(value)
    return rest != value and bool(re.search(r"[A-Za-z0-9]{6}", rest))


def _is_fact(value: str) -> bool:
    """Return whether a value that a vendor's rule took is what probes ask for."""
    return bool(_HASH.fullmatch(value) or _UUID.fullmatch(value) or _IDENTIFIER.fullmatch(value))


def _stands_for_itself(value: str) -> bool:
    """Return whether a value is a secret wherever it stands, not only beside its name."""
    return len(value) >= _LEARNT_CHARACTERS and not _WORDS.fullmatch(value)
