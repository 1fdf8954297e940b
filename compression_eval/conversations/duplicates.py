"""Tell copies of one session apart: agents write a session again when it is continued.

`Names` gives every conversation its own name, with a number where two differ. `Copies` finds a
conversation whose messages a longer one contains in a row; only digests of messages are kept, so
that a corpus fits into memory.
"""

import hashlib
from array import array
from collections.abc import Iterable
from typing import Literal, NamedTuple

from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.metadata import FIELD
from compression_eval.fixtures.models import NO_RESULT, Fixture, Message

Duplicates = Literal["all", "longest"]
"""Which of several copies of a session are kept."""

_UNRECORDED = 0
"""Stands for the result of a call that the file holds no result of."""


class Named(NamedTuple):
    """The name that a conversation gets, and what is to be said of it."""

    name: str | None
    """None if the very same conversation came before."""
    note: str = ""


class Identity(NamedTuple):
    """What a conversation is known by; no more of it is kept than is needed to compare."""

    name: str
    messages: "array[int]"
    whole: str


def identity(fixture: Fixture) -> Identity:
    """Return what a conversation is known by, as it was read: its name stands for the session."""
    return Identity(fixture.name, _digests(fixture.messages), digest(fixture))


class Names:
    """Gives every conversation of an import a name of its own."""

    def __init__(self) -> None:
        self._by_session: dict[str, list[tuple[Identity, str]]] = {}
        """What came before, and where it is, as ``demo-2 from b.jsonl``."""
        self._taken: set[str] = set()

    def give(self, conversation: Identity, file: str) -> Named:
        """Return a name, and how the conversation is related to earlier ones of the same name."""
        earlier = self._by_session.setdefault(conversation.name, [])
        for known, where in earlier:
            if known.whole == conversation.whole:
                return Named(None, f"the same as {where}")
        note = _related(*earlier[-1], conversation.messages) if earlier else ""
        name, number = conversation.name, 1
        while name in self._taken:
            number += 1
            name = f"{conversation.name}-{number}"
        self._taken.add(name)
        earlier.append((conversation, f"{name} from {file}"))
        return Named(name, note)


def _related(earlier: Identity, where: str, messages: "array[int]") -> str:
    before, now = len(earlier.messages), len(messages)
    pairs = enumerate(zip(earlier.messages, messages, strict=False))
    shared = next((index for index, (one, two) in pairs if one != two), min(before, now))
    if not shared:
        return f"another part of the session of {where}: they begin differently"
    if shared == before == now:
        return f"another copy of {where}: the same messages"
    if shared == before:
        return f"a later copy of {where}: its {before} messages and {now - before} more"
    if shared == now:
        return f"an earlier copy of {where}: the first {now} of its {before} messages"
    return f"another copy of {where}: the first {shared} messages are the same"


class Copy(NamedTuple):
    """What is kept of a conversation to find copies of it."""

    session: str
    key: tuple[str, int]
    """Its file, and its number among those of the file."""
    messages: "array[int]"
    end: int
    """Number of messages without the last turn, which the end of the file may have cut off."""
    turns: dict[int, "array[int]"]
    """Of every assistant message, by its index: the digests of all that it begins with."""


def copy_of(key: tuple[str, int], fixture: Fixture) -> Copy:
    """Return what is kept of a conversation, as it was read, to find copies of it."""
    roles = [message.role for message in fixture.messages]
    end = len(roles)
    while end and roles[end - 1] == "tool":
        end -= 1
    if end and roles[end - 1] == "assistant":
        end -= 1
    turns = {
        index: _beginnings(message)
        for index, message in enumerate(fixture.messages)
        if message.role == "assistant"
    }
    return Copy(fixture.name, key, _digests(fixture.messages), end, turns)


class Shorter(NamedTuple):
    """Why a copy is left out."""

    longer: tuple[str, int]
    """The key of the one that is kept."""
    reason: str


class Copies:
    """Finds the copies of a session that a longer one holds."""

    def __init__(self) -> None:
        self._by_session: dict[str, list[Copy]] = {}

    def add(self, copy: Copy) -> None:
        """Take a conversation."""
        self._by_session.setdefault(copy.session, []).append(copy)

    def shorter(self) -> dict[tuple[str, int], Shorter]:
        """Return which conversations to leave out, and why; of equal ones the first stays."""
        found: dict[tuple[str, int], Shorter] = {}
        for copies in self._by_session.values():
            kept: list[Copy] = []
            for copy in sorted(copies, key=lambda copy: -len(copy.messages)):
                longer = next((known for known in kept if _holds(known, copy)), None)
                if longer is None:
                    kept.append(copy)
                    continue
                found[copy.key] = Shorter(
                    longer.key,
                    f"a copy with {len(copy.messages)} messages of the session that "
                    f"{longer.key[0]} holds with {len(longer.messages)} (--duplicates longest)",
                )
        return found


def _holds(longer: Copy, copy: Copy) -> bool:
    """Return whether a conversation holds all messages of a copy, in a row.

    The copy's last turn may be only a beginning of the longer one's turn at its place.
    """
    begun = copy.messages[: copy.end]
    return any(
        longer.messages[start : start + copy.end] == begun
        and all(_goes_on(longer, copy, start, at) for at in range(copy.end, len(copy.messages)))
        for start in range(len(longer.messages) - copy.end + 1)
    )


def _goes_on(longer: Copy, copy: Copy, start: int, at: int) -> bool:
    if at in copy.turns:
        return copy.turns[at][-1] in longer.turns.get(start + at, ())
    theirs = longer.messages[start + at : start + at + 1]
    return copy.messages[at] == _UNRECORDED or copy.messages[at] in theirs


def _digests(messages: Iterable[Message]) -> "array[int]":
    return array(
        "Q",
        (
            _UNRECORDED
            if message.role == "tool" and message.text == NO_RESULT
            else _number(hashlib.blake2b(said.encode(), digest_size=8))
            for message in messages
            for said in [message.model_dump_json(exclude={FIELD})]  # a copy may have other times
        ),
    )


def _beginnings(message: Message) -> "array[int]":
    """Return digests of a message up to each of its lines and calls: a file may end at any."""
    lines = [f"{line}\n" for line in message.text.splitlines()]
    so_far = hashlib.blake2b(digest_size=8)
    found = array("Q", [_number(so_far)])
    for piece in (*lines, *(call.model_dump_json() for call in message.calls)):
        so_far.update(piece.encode())
        found.append(_number(so_far))
    return found


def _number(hashed: "hashlib.blake2b") -> int:
    return int.from_bytes(hashed.digest(), "big")
