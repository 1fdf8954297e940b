"""Turns errors into answers.

The internal code of an `ApiError` is written at DEBUG only: the access log goes to a shared
index that support can read, and threat model T-4 does not want reasons there.
"""

import logging

from auth.errors import ApiError
from middleware.chain import Handler
from web.http import Request, Response

logger = logging.getLogger("ferrygate.errors")


class ErrorMapper:
    name = "error_mapper"

    def __call__(self, request: Request, following: Handler) -> Response:
        try:
            return following(request)
        except ApiError as error:
            logger.debug("req=%s %s", request.id, error)
            return self._answer(error.status, error.label, error.public_code, error.headers())
        except Exception as error:
            logger.error("req=%s unhandled %s: %s", request.id, type(error).__name__, error)
            return self._answer(500, ApiError.label, ApiError.public_code, {})

    def _answer(self, status: int, label: str, code: str, headers: dict[str, str]) -> Response:
        return Response.json(
            status, {"error": label, "code": code}, {"X-Error-Code": code, **headers}
        )
