"""In-process stand-in for the Redis server.

It knows the commands that the service uses, keeps expiries, and behaves like the real server
where that has bitten before: it closes clients that were idle for longer than ``timeout``
(silently, the client only learns of it on its next command) and refuses clients beyond
``maxclients``. It can be told to fail on purpose.
"""

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.clock import ManualClock, show

ROUND_TRIP_S = 0.001


class RedisError(Exception):
    """Base of everything that a command can fail with."""


class ConnectionClosedError(RedisError):
    """The server has closed this connection."""


class ResponseError(RedisError):
    """The server understood the connection but not the command."""


class MaxClientsError(RedisError):
    """The server does not take another client."""


@dataclass
class _Client:
    id: int
    name: str
    connected_at: float
    last_command_at: float
    commands: int = 0


@dataclass
class _Value:
    data: str
    expires_at: float | None = None


@dataclass
class FakeRedisServer:
    """One server; connect to it with `connect`."""

    clock: ManualClock
    timeout_s: int = 0
    maxclients: int = 64
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._values: dict[str, _Value] = {}
        self._clients: dict[int, _Client] = {}
        self._next_client = 1
        self._faults: list[Exception] = []
        self.closed_idle = 0
        self.refused = 0

    @classmethod
    def from_conf(cls, path: Path, clock: ManualClock, **overrides: Any) -> "FakeRedisServer":
        """Build a server from a ``redis.conf``; only ``timeout`` and ``maxclients`` count."""
        known: dict[str, Any] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("#")[0].strip().partition(" ")
            if key == "timeout":
                known["timeout_s"] = int(value)
            elif key == "maxclients":
                known["maxclients"] = int(value)
        return cls(clock, **{**known, **overrides})

    def connect(self, name: str) -> "FakeConnection":
        self._reap_idle()
        if len(self._clients) >= self.maxclients:
            self.refused += 1
            raise MaxClientsError("ERR max number of clients reached")
        now = self.clock.now()
        client = _Client(self._next_client, name, now, now)
        self._next_client += 1
        self._clients[client.id] = client
        self.log.append(f"{show(now)} - Accepted client id={client.id} name={name}")
        return FakeConnection(self, client.id, name)

    def inject(self, error: Exception, times: int = 1) -> None:
        """Let the next ``times`` commands fail with ``error``."""
        self._faults.extend([error] * times)

    def is_connected(self, client_id: int) -> bool:
        self._reap_idle()
        return client_id in self._clients

    def disconnect(self, client_id: int) -> None:
        self._clients.pop(client_id, None)

    def client_list(self) -> list[dict[str, Any]]:
        """What ``CLIENT LIST`` would show."""
        self._reap_idle()
        now = self.clock.now()
        return [
            {
                "id": client.id,
                "name": client.name,
                "age_s": int(now - client.connected_at),
                "idle_s": int(now - client.last_command_at),
                "cmds": client.commands,
            }
            for client in self._clients.values()
        ]

    def run(self, client_id: int, command: str, *arguments: Any) -> Any:
        """Carry out one command for one client."""
        self._reap_idle()
        client = self._clients.get(client_id)
        if client is None:
            raise ConnectionClosedError("Connection closed by server.")
        self.clock.advance(ROUND_TRIP_S)
        if self._faults:
            raise self._faults.pop(0)
        client.last_command_at = self.clock.now()
        client.commands += 1
        handlers: dict[str, Callable[..., Any]] = {
            "PING": self._ping,
            "SET": self._set,
            "GET": self._get,
            "DEL": self._del,
            "EXPIRE": self._expire,
            "TTL": self._ttl,
            "INCR": self._incr,
            "KEYS": self._keys,
        }
        handler = handlers.get(command.upper())
        if handler is None:
            raise ResponseError(f"ERR unknown command '{command}'")
        return handler(*arguments)

    def _reap_idle(self) -> None:
        if not self.timeout_s:
            return
        now = self.clock.now()
        for client in list(self._clients.values()):
            idle = now - client.last_command_at
            if idle > self.timeout_s:
                del self._clients[client.id]
                self.closed_idle += 1
                moment = show(client.last_command_at + self.timeout_s + 1)
                self.log.append(f"{moment} - Closing idle client id={client.id} name={client.name}")

    def _alive(self, key: str) -> _Value | None:
        value = self._values.get(key)
        if value and value.expires_at is not None and value.expires_at <= self.clock.now():
            del self._values[key]
            return None
        return value

    def _ping(self) -> str:
        return "PONG"

    def _set(self, key: str, data: str, *options: Any) -> str:
        expires_at = None
        if options:
            if str(options[0]).upper() != "EX" or len(options) != 2:
                raise ResponseError("ERR syntax error")
            expires_at = self.clock.now() + int(options[1])
        self._values[key] = _Value(data, expires_at)
        return "OK"

    def _get(self, key: str) -> str | None:
        value = self._alive(key)
        return value.data if value else None

    def _del(self, *keys: str) -> int:
        return sum(self._values.pop(key, None) is not None for key in keys)

    def _expire(self, key: str, seconds: int) -> int:
        value = self._alive(key)
        if value is None:
            return 0
        value.expires_at = self.clock.now() + int(seconds)
        return 1

    def _ttl(self, key: str) -> int:
        value = self._alive(key)
        if value is None:
            return -2
        return -1 if value.expires_at is None else int(value.expires_at - self.clock.now())

    def _incr(self, key: str) -> int:
        value = self._alive(key) or self._values.setdefault(key, _Value("0"))
        value.data = str(int(value.data) + 1)
        return int(value.data)

    def _keys(self, pattern: str) -> list[str]:
        found = [key for key in list(self._values) if self._alive(key)]
        return sorted(key for key in found if fnmatch.fnmatchcase(key, pattern))


class FakeConnection:
    """The client's end of a connection."""

    def __init__(self, server: FakeRedisServer, client_id: int, name: str) -> None:
        self._server = server
        self.id = client_id
        self.name = name

    def execute(self, command: str, *arguments: Any) -> Any:
        return self._server.run(self.id, command, *arguments)

    def close(self) -> None:
        self._server.disconnect(self.id)
