"""Fixed-window rate limit per client, counted in Redis.

Fails open: a limiter that cannot count must not keep people from their tickets.
"""

import logging
from dataclasses import dataclass

from auth.errors import TooManyRequests
from infra.clock import Clock
from infra.fake_redis import RedisError
from infra.pool import ConnectionPool, PoolExhausted
from middleware.chain import Handler
from web.http import Request, Response

logger = logging.getLogger("ferrygate.limits")


@dataclass(frozen=True)
class RateLimitSettings:
    window_s: int = 60
    max_requests: int = 40
    exempt_paths: tuple[str, ...] = ("/healthz",)


class RateLimit:
    name = "rate_limit"

    def __init__(self, pool: ConnectionPool, clock: Clock, settings: RateLimitSettings) -> None:
        self._pool = pool
        self._clock = clock
        self._settings = settings

    def __call__(self, request: Request, following: Handler) -> Response:
        if request.path not in self._settings.exempt_paths:
            self._count(request)
        return following(request)

    def _count(self, request: Request) -> None:
        window = int(self._clock.now()) // self._settings.window_s
        key = f"rl:{request.client}:{window}"
        try:
            seen = self._increment(key)
        except (RedisError, PoolExhausted) as error:
            logger.warning("rate limit not counted: %s", error)
            return
        request.note("rate_limit", f"{seen}/{self._settings.max_requests}")
        if seen > self._settings.max_requests:
            left = self._settings.window_s - int(self._clock.now()) % self._settings.window_s
            raise TooManyRequests("RATE-4001", retry_after_s=left)

    def _increment(self, key: str) -> int:
        connection = self._pool.acquire()
        try:
            seen = int(connection.execute("INCR", key))
            if seen == 1:
                connection.execute("EXPIRE", key, self._settings.window_s)
            return seen
        finally:
            self._pool.release(connection)
