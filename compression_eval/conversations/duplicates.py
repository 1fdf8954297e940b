"""Tell copies of one session apart: agents write a session anew when it is gone on with."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.models import Fixture, Message

Duplicates = Literal["all", "longest"]
"""Which of several copies of a session are kept."""

_BYTES = 8
"""Of a message's digest: enough for the sessions of one person, and small."""


@dataclass(frozen=True)
class Known:
    """A conversation that came before; no more of it is kept than is needed to compare."""

    name: str
    file: str
    messages: bytes
    digest: str


@dataclass(frozen=True)
class Named:
    """The name that a conversation gets, and what is to be said of it."""

    name: str | None
    """None if the very same conversation came before."""
    note: str = ""


class Names:
    """Gives every conversation of an import a name of its own."""

    def __init__(self) -> None:
        self._by_session: dict[str, list[Known]] = {}
        self._taken: set[str] = set()

    def give(self, fixture: Fixture, file: str) -> Named:
        """Return a name, and how the conversation is related to earlier ones of the same name.

        Args:
            fixture: As it was read; its name stands for the session.
            file: Where it came from, for people.
        """
        messages = _digests(fixture.messages)
        whole = digest(fixture)
        earlier = self._by_session.setdefault(fixture.name, [])
        same = next((known for known in earlier if known.digest == whole), None)
        if same is not None:
            return Named(None, f"the same as {same.name} from {same.file}")
        note = _related(earlier[-1], messages) if earlier else ""
        name, number = fixture.name, 1
        while name in self._taken:
            number += 1
            name = f"{fixture.name}-{number}"
        self._taken.add(name)
        earlier.append(Known(name, file, messages, whole))
        return Named(name, note)


class _Copy(NamedTuple):
    key: tuple[str, int]
    messages: bytes
    complete: bytes
    """Without the last turn, which the end of the file may have cut off."""


class Copies:
    """Finds the copies of a session that a longer one holds."""

    def __init__(self) -> None:
        self._by_session: dict[str, list[_Copy]] = {}

    def add(self, key: tuple[str, int], fixture: Fixture) -> None:
        """Take a conversation.

        Args:
            key: Its file, and its number among those of the file.
            fixture: As it was read; its name stands for the session.
        """
        end = len(fixture.messages)
        while end and fixture.messages[end - 1].role == "tool":
            end -= 1
        if end and fixture.messages[end - 1].role == "assistant":
            end -= 1
        messages = _digests(fixture.messages)
        found = _Copy(key, messages, messages[: end * _BYTES])
        self._by_session.setdefault(fixture.name, []).append(found)

    def shorter(self) -> dict[tuple[str, int], str]:
        """Return which conversations to leave out, and why; of equal ones the first stays."""
        found: dict[tuple[str, int], str] = {}
        for copies in self._by_session.values():
            kept: list[_Copy] = []
            for copy in sorted(copies, key=lambda copy: -len(copy.messages)):
                longer = next((known for known in kept if _holds(known, copy)), None)
                if longer is None:
                    kept.append(copy)
                    continue
                sizes = [len(each.messages) // _BYTES for each in (copy, longer)]
                found[copy.key] = (
                    f"a copy with {sizes[0]} messages of the session that {longer.key[0]} holds "
                    f"with {sizes[1]} (--duplicates longest)"
                )
        return found


def _holds(longer: _Copy, copy: _Copy) -> bool:
    """Return whether a conversation holds all messages of a copy, in a row."""
    wanted = copy.complete or copy.messages
    at = longer.messages.find(wanted)
    while at % _BYTES and at >= 0:
        at = longer.messages.find(wanted, at + 1)
    return at >= 0


def _digests(messages: Iterable[Message]) -> bytes:
    return b"".join(
        hashlib.blake2b(message.model_dump_json().encode(), digest_size=_BYTES).digest()
        for message in messages
    )


def _related(earlier: Known, messages: bytes) -> str:
    before, now = len(earlier.messages) // _BYTES, len(messages) // _BYTES
    shared = 0
    while shared < min(before, now) and _message(earlier.messages, shared) == _message(
        messages, shared
    ):
        shared += 1
    where = f"{earlier.name} from {earlier.file}"
    if not shared:
        return f"another part of the session of {where}: they begin differently"
    if shared == before == now:
        return f"another copy of {where}: the same messages"
    if shared == before:
        return f"a later copy of {where}: its {before} messages and {now - before} more"
    if shared == now:
        return f"an earlier copy of {where}: the first {now} of its {before} messages"
    return f"another copy of {where}: the first {shared} messages are the same"


def _message(messages: bytes, index: int) -> bytes:
    return messages[index * _BYTES : (index + 1) * _BYTES]
