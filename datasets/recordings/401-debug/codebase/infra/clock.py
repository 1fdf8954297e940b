"""Time, in seconds since the epoch."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The wall clock; what a deployed worker uses."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """A clock that only moves when told to; tests, replays and diagnostics use it."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self.naps: list[float] = []

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self._now += seconds

    def advance(self, seconds: float) -> None:
        self._now += seconds

    def move_to(self, moment: float) -> None:
        """Go to ``moment``; never backwards."""
        self._now = max(self._now, moment)


def parse(text: str) -> float:
    """Turn ``2026-02-27T06:14:03Z`` into seconds."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def show(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
