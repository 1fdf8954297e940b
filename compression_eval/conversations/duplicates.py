"""Tell copies of one session apart: agents write a session anew when it is gone on with."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.markers import NO_RESULT
from compression_eval.fixtures.models import Fixture, Message

Duplicates = Literal["all", "longest"]
"""Which of several copies of a session are kept."""

_BYTES = 8
"""Of a message's digest: enough for the sessions of one person, and small."""
_UNRECORDED = bytes(_BYTES)
"""Stands for the result of a call that the file holds no result of."""


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
    end: int
    """Number of messages without the last turn, which the end of the file may have cut off."""
    turns: dict[int, bytes]
    """Of every assistant message, by its index: the digests of all that it begins with."""


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
        turns = {
            index: _beginnings(message)
            for index, message in enumerate(fixture.messages)
            if message.role == "assistant"
        }
        found = _Copy(key, _digests(fixture.messages), end, turns)
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
    wanted = copy.messages[: copy.end * _BYTES]
    at = longer.messages.find(wanted)
    while at >= 0:
        if at % _BYTES == 0 and _goes_on(longer, copy, at // _BYTES):
            return True
        at = longer.messages.find(wanted, at + 1)
    return False


def _goes_on(longer: _Copy, copy: _Copy, start: int) -> bool:
    """Return whether a copy's last turn is a beginning of the longer one's turn at its place."""
    count = len(copy.messages) // _BYTES
    for index in range(copy.end, count):
        mine, theirs = _message(copy.messages, index), _message(longer.messages, start + index)
        if index in copy.turns:
            whole = copy.turns[index][-_BYTES:]
            turn = longer.turns.get(start + index, b"")
            if whole not in (_message(turn, number) for number in range(len(turn) // _BYTES)):
                return False
        elif mine not in (theirs, _UNRECORDED):
            return False
    return True


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=_BYTES).digest()


def _digests(messages: Iterable[Message]) -> bytes:
    return b"".join(
        _UNRECORDED
        if message.role == "tool" and message.text == NO_RESULT
        else _digest(message.model_dump_json())
        for message in messages
    )


def _beginnings(message: Message) -> bytes:
    """Return digests of a message up to each of its lines and calls: a file may end at any."""
    lines = [f"{line}\n" for line in message.text.splitlines()]
    pieces = ["", *lines, *(call.model_dump_json() for call in message.calls)]
    so_far = hashlib.blake2b(digest_size=_BYTES)
    found = []
    for piece in pieces:
        so_far.update(piece.encode())
        found.append(so_far.digest())
    return b"".join(found)


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
