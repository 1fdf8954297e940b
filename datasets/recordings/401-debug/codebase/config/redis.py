"""Connection pools to Redis, per environment.

Each worker has two pools: ``sessions`` (session store) and ``limits`` (rate limiter). They are
apart so that a flood of requests cannot starve logins of connections.
"""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class PoolSettings:
    """Settings of one pool.

    Attributes:
        max_connections: Connections that one worker may hold in this pool.
        max_idle_s: A connection that was idle for longer is closed instead of handed out.
        checkout_timeout_s: How long a caller waits when every connection is in use.
    """

    max_connections: int
    max_idle_s: int
    checkout_timeout_s: float


_POOLS: dict[str, dict[str, PoolSettings]] = {
    "dev": {
        "sessions": PoolSettings(max_connections=2, max_idle_s=900, checkout_timeout_s=5),
        "limits": PoolSettings(max_connections=2, max_idle_s=60, checkout_timeout_s=1),
    },
    "staging": {
        "sessions": PoolSettings(max_connections=4, max_idle_s=900, checkout_timeout_s=5),
        "limits": PoolSettings(max_connections=2, max_idle_s=60, checkout_timeout_s=1),
    },
    "prod": {
        # 900: ADR 0007, written when the server never closed idle clients.
        "sessions": PoolSettings(max_connections=10, max_idle_s=900, checkout_timeout_s=5),
        "limits": PoolSettings(max_connections=4, max_idle_s=60, checkout_timeout_s=1),
    },
}


def pool_settings(environment: str) -> dict[str, PoolSettings]:
    """Return the pools of an environment.

    Raises:
        KeyError: There is no such environment.
    """
    return _POOLS[environment]


def describe(environment: str) -> dict[str, dict[str, Any]]:
    """The same as plain data, for the configuration dump."""
    return {name: asdict(settings) for name, settings in pool_settings(environment).items()}
