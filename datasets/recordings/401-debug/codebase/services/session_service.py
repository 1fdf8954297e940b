"""Sessions, kept in Redis.

Key layout (v1): ``sess:<session id>`` holds the session as JSON and expires by itself.
"""

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from infra.clock import Clock
from infra.fake_redis import RedisError
from infra.pool import ConnectionPool

KEY_PREFIX = "sess:"

logger = logging.getLogger("ferrygate.sessions")


@dataclass(frozen=True)
class Session:
    id: str
    user_id: str
    client: str
    created_at: int


def sequence_ids(worker: str) -> Iterator[str]:
    """Session ids for replays and tests: unpredictable enough, the same on every run."""
    number = 0
    while True:
        number += 1
        yield hashlib.sha256(f"{worker}/{number}".encode()).hexdigest()[:24]


class SessionService:
    """Opens, loads, prolongs and closes sessions."""

    def __init__(
        self,
        pool: ConnectionPool,
        clock: Clock,
        *,
        ttl_s: int,
        ids: Iterator[str],
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._ids = ids
        self.ttl_s = ttl_s

    def create(self, user_id: str, client: str) -> Session | None:
        """Open a session; None if that was not possible."""
        session = Session(next(self._ids), user_id, client, int(self._clock.now()))
        payload = json.dumps(asdict(session), sort_keys=True)
        try:
            self._execute("SET", self._key(session.id), payload, "EX", self.ttl_s)
        except RedisError as error:
            logger.debug("create failed: %s: %s", type(error).__name__, error)
            return None
        return session

    def load(self, session_id: str) -> Session | None:
        """Return an open session; None if there is no such session."""
        try:
            payload = self._execute("GET", self._key(session_id))
        except RedisError as error:
            logger.debug("load failed: %s: %s", type(error).__name__, error)
            return None
        return Session(**json.loads(payload)) if payload else None

    def touch(self, session_id: str) -> bool:
        """Prolong a session by a full lifetime."""
        try:
            return bool(self._execute("EXPIRE", self._key(session_id), self.ttl_s))
        except RedisError as error:
            logger.debug("touch failed: %s: %s", type(error).__name__, error)
            return False

    def revoke(self, session_id: str) -> None:
        """Close a session."""
        try:
            self._execute("DEL", self._key(session_id))
        except RedisError as error:
            logger.debug("revoke failed: %s: %s", type(error).__name__, error)

    def ping(self) -> bool:
        """Say whether the store answers; used by the deep health check."""
        try:
            return bool(self._execute("PING") == "PONG")
        except RedisError:
            return False

    def _key(self, session_id: str) -> str:
        return KEY_PREFIX + session_id

    def _execute(self, *command: Any) -> Any:
        connection = self._pool.acquire()
        try:
            return connection.execute(*command)
        finally:
            self._pool.release(connection)
