"""Wiring: settings in, dispatcher out."""

from dataclasses import dataclass
from pathlib import Path

from auth.controller import AuthController
from auth.tokens import TokenSigner
from config.redis import PoolSettings, pool_settings
from config.settings import Settings
from infra.clock import ManualClock
from infra.fake_redis import FakeRedisServer
from infra.pool import ConnectionPool
from middleware.chain import Middleware
from middleware.cors import CorsMiddleware
from middleware.error_mapper import ErrorMapper
from middleware.rate_limit import RateLimit
from middleware.request_id import RequestId
from middleware.session_guard import SessionGuard
from services.session_service import SessionService, sequence_ids
from services.user_service import UserService
from web.dispatcher import Dispatcher
from web.http import Request, Response

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class App:
    """One worker with everything that diagnostics want to look into."""

    worker: str
    dispatcher: Dispatcher
    sessions: SessionService
    session_pool: ConnectionPool
    limit_pool: ConnectionPool
    signer: TokenSigner

    def handle(self, request: Request) -> Response:
        return self.dispatcher.handle(request)


def build_pool(
    name: str, worker: str, server: FakeRedisServer, clock: ManualClock, settings: PoolSettings
) -> ConnectionPool:
    return ConnectionPool(
        f"{name}@{worker}",
        lambda: server.connect(f"ferrygate-{worker}-{name}"),
        clock,
        max_connections=settings.max_connections,
        max_idle_s=settings.max_idle_s,
        checkout_timeout_s=settings.checkout_timeout_s,
    )


def build_app(
    worker: str,
    settings: Settings,
    server: FakeRedisServer,
    clock: ManualClock,
    *,
    skip: frozenset[str] = frozenset(),
    generation: int = 0,
) -> App:
    """Build one worker.

    Args:
        worker: Its name, for example ``w2``.
        settings: Settings of the environment.
        server: The Redis server that all workers share.
        clock: The time that all workers share.
        skip: Names of middleware to leave out (diagnostics only).
        generation: How many times this worker was restarted.
    """
    pools = pool_settings(settings.environment)
    session_pool = build_pool("sessions", worker, server, clock, pools["sessions"])
    limit_pool = build_pool("limits", worker, server, clock, pools["limits"])
    sessions = SessionService(
        session_pool,
        clock,
        ttl_s=settings.session_ttl_s,
        ids=sequence_ids(f"{worker}.{generation}"),
    )
    users = UserService.from_file(ROOT / "data" / "users.json")
    signer = TokenSigner(
        settings.signing_keys, settings.active_kid, settings.audience, settings.token_ttl_s
    )
    middleware: dict[str, Middleware] = {
        "request_id": RequestId(worker),
        "error_mapper": ErrorMapper(),
        "cors": CorsMiddleware(settings.cors),
        "rate_limit": RateLimit(limit_pool, clock, settings.rate_limit),
        "session_guard": SessionGuard(sessions, settings.public_paths),
    }
    order = [middleware[name] for name in settings.middleware if name not in skip]
    dispatcher = Dispatcher(worker, order, clock)
    controller = AuthController(users, sessions, signer, clock)
    dispatcher.route("POST", "/api/auth/login", controller.login)
    dispatcher.route("POST", "/api/auth/logout", controller.logout)
    dispatcher.route("POST", "/api/auth/refresh", controller.refresh)
    dispatcher.route("GET", "/api/session/me", controller.me)
    dispatcher.route("GET", "/healthz", _health(sessions))
    return App(worker, dispatcher, sessions, session_pool, limit_pool, signer)


def _health(sessions: SessionService):
    def handler(request: Request) -> Response:
        if request.query.get("deep") == "1" and not sessions.ping():
            return Response.json(503, {"status": "store unavailable"})
        return Response.json(200, {"status": "ok"})

    return handler
