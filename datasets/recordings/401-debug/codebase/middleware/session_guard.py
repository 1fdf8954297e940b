"""Lets a request through to a protected path only with an open session."""

from auth import errors
from auth.errors import Unauthorized
from middleware.chain import Handler
from services.session_service import SessionService
from web.http import Request, Response

COOKIE = "fg_session"


class SessionGuard:
    name = "session_guard"

    def __init__(self, sessions: SessionService, public_paths: tuple[str, ...]) -> None:
        self._sessions = sessions
        self._public = frozenset(public_paths)

    def __call__(self, request: Request, following: Handler) -> Response:
        if request.path in self._public:
            request.note("session_guard", "public path")
            return following(request)
        session_id = request.cookies.get(COOKIE)
        if not session_id:
            raise Unauthorized(errors.SESSION_MISSING, "no session cookie")
        session = self._sessions.load(session_id)
        if session is None:
            raise Unauthorized(errors.SESSION_MISSING, "session is not open")
        request.session = session
        return following(request)
