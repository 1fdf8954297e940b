"""Pass ``secrets``: keys, tokens, passwords, connection strings.

Two sources: the rules of a maintained scanner, ``kingfisher-secret-scanner`` (Apache-2.0, by
MongoDB; several hundred rules of vendors, run in this process, without network), and our own. No
rule asks how random a value looks: the paths and hashes that probes are about look random too.
"""

import base64
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from compression_eval.conversations.scrubbing.pseudonyms import (
    MARK,
    without_key_prefix,
    without_secret_pseudonyms,
)
from compression_eval.conversations.scrubbing.rules import (
    Hit,
    Rule,
    is_word,
    matches,
    missing,
    words,
)

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

_FACT = re.compile(
    r"[0-9a-f]{7,40}|[0-9A-F]{7,40}|(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
"""Hashes and UUIDs, which are no secrets unless a name before them says so."""
_CODE = re.compile(
    r"[A-Za-z_$][\w$]*(?:[?!]{0,2}(?:\.|->|::)[#A-Za-z_$][\w$]*)+[?!]{0,2}"
    r"|(?:toolu|call|fc|msg|resp|chatcmpl|rs|req|run|item)[_-][\w-]+|[A-Z]{2,12}-\d{1,6}"
)
"""Members of objects and modules, ids of calls, and tickets."""
_NOT_A_VALUE = re.compile(
    r"[$<%{(*\[!@#=?&].*|--.*|[A-Za-z_]\w*=\w.*|.*(?:\$\{|\{|\}|\(|\[|\]|\.\.\.|…|\*\*\*|://|->|process\.env|os\.environ).*"
    r"|(?i:x+|\.+|-+|_+|.*(?:redacted|placeholder|example|your[_-]|change[-_]?me|dummy|(?:test|fake|mock|sample)[-_]?(?:secret|password|pass|token|key|api)|\bdemo[_-]|[_-]demo(?![a-z])).*)|[Yy]our[A-Z].*"
)
_PATH = re.compile(r"(?:\.{1,2}|~)?/.*|(?:[\w.-]+/)+[\w.-]*\.\w{1,5}|[A-Za-z]:\\.*")
_CASE_CHANGE = re.compile(r"[a-z][A-Z]")
_KEY_CHARACTERS = re.compile(r"(?=.*\d)(?=.*[A-Z])(?=.*[a-z])[A-Za-z0-9/+=]{32,}")
_WORDS = re.compile(r"[A-Za-z]+(?:[_./:-]+[A-Za-z]+)*")
_NUMBERED = re.compile(r"\d{1,7}[:-][A-Za-z_].*")
"""A line with its number before it, as ``grep -n`` shows it."""
_NO_SECRET_SUFFIX = re.compile(
    r"[_.-]?(?i:id|ids|name|names|url|uri|path|file|type|types|count|counts|length|len|size|limit|"
    r"ttl|exp\w*|env\w*|header|headers|field|prefix|hash|hashes|sha\d*|at|usage|used|budget|kind|"
    r"label|index|field|param|policy|validator|regex|pattern|version|scope|status|length|min\w*|"
    r"max\w*|s|ize\w*|iz\w*|less|ary|ar\w*|manager|store|arn|ref|reset\w*|required|enabled)"
    r"(?:[_.-].*)?|(?:Id|Name|Url|Uri|Path|File|Type|Count|Hash|Usage|Limit|Exp|At|s)\w*"
)
_NAME_OF_CODE = re.compile(r"[A-Za-z_$][\w$]*(?:[./-][A-Za-z][\w$]*)*[?!]?")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z]")
_MIN_LEARNT_CHARACTERS = 8


def secrets(text: str) -> Iterator[Hit]:
    """Yield the secrets in one text: what the scanner finds, and what our own rules do.

    Raises:
        DataError: The scanner is not installed; a weaker scrub would not be seen.
    """
    if len(text) < 8:
        return
    for hit in _detected(text):
        value = text[hit.start : hit.end]
        is_fact = _FACT.fullmatch(value) or _CODE.fullmatch(value)
        if not is_fact and not _is_of_words(value) and not _is_placeholder(value):
            yield hit
    for rule, found, hit in matches("secrets", text):
        if not rule.named:
            yield hit
            continue
        # A password may well end in "!"; a sentence about one, too, so both are looked for.
        trailing = ".,;:)]}>?" if rule.name == "assigned-secret" else ".,;:)]}>?!"
        value = text[hit.start : hit.end].rstrip(trailing)
        cut_off = text.startswith(("...", "…"), hit.start + len(value))
        if not (cut_off and without_key_prefix(value) != value) and _is_secret(rule, found, value):
            yield Hit(hit.start, hit.start + len(value), rule.name, "secret")


def stands_for_itself(value: str) -> bool:
    """Return whether a value is a secret wherever it stands, not only besides its name."""
    if value.endswith(MARK):  # every stand-in begins so
        return False
    is_code = (_HUMP.search(value) and _is_of_words(value)) or _NUMBERED.fullmatch(value)
    kinds = sum(map(bool, (re.search(kind, value) for kind in ("[a-z]", "[A-Z]", "[0-9]"))))
    is_long = len(value) >= _MIN_LEARNT_CHARACTERS
    return is_long and kinds != 1 and not _WORDS.fullmatch(value) and not is_code


