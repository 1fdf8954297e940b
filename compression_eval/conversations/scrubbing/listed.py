"""Names that a person listed because no rule can know them."""

import re
from dataclasses import dataclass
from pathlib import Path

from compression_eval.conversations.scrubbing.vocabulary import Learnt
from compression_eval.fixtures.errors import DataError, shorten

_KIND = re.compile(r"(user|person|host|email|secret):\s*(.+)")
_DOMAIN = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")


@dataclass(frozen=True)
class Listed:
    """The listed names, each with its kind."""

    entries: tuple[Learnt, ...] = ()


def read_names(path: Path) -> Listed:
    """Read a file of names: one to a line, ``#`` begins a comment.

    What a line is follows from its form: ``jane@acme.com`` an e-mail address, ``acme.com`` a
    host, ``Jane Doe`` a person, anything else an account or handle (``@jane``, ``jane``). A
    kind can be given: ``host: acme``, ``person: Jane``, ``secret: swordfish``.

    Raises:
        DataError: The file cannot be read, or a line is too short to be looked for.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    entries: list[Learnt] = []
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.split("#", 1)[0].strip()
        if not entry:
            continue
        given = _KIND.fullmatch(entry)
        kind, value = (given[1], given[2]) if given else (_kind(entry), entry.removeprefix("@"))
        if len(value) < 2:
            raise DataError(f"{path}: line {number}: {shorten(value)} is too short to look for")
        entries.append(Learnt(value, kind, "listed", any_case=kind != "secret"))
    return Listed(tuple(entries))


def _kind(entry: str) -> str:
    if "@" in entry[1:]:
        return "email"
    if entry.startswith("@"):
        return "user"
    if _DOMAIN.fullmatch(entry):
        return "host"
    return "person" if " " in entry else "user"
