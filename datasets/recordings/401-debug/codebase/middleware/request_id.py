"""Gives every request an id and repeats it in the answer."""

import re

from middleware.chain import Handler
from web.http import Request, Response

HEADER = "X-Request-Id"
_ACCEPTABLE = re.compile(r"[A-Za-z0-9-]{6,40}")


class RequestId:
    name = "request_id"

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._count = 0

    def __call__(self, request: Request, following: Handler) -> Response:
        given = request.headers.get(HEADER.lower(), "")
        if _ACCEPTABLE.fullmatch(given):
            request.id = given
        else:
            self._count += 1
            request.id = f"{self._worker}-{self._count:05d}"
        response = following(request)
        response.headers[HEADER] = request.id
        return response
