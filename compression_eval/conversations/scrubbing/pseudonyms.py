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

DEFAULT_KEY = b"compression_eval"
"""The key that is used if none is given. Public, so it hides nothing from who can guess."""

KINDS = (
    "secret",
    "user",
    "person",
    "email",
    "host",
    "ipv4",
    "ipv6",
    "mac",
    "phone",
    "card",
    "ssn",
    "mention",
)

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_WORD = r"[a-km-np-z2-9]"
_SECRET = re.compile(rf"~SCRUBBED(?:~{_WORD}{{1,10}})+~")
_USER = re.compile(rf"[Uu]ser({_WORD}{{8}})({_WORD}{{2}})")
_PERSON = re.compile(rf"Name({_WORD}{{8}})({_WORD}{{2}})")
_HOST = re.compile(rf"host({_WORD}{{8}})({_WORD}{{2}})")
_MENTION = re.compile(r"[A-Z]SCRUBBED([A-Z2-9]{8})([A-Z2-9]{2})")
_KEY_PREFIX = re.compile(
    r"sk-(?:proj|svcacct|admin|ant-api03|ant-admin01|ant|or-v1|lf)-|[srp]k_(?:live|test)_"
    r"|sk-|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|hf_|npm_|pypi-|dckr_pat_|dop_v1_"
    r"|shp(?:at|ca|pa|ss)_|GOCSPX-|AIza|AKIA|ASIA|SG\.|dapi|whsec_|gsk_|xai-|glsa_|eyJ"
)

PRIVATE_SUFFIXES = (
    *("internal", "local", "lan", "corp", "intranet", "intra", "private", "home", "home.arpa"),
    "localdomain",
)
"""Last labels of names that no public name server answers for."""

_SECRET_CHARACTERS = 200
"""A stand-in is as long as its secret, up to this."""


