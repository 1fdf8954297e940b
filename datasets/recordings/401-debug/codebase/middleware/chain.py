"""The middleware contract and how a chain is built.

The order is a setting (``middleware`` in the environment file), outermost first. In every
environment it is::

    request_id -> error_mapper -> cors -> rate_limit -> session_guard -> handler

Everything inside ``error_mapper`` may refuse a request by raising an `ApiError`.
"""

from collections.abc import Callable
from typing import Protocol

from web.http import Request, Response

Handler = Callable[[Request], Response]


class Middleware(Protocol):
    """Something that stands between the dispatcher and the handler."""

    name: str

    def __call__(self, request: Request, following: Handler) -> Response: ...


def build_chain(middleware: list[Middleware], handler: Handler) -> Handler:
    """Return one handler that runs ``middleware`` in order and then ``handler``."""
    entry = handler
    for layer in reversed(middleware):
        entry = _bind(layer, entry)
    return entry


def _bind(layer: Middleware, following: Handler) -> Handler:
    def run(request: Request) -> Response:
        request.note(layer.name, "enter")
        try:
            response = layer(request, following)
        except Exception as error:
            request.note(layer.name, f"raised {type(error).__name__}")
            raise
        request.note(layer.name, f"leave {response.status}")
        return response

    return run
