"""Tell copies of one session apart: agents write a session anew when it is gone on with."""

import hashlib
from dataclasses import dataclass

from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.models import Fixture

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
        messages = b"".join(
            hashlib.blake2b(message.model_dump_json().encode(), digest_size=_BYTES).digest()
            for message in fixture.messages
        )
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


def _related(earlier: Known, messages: bytes) -> str:
    before, now = len(earlier.messages) // _BYTES, len(messages) // _BYTES
    shared = 0
    while shared < min(before, now) and _message(earlier.messages, shared) == _message(
        messages, shared
    ):
        shared += 1
    where = f"{earlier.name} from {earlier.file}"
    if shared == before == now:
        return f"another copy of {where}: the same messages"
    if shared == before:
        return f"a later copy of {where}: its {before} messages and {now - before} more"
    if shared == now:
        return f"an earlier copy of {where}: the first {now} of its {before} messages"
    return f"another copy of {where}: the first {shared} messages are the same"


def _message(messages: bytes, index: int) -> bytes:
    return messages[index * _BYTES : (index + 1) * _BYTES]
