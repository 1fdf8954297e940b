"""Stand-ins for what is replaced: made from the value and a key, and nothing else.

So one value has one stand-in in every file, in every run and in every process, and nothing has to
be remembered. Without the key nobody can compute them from guessed values; with the default key,
which is public, everybody can, so a key of one's own belongs to conversations that are published.

Each stand-in can be told from a real value without a list: either its form is reserved and
nobody has it (documentation addresses, numbers that are not given out), or it ends in check
characters that a real value has by chance only.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from compression_eval.errors import DataError

DEFAULT_KEY = b"compression_eval"
"""The key that is used if none is given. Public, so it hides nothing from who can guess."""

KINDS = (
    *("secret", "user", "person", "email", "host", "ipv4", "ipv6", "mac", "phone"),
    *("mention", "number"),
)

MARK = "~SCRUBBED~"
"""What the stand-ins of secrets begin with, behind the prefix of a vendor's key."""

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_WORD = r"[a-km-np-z2-9]"
_SECRET = re.compile(rf"~SCRUBBED(?:~{_WORD}{{1,10}})+~")
_CHECKED = {
    "user": re.compile(rf"[Uu]ser({_WORD}{{8}})({_WORD}{{2}})"),
    "name": re.compile(rf"Name({_WORD}{{8}})({_WORD}{{2}})"),
    "host": re.compile(rf"host({_WORD}{{8}})({_WORD}{{2}})"),
    "mention": re.compile(r"[A-Z]SCRUBBED([A-Z2-9]{8})([A-Z2-9]{2})"),
}
"""Stand-ins of one word: what comes before the word, the word, its check characters."""
_KEY_PREFIX = re.compile(
    r"sk-(?:proj|svcacct|admin|ant-api03|ant-admin01|ant|or-v1|lf)-|[srp]k_(?:live|test)_"
    r"|sk-|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|hf_|npm_|pypi-|dckr_pat_|dop_v1_"
    r"|shp(?:at|ca|pa|ss)_|GOCSPX-|AIza|AKIA|ASIA|SG\.|dapi|whsec_|gsk_|xai-|glsa_|eyJ"
)
_FORGE_DOMAIN = "noreply.github.com"

PRIVATE_SUFFIXES = (
    *("internal", "local", "lan", "corp", "intranet", "intra", "private", "home", "home.arpa"),
    "localdomain",
)
"""Last labels of names that no public name server answers for."""

_MAX_SECRET_CHARACTERS = 200
"""A stand-in is as long as its secret, up to this."""


