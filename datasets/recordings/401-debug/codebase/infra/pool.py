"""Connection pool.

Idle connections are kept on a stack: the one that came back last goes out first, so that a
quiet service works with few warm connections.
"""

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from infra.clock import Clock

logger = logging.getLogger("ferrygate.pool")


class Connection(Protocol):
    id: int

    def execute(self, command: str, *arguments: Any) -> Any: ...

    def close(self) -> None: ...


class PoolExhausted(Exception):
    """Every connection is in use and none came back in time."""


@dataclass
class PoolStats:
    """Counters since the pool was built."""

    created: int = 0
    reused: int = 0
    evicted_idle: int = 0
    exhausted: int = 0
    high_water: int = 0


@dataclass
class _Idle:
    connection: Connection
    released_at: float


class ConnectionPool:
    """Hands out connections and takes them back."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], Connection],
        clock: Clock,
        *,
        max_connections: int,
        max_idle_s: int,
        checkout_timeout_s: float,
    ) -> None:
        self.name = name
        self._connect = connect
        self._clock = clock
        self._max_connections = max_connections
        self._max_idle_s = max_idle_s
        self._checkout_timeout_s = checkout_timeout_s
        self._idle: list[_Idle] = []
        self._in_use: dict[int, Connection] = {}
        self.stats = PoolStats()

    def acquire(self) -> Connection:
        """Return a connection; give it back with `release`.

        Raises:
            PoolExhausted: ``max_connections`` are in use.
        """
        now = self._clock.now()
        while self._idle:
            idle = self._idle.pop()
            if now - idle.released_at > self._max_idle_s:
                idle.connection.close()
                self.stats.evicted_idle += 1
                continue
            self.stats.reused += 1
            return self._hand_out(idle.connection)
        if len(self._in_use) >= self._max_connections:
            self._clock.sleep(self._checkout_timeout_s)
            self.stats.exhausted += 1
            raise PoolExhausted(f"pool {self.name}: {self._max_connections} in use")
        self.stats.created += 1
        return self._hand_out(self._connect())

    def release(self, connection: Connection) -> None:
        """Take a connection back for the next caller."""
        self._in_use.pop(connection.id, None)
        self._idle.append(_Idle(connection, self._clock.now()))

    def close(self) -> None:
        """Close everything that is idle."""
        while self._idle:
            self._idle.pop().connection.close()

    def snapshot(self) -> dict[str, Any]:
        """State and counters, for diagnostics."""
        now = self._clock.now()
        return {
            "pool": self.name,
            "in_use": len(self._in_use),
            "idle": len(self._idle),
            "oldest_idle_s": int(max((now - idle.released_at for idle in self._idle), default=0)),
            "idle_client_ids": [idle.connection.id for idle in self._idle],
            **asdict(self.stats),
        }

    def _hand_out(self, connection: Connection) -> Connection:
        self._in_use[connection.id] = connection
        self.stats.high_water = max(self.stats.high_water, len(self._in_use))
        return connection
