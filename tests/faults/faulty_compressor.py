"""A user's compressor that plays the fault that stands in its conversation as ``[[fault]]``.

It is a module with functions and classes, and a program; the program needs no package.
"""

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

Messages = list[dict[str, Any]]

NOTE = {"role": "user", "content": "The code was E4401."}


def good(messages: Messages) -> Messages:
    """Keep the system prompt and a note."""
    return [messages[0], NOTE]


def fault_in(text: str) -> str:
    """Return the fault that is to be played; nothing for none."""
    found = re.search(r"\[\[(.*?)\]\]", text)
    return found[1] if found else ""


class UnwritableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Unreadable(list[Any]):
    def __iter__(self) -> Any:
        raise OSError("the database is gone")


def raising(error: BaseException) -> Callable[[Messages], Any]:
    def play(_: Messages) -> Any:
        raise error

    return play


def too_deep(messages: Messages) -> Any:
    return too_deep(messages)


def noted(content: Any) -> Callable[[Messages], Any]:
    return lambda messages: [messages[0], {"role": "user", "content": content}]


def in_itself(messages: Messages) -> Any:
    messages.append(messages)  # type: ignore[arg-type]
    return messages


def changed_input(messages: Messages) -> Any:
    kept = good([dict(message) for message in messages])
    messages.clear()
    return kept


def garbage_beside(messages: Messages) -> Any:
    print("\x1b[2J{not json", end="\0")  # noqa: T201
    return good(messages)


RAISES: dict[str, Callable[[Messages], Any]] = {
    "an exception": raising(RuntimeError("no index for this conversation")),
    "its text fails": raising(UnwritableError()),
    "70,000 characters": raising(ValueError("x" * 70_000)),
    "hostile text": raising(ValueError("\x1b[2J\0</script>\n{0}%s")),
    "recursion": too_deep,
    "end of iteration": raising(StopIteration("x")),
    "exits": raising(SystemExit(0)),
    "cancels itself": raising(asyncio.CancelledError()),
    "nothing implemented": raising(NotImplementedError("not for tools")),
}

RESULTS: dict[str, Callable[[Messages], Any]] = {
    "None": lambda _: None,
    "an iterator": iter,
    "a list that cannot be read": Unreadable,
    "a list in itself": in_itself,
    "half a pair": noted("\ud800"),
    "empty": lambda _: [],
    "a blank text": noted(" \n"),
    "unchanged": lambda messages: messages,
    "one message less": lambda messages: [*messages[:1], *messages[2:]],
    "a call without its result": lambda messages: [*messages[:3], NOTE],
    "3,000 messages": lambda messages: [messages[0], *[NOTE] * 3_000],
    "changed input": changed_input,
    "garbage on the terminal": garbage_beside,
}


def hanging(messages: Messages) -> Any:
    time.sleep(60)


def compress(messages: Messages) -> Any:
    """Play the fault of a conversation."""
    fault = fault_in(str(messages))
    return {"": good, "hangs": hanging, **RAISES, **RESULTS}[fault](messages)


async def compress_later(messages: Messages) -> Any:
    """The same in a coroutine."""
    if fault_in(str(messages)) == "hangs":
        await asyncio.sleep(60)
    return compress(messages)


def write(text: str | bytes) -> Callable[[Messages], Any]:
    def play(messages: Messages) -> None:
        sys.stdout.buffer.write(text.encode() if isinstance(text, str) else text)

    return play


def leave(code: int | str, *, reply: bool = False) -> Callable[[Messages], Any]:
    def play(messages: Messages) -> None:
        if reply:
            print(json.dumps(good(messages)), flush=True)  # noqa: T201
        sys.exit(code)

    return play


def endless(messages: Messages) -> None:
    while True:
        sys.stdout.write("x" * 100_000)


PROGRAM: dict[str, Callable[[Messages], Any]] = {
    "": lambda messages: print(json.dumps(good(messages))),  # noqa: T201
    "hangs": hanging,
    "fails": leave(3),
    "fails after its reply": leave(1, reply=True),
    "is killed": lambda _: os.kill(os.getpid(), 9),
    "writes nothing": leave(0),
    "writes half of the JSON": write('[{"role": "system", "cont'),
    "writes bytes": write(bytes(range(256))),
    "writes NaN": write('[{"role": "user", "content": NaN}]'),
    "nests too deeply": write("[" * 100_000),
    "writes without end": endless,
}
"""What only a program can do."""


if __name__ == "__main__":
    given = json.load(sys.stdin)
    PROGRAM[fault_in(str(given))](given)
