"""Show on standard error how far an import is."""

import sys
import time

_TERMINAL_SECONDS = 0.2
_LOG_SECONDS = 10.0
_SHOWN = 60


class Progress:
    """One line that is written over in a terminal; elsewhere a line now and then.

    Args:
        total: How many files there are.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._stream = sys.stderr
        self._terminal = self._stream.isatty()
        self._started = self._shown = time.monotonic()
        self._messages = 0
        self._width = 0

    def show(self, number: int, place: str, messages: int = 0) -> None:
        """Show where the import is.

        Args:
            number: Of the current file, from 1.
            place: The current file.
            messages: Messages that were imported since the last call.
        """
        self._messages += messages
        now = time.monotonic()
        if now - self._shown < (_TERMINAL_SECONDS if self._terminal else _LOG_SECONDS):
            return
        self._shown = now
        rate = self._messages / max(now - self._started, 1e-9)
        name = printable(place, _SHOWN, end=True)
        line = f"[{number}/{self._total}] {self._messages:,} messages, {rate:,.0f} a second: {name}"
        if self._terminal:
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

    def clear(self) -> None:
        """Take the line away, so that something else can be printed."""
        if self._terminal and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0


def printable(text: str, characters: int = 200, *, end: bool = False) -> str:
    """Return untrusted text on one line for a terminal, of bounded length.

    Args:
        text: Anything.
        characters: How much of it.
        end: Whether its end is what counts.
    """
    if len(text) > characters:
        text = "…" + text[-characters:] if end else text[:characters] + "…"
    return "".join(character if character.isprintable() else "?" for character in text)
