"""The values of a JSON or JSON Lines file, sorted into the threads that they belong to."""

from collections.abc import Callable, Iterator
from typing import Any, Literal, Protocol, TypeVar

from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError

Place = Literal["opens", "belongs", "foreign"]
"""Whether a value opens a thread, belongs to the open one, or is of no known form."""


class Thread(Protocol):
    """A conversation that is being read."""

    def feed(self, value: Value) -> None:
        """Enter a value into the account and take what it holds."""

    def finish(self) -> Conversation:
        """Return the conversation; nothing is fed after it."""


T = TypeVar("T", bound=Thread)


def records(source: SourceFile) -> Iterator[Value]:
    """Yield every JSON value of a file, which may be one document over many lines."""
    if not source.head and source.document is not None:
        yield Value("document", source.document, replaced=source.document_replaced)
    else:
        yield from source.values()


def threads(
    source: SourceFile,
    *,
    expected: str,
    place: Callable[[Any, T | None], Place],
    new: Callable[[], T],
) -> Iterator[Conversation]:
    """Yield the conversations of a file, one at a time, each value in exactly one account.

    Args:
        source: The file.
        expected: What the file should hold, for the error.
        place: Where a value belongs, given the open thread.
        new: Opens a thread.

    Raises:
        DataError: No value opens a thread.
    """
    thread: T | None = None
    waiting: list[Value] = []
    for value in records(source):
        where: Place = "foreign" if value.problem else place(value.value, thread)
        if where == "opens":
            if thread is not None:
                yield thread.finish()
            thread = new()
            for earlier in waiting:
                thread.feed(earlier)
            waiting.clear()
        if thread is None:
            # It is named in the account of the first thread; what it holds is not needed.
            waiting.append(Value(value.place, problem=value.problem or "of no known form"))
        else:
            thread.feed(value)
    if thread is None:
        raise DataError(f"{source.path}: expected {expected}, found none")
    yield thread.finish()