class Pseudonyms:
    """Makes stand-ins; a pure function of the key.

    Args:
        key: Any bytes, or none for the public key. Who knows it can test whether a guessed value
            was replaced.
    """

    def __init__(self, key: bytes = DEFAULT_KEY) -> None:
        self._key = key or DEFAULT_KEY

    @classmethod
    def of_file(cls, path: Path) -> "Pseudonyms":
        """Return those of the key in a file; white space around it is no part of it.

        Raises:
            DataError: The file contains no key.
        """
        key = path.read_bytes().strip()
        if not key:
            raise DataError(f"--key-file: {path}: the key is empty")
        return cls(key)

    def of(self, kind: str, value: str) -> str:
        """Return the stand-in of a value.

        Args:
            kind: One of `KINDS`.
            value: What is replaced.
        """
        made: str = getattr(self, f"_{kind}")(value)
        return made

    def digest(self, value: str) -> bytes:
        """Return what a value can be counted by without keeping it."""
        return hmac.new(self._key, value.encode("utf-8", "replace"), hashlib.sha256).digest()[:12]

    def _stream(self, value: str) -> Iterator[int]:
        """Yield bytes that follow from the key and the value."""
        text = value.encode("utf-8", "replace")
        for block in range(1 << 20):
            message = f"0:{block}:".encode() + text
            yield from hmac.new(self._key, message, hashlib.sha256).digest()

    def _letters(self, value: str, count: int = 8, checks: int = 2) -> str:
        stream = self._stream(value)
        word = "".join(_ALPHABET[next(stream) % 32] for _ in range(count))
        return word + _check(word, checks)

    def _secret(self, value: str) -> str:
        found = _KEY_PREFIX.match(value)
        prefix = found[0] if found else ""
        room = min(len(value), _MAX_SECRET_CHARACTERS) - len(prefix) - len(MARK)
        word = self._letters(value, max(room - -(-room // 11), 11) - 3, 3)
        groups = "~".join(word[start : start + 10] for start in range(0, len(word), 10))
        return f"{prefix}{MARK}{groups}~"

    def _user(self, value: str) -> str:
        marker = "User" if value[:1].isupper() else "user"
        return marker + self._letters(value.casefold())

    def _person(self, value: str) -> str:
        """Each word by itself, so that a first name alone is the same person's."""

        def name(word: re.Match[str]) -> str:
            known = is_pseudonym("person", word[0])
            return word[0] if known else "Name" + self._letters(word[0].casefold())

        return re.sub(r"\S+", name, value)

    def _host(self, value: str) -> str:
        name = value.rstrip(".").casefold()
        if is_pseudonym("host", name):
            return name
        suffix = next((end for end in PRIVATE_SUFFIXES if name.endswith("." + end)), "example")
        return f"host{self._letters(name)}" + (f".{suffix}" if "." in name else "")

    def _email(self, value: str) -> str:
        local, _, domain = value.rpartition("@")
        numbered = re.fullmatch(r"\d+\+(.+)", local)
        account = numbered[1] if numbered else local.split("+", 1)[0] or local
        if not is_pseudonym("user", account):
            account = f"user{self._letters(account.casefold())}"
        is_forge = domain.casefold().endswith(_FORGE_DOMAIN)
        return f"{account}@{domain.casefold() if is_forge else self._host(domain)}"

    def _ipv4(self, value: str) -> str:
        stream = self._stream(value)
        return f"198.{18 + next(stream) % 2}.{next(stream)}.{1 + next(stream) % 254}"

    def _ipv6(self, value: str) -> str:
        stream = self._stream(value.casefold())
        parts = [f"{next(stream) << 8 | next(stream) | 0x1000:x}" for _ in range(4)]
        return "2001:db8::" + ":".join(parts)

    def _mac(self, value: str) -> str:
        stream = self._stream(value.casefold())
        text = value[2].join(["02", "00", "5e", *(f"{next(stream):02x}" for _ in range(3))])
        return text.upper() if value != value.lower() else text

    def _phone(self, value: str) -> str:
        stream = self._stream(re.sub(r"\D", "", value))
        left = [*"55501", *(str(next(stream) % 10) for _ in range(2))]
        made = [left.pop() if each.isdigit() and left else each for each in reversed(value)]
        return "".join(reversed(made))

    def _number(self, value: str) -> str:
        stream = self._stream(value)
        return "99900" + "".join(str(next(stream) % 10) for _ in range(7))

    def _mention(self, value: str) -> str:
        first = value[0] if value[0].isalpha() and value[0].isascii() else "U"
        return f"{first.upper()}SCRUBBED{self._letters(value.casefold()).upper()}"


_NUMBER = re.compile(r"99900\d{7}")
"""Stand-ins of account numbers, of more digits than any forge has given out."""


@lru_cache(maxsize=10_000)
def is_pseudonym(kind: str, value: str) -> bool:
    """Return whether a value that a rule found is a stand-in, whatever the key was.

    Kinds whose stand-ins no rule finds have nothing to be told from.
    """
    if kind == "secret":
        rest = without_secret_pseudonyms(value)
        return rest != value and not re.search(r"[A-Za-z0-9]", without_key_prefix(rest))
    if kind == "email":
        local, _, domain = value.rpartition("@")
        is_forge = domain.casefold().endswith(_FORGE_DOMAIN)
        return _is_checked("user", local) and (is_forge or is_pseudonym("host", domain))
    if kind == "host":
        name, _, suffix = value.partition(".")
        known = suffix.casefold() in (*PRIVATE_SUFFIXES, "example", "")
        return known and _is_checked("host", name)
    if kind == "person":
        parts = value.split()
        return bool(parts) and all(
            _is_checked("name", part) or _is_checked("user", part) for part in parts
        )
    if kind == "number":
        return bool(_NUMBER.fullmatch(value))
    return kind in _CHECKED and _is_checked(kind, value)


def without_key_prefix(value: str) -> str:
    """Return a secret without what all keys of a vendor begin with."""
    return _KEY_PREFIX.sub("", value, count=1)


def without_secret_pseudonyms(text: str) -> str:
    """Return a text without the stand-ins of secrets that are in it."""

    def kept(found: re.Match[str]) -> str:
        word = found[0].removeprefix("~SCRUBBED").replace("~", "")
        return "" if _check(word[:-3], 3) == word[-3:] else found[0]

    return _SECRET.sub(kept, text) if MARK in text else text


def _is_checked(form: str, value: str) -> bool:
    found = _CHECKED[form].fullmatch(value)
    return bool(found and _check(found[1].lower(), 2) == found[2].lower())


def _check(word: str, count: int) -> str:
    """Return check characters. They need no key, so that an audit works without it."""
    digest = hashlib.sha256(f"compression_eval stand-in:{word}".encode()).digest()
    return "".join(_ALPHABET[byte % 32] for byte in digest[:count])
