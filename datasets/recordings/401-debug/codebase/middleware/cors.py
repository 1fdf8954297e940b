"""Cross-origin requests.

A *trusted* origin is one that stands in ``allow_origins`` literally. If ``*`` stands there as
well, any other origin is *mirrored*: it is let in, but what could identify a user is taken off
the request first (``strip_credentials_on_mismatch``).
"""

from dataclasses import dataclass, field

from auth.errors import Forbidden
from middleware.chain import Handler
from web.http import Request, Response

PREFLIGHT_MAX_AGE_S = 600
STRIPPED_HEADERS = ("authorization", "x-fg-device")


@dataclass(frozen=True)
class CorsSettings:
    allow_origins: tuple[str, ...] = ()
    allow_methods: tuple[str, ...] = ("GET", "POST", "OPTIONS")
    allow_headers: tuple[str, ...] = ("authorization", "content-type", "x-fg-device")
    allow_credentials: bool = False
    strip_credentials_on_mismatch: bool = True
    extra: dict[str, str] = field(default_factory=dict)


class CorsMiddleware:
    name = "cors"

    def __init__(self, settings: CorsSettings) -> None:
        self._settings = settings

    def __call__(self, request: Request, following: Handler) -> Response:
        origin = request.headers.get("origin")
        if origin is None:
            return following(request)
        verdict = self._verdict(origin)
        request.note("cors", f"origin {verdict}")
        if verdict == "refused":
            raise Forbidden("CORS-2003", "origin is not allowed")
        if request.method == "OPTIONS":
            return self._preflight(origin)
        if verdict == "mirrored" and self._settings.strip_credentials_on_mismatch:
            for header in STRIPPED_HEADERS:
                if request.headers.pop(header, None) is not None:
                    request.note("cors", f"stripped {header}")
        response = following(request)
        response.headers.update(self._answer_headers(origin))
        return response

    def _verdict(self, origin: str) -> str:
        if origin in self._settings.allow_origins:
            return "trusted"
        if "*" in self._settings.allow_origins:
            return "mirrored"
        return "refused"

    def _preflight(self, origin: str) -> Response:
        headers = self._answer_headers(origin)
        headers["Access-Control-Allow-Methods"] = ", ".join(self._settings.allow_methods)
        headers["Access-Control-Allow-Headers"] = ", ".join(self._settings.allow_headers)
        headers["Access-Control-Max-Age"] = str(PREFLIGHT_MAX_AGE_S)
        return Response(204, headers)

    def _answer_headers(self, origin: str) -> dict[str, str]:
        headers = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
        if self._settings.allow_credentials:
            headers["Access-Control-Allow-Credentials"] = "true"
        return headers
