"""Routes a request through the middleware to its handler, without a server."""

import logging
from collections.abc import Callable

from auth.errors import ApiError
from infra.clock import Clock
from middleware.chain import Handler, Middleware, build_chain
from web.http import Request, Response

logger = logging.getLogger("ferrygate.web")


class NotFound(ApiError):
    status = 404
    public_code = "REQ-1004"
    label = "not_found"


class Dispatcher:
    """One worker's front door."""

    def __init__(self, worker: str, middleware: list[Middleware], clock: Clock) -> None:
        self.worker = worker
        self._routes: dict[tuple[str, str], Handler] = {}
        self._clock = clock
        self._entry = build_chain(middleware, self._route)

    def route(self, method: str, path: str, handler: Callable[[Request], Response]) -> None:
        self._routes[(method, path)] = handler

    def handle(self, request: Request) -> Response:
        """Answer a request and write its access log line."""
        started = self._clock.now()
        response = self._entry(request)
        logger.log(
            logging.DEBUG if request.path == "/healthz" else logging.INFO,
            "%s req=%s %s %s %d code=%s origin=%s client=%s dur_s=%.3f",
            self.worker,
            request.id,
            request.method,
            request.path,
            response.status,
            response.headers.get("X-Error-Code", "-"),
            request.headers.get("origin", "-"),
            request.client,
            self._clock.now() - started,
        )
        return response

    def _route(self, request: Request) -> Response:
        handler = self._routes.get((request.method, request.path))
        if handler is None:
            raise NotFound("REQ-1004", f"{request.method} {request.path}")
        return handler(request)