class Pseudonyms:
    """Makes stand-ins; a pure function of the key.

    Args:
        key: Any bytes. Who knows it can test whether a guessed value was replaced.
    """

    def __init__(self, key: bytes = DEFAULT_KEY) -> None:
        self._key = key

    @property
    def is_private(self) -> bool:
        """Whether the key is another than the public one."""
        return self._key != DEFAULT_KEY

    def of(self, kind: str, value: str, attempt: int = 0) -> str:
        """Return the stand-in of a value.

        Args:
            kind: One of `KINDS`.
            value: What is replaced.
            attempt: Higher numbers give others, for the rare case that two values meet.
        """
        makers = {
            "secret": self._secret,
            "user": self._user,
            "person": self._person,
            "email": self._email,
            "host": self._host,
            "ipv4": self._ipv4,
            "ipv6": self._ipv6,
            "mac": self._mac,
            "phone": self._phone,
            "card": self._card,
            "ssn": self._ssn,
            "mention": self._mention,
        }
        return makers[kind](value, attempt)

    def digest(self, value: str) -> bytes:
        """Return what a value can be counted by without keeping it."""
        return hmac.new(self._key, value.encode("utf-8", "replace"), hashlib.sha256).digest()[:12]

    def _stream(self, value: str, attempt: int) -> Iterator[int]:
        """Yield bytes that follow from the key, the value and the attempt."""
        text = value.encode("utf-8", "replace")
        for block in range(1 << 20):
            message = f"{attempt}:{block}:".encode() + text
            yield from hmac.new(self._key, message, hashlib.sha256).digest()

    def _letters(self, value: str, attempt: int, count: int) -> str:
        stream = self._stream(value, attempt)
        return "".join(_ALPHABET[next(stream) % 32] for _ in range(count))

    def _checked(self, value: str, attempt: int) -> str:
        word = self._letters(value.casefold(), attempt, 8)
        return word + _check(word, 2)

    def _secret(self, value: str, attempt: int) -> str:
        found = _KEY_PREFIX.match(value)
        prefix = found[0] if found else ""
        room = min(len(value), _SECRET_CHARACTERS) - len(prefix) - len("~SCRUBBED~")
        letters = max(room - -(-room // 11), 11) - 3
        word = self._letters(value, attempt, letters)
        word += _check(word, 3)
        groups = "~".join(word[start : start + 10] for start in range(0, len(word), 10))
        return f"{prefix}~SCRUBBED~{groups}~"

    def _user(self, value: str, attempt: int) -> str:
        marker = "User" if value[:1].isupper() else "user"
        return marker + self._checked(value, attempt)

    def _person(self, value: str, attempt: int) -> str:
        """Each word by itself, so that a first name alone is the same person's."""
        return re.sub(r"\S+", lambda word: self._name(word[0], attempt), value)

    def _name(self, word: str, attempt: int) -> str:
        known = is_pseudonym("user", word) or is_pseudonym("person", word)
        return word if known else "Name" + self._checked(word, attempt)

    def _host(self, value: str, attempt: int) -> str:
        name = value.rstrip(".").casefold()
        if is_pseudonym("host", name):
            return name
        suffix = next((end for end in PRIVATE_SUFFIXES if name.endswith("." + end)), "example")
        return f"host{self._checked(name, attempt)}" + (f".{suffix}" if "." in name else "")

    def _email(self, value: str, attempt: int) -> str:
        local, _, domain = value.rpartition("@")
        account = local.split("+", 1)[0] if local.split("+", 1)[0] else local
        numbered = re.fullmatch(r"\d+\+(.+)", local)
        account = numbered[1] if numbered else account
        forge = domain.casefold() if domain.casefold().endswith("noreply.github.com") else None
        user = (
            account if is_pseudonym("user", account) else f"user{self._checked(account, attempt)}"
        )
        return f"{user}@{forge or self._host(domain, 0)}"

    def _ipv4(self, value: str, attempt: int) -> str:
        stream = self._stream(value, attempt)
        return f"198.{18 + next(stream) % 2}.{next(stream)}.{1 + next(stream) % 254}"

    def _ipv6(self, value: str, attempt: int) -> str:
        stream = self._stream(value.casefold(), attempt)
        parts = [f"{next(stream) << 8 | next(stream) | 0x1000:x}" for _ in range(4)]
        return "2001:db8::" + ":".join(parts)

    def _mac(self, value: str, attempt: int) -> str:
        stream = self._stream(value.casefold(), attempt)
        separator = value[2]
        parts = ["02", "00", "5e", *(f"{next(stream):02x}" for _ in range(3))]
        text = separator.join(parts)
        return text.upper() if value != value.lower() else text

    def _phone(self, value: str, attempt: int) -> str:
        stream = self._stream(re.sub(r"\D", "", value), attempt)
        digits = [*"55501", str(next(stream) % 10), str(next(stream) % 10)]
        return _with_last_digits(value, digits)

    def _card(self, value: str, attempt: int) -> str:
        digits = re.sub(r"\D", "", value)
        stream = self._stream(digits, attempt)
        return _with_last_digits(value, ["9", *(str(next(stream) % 10) for _ in digits[1:])])

    def _ssn(self, value: str, attempt: int) -> str:
        stream = self._stream(value, attempt)
        return _with_last_digits(value, ["9", *(str(next(stream) % 10) for _ in range(8))])

    def _mention(self, value: str, attempt: int) -> str:
        first = value[0] if value[0].isalpha() and value[0].isascii() else "U"
        return f"{first.upper()}SCRUBBED{self._checked(value, attempt).upper()}"


def is_pseudonym(kind: str, value: str) -> bool:
    """Return whether a value that a rule found is a stand-in, whatever the key was.

    Kinds whose stand-ins no rule finds have nothing to be told from.
    """
    if kind == "secret":
        rest = without_secret_pseudonyms(value)
        return rest != value and not re.search(r"[A-Za-z0-9]", _KEY_PREFIX.sub("", rest, count=1))
    if kind == "email":
        local, _, domain = value.rpartition("@")
        return is_pseudonym("user", local) and (
            is_pseudonym("host", domain) or domain.casefold().endswith("noreply.github.com")
        )
    if kind == "host":
        name, _, suffix = value.partition(".")
        found = _HOST.fullmatch(name)
        return bool(
            found
            and _check(found[1], 2) == found[2]
            and suffix.casefold() in (*PRIVATE_SUFFIXES, "example", "")
        )
    if kind == "person":
        words = [(word, _PERSON.fullmatch(word)) for word in value.split()]
        return bool(words) and all(
            _check(found[1], 2) == found[2] if found else is_pseudonym("user", word)
            for word, found in words
        )
    form = {"user": _USER, "mention": _MENTION}.get(kind)
    found = form.fullmatch(value) if form else None
    return bool(found and _check(found[1].lower(), 2) == found[2].lower())


def without_secret_pseudonyms(text: str) -> str:
    """Return a text without the stand-ins of secrets that stand in it."""
    return _SECRET.sub(_drop_if_checked, text) if "~SCRUBBED~" in text else text


def _drop_if_checked(found: re.Match[str]) -> str:
    word = found[0].removeprefix("~SCRUBBED").replace("~", "")
    return "" if _check(word[:-3], 3) == word[-3:] else found[0]


def _check(word: str, count: int) -> str:
    """Return check characters. They need no key, so that an audit works without it."""
    digest = hashlib.sha256(f"compression_eval stand-in:{word}".encode()).digest()
    return "".join(_ALPHABET[byte % 32] for byte in digest[:count])


def _with_last_digits(value: str, digits: list[str]) -> str:
    """Put digits in the place of a value's last ones, and leave all other characters."""
    left = list(digits)
    result = [
        left.pop() if character.isdigit() and left else character for character in value[::-1]
    ]
    return "".join(result)[::-1]