def _is_secret(rule: Rule, found: re.Match[str], value: str) -> bool:
    """Return whether a value that only a name before it gives away is one."""
    rest = without_secret_pseudonyms(value)
    if rest != value:  # something next to a stand-in may still be a secret
        return bool(re.search(r"[A-Za-z0-9]{6}", without_key_prefix(rest)))
    if rule.name == "password-in-url" or _is_placeholder(value):
        return not _is_placeholder(value)
    if len(value) < 4 or _CODE.fullmatch(value):
        return False
    assigned = rule.name == "assigned-secret"
    return _is_assigned(found, value) if assigned else _is_named(rule, found, value)


def _is_named(rule: Rule, found: re.Match[str], value: str) -> bool:
    """Return whether what a header, a flag or a sentence names is a secret."""
    if rule.name in ("authorization-header", "basic-credentials"):
        password = _password_of(value)
        if password is not None or rule.name == "basic-credentials":
            return not _is_placeholder(password or "")
    is_said = rule.name == "password-flag" and found.string[found.start("secret") - 1] == " "
    if (is_said or rule.named != "sure") and _is_of_words(value):
        return False  # "--api-key requires …" is a sentence
    if rule.named == "spoken":
        return _is_mixed(value, 6) or len(_CASE_CHANGE.findall(value)) > 1
    return rule.named == "sure" or _is_mixed(value, 12)


def _password_of(value: str) -> str | None:
    """Return the password in Base64 of ``user:password``; None if it is something else."""
    try:
        user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return None
    return password if colon and user and password and password.isprintable() else None


def _is_assigned(found: re.Match[str], value: str) -> bool:
    """Return whether what is assigned to a name such as ``api_key`` is a value, and no expression.

    Letters alone are a word of the program, unless they are quoted and a password.
    """
    if _NO_SECRET_SUFFIX.fullmatch(found["suffix"]) or len(value) < 6:
        return False
    quoted = bool(found["quote"])
    password = found["name"].lower() in ("password", "passwd", "passphrase", "pwd")
    if _PATH.fullmatch(value) and not _KEY_CHARACTERS.fullmatch(value):
        return False
    if _is_of_words(value) and not quoted and (not password or _HUMP.search(value)):
        return False
    if value.isdigit() or value.isalpha():
        return password and quoted and (value.isdigit() or len(value) >= 8)
    return _is_mixed(value, 6 if quoted else 8)


def _is_mixed(value: str, length: int) -> bool:
    """Return whether a value has letters and something else, and is long enough."""
    letters = any(map(str.isalpha, value))
    return len(value) >= length and letters and not value.isalpha() and not _WORDS.fullmatch(value)


def _is_of_words(value: str) -> bool:
    """Return whether a value is a name of code that is made of words: ``Uint8Array``."""
    if not _NAME_OF_CODE.fullmatch(value):
        return False
    parts = [part.casefold() for part in _PARTS.findall(value)]
    long = [part for part in parts if len(part) > 2]
    return len("".join(long)) * 2 > len("".join(parts)) and all(map(is_word, long))


def _is_placeholder(value: str) -> bool:
    rest = without_key_prefix(value)
    known = not words("placeholders").isdisjoint((value.casefold(), rest.casefold()))
    cut = rest != value and len(re.findall(r"[A-Za-z0-9]", rest)) < 6
    return known or cut or bool(_NOT_A_VALUE.fullmatch(rest)) or len(set(rest)) < 3


def _detected(text: str) -> list[Hit]:
    """Return the secrets that the scanner's rules find in a text."""
    # Of the same length in bytes, and not taken for UTF-16 or a signature.
    data = text.replace("\x00", "\x01").replace("\ufeff", "\u200b").encode("utf-8", "replace")
    found: list[tuple[int, int, str]] = []
    for finding in scanner().scan(data):
        start, end = finding.location["start_offset"], finding.location["end_offset"]
        secret = finding.secret.encode("utf-8", "replace")
        inside = data.find(secret, start, max(end, start + len(secret)))
        if secret and inside >= 0:
            start, end = inside, inside + len(secret)
        found.append((start, end, finding.rule_id))
    # From places in the encoded text to places in the text.
    edges = sorted({0, *(edge for start, end, _ in found for edge in (start, end))})
    characters = {0: 0}
    for before, after in pairwise(edges):
        characters[after] = characters[before] + len(data[before:after].decode("utf-8", "ignore"))
    return [Hit(characters[start], characters[end], rule, "secret") for start, end, rule in found]


@cache
def scanner() -> "Scanner":
    """Return the scanner with its rules, which take 40 MB.

    Raises:
        DataError: It is not installed.
    """
    try:
        from kingfisher_sdk import Rules, Scanner
    except ImportError as error:
        raise missing() from error
    return Scanner(Rules(confidence="medium"), base64=False)
