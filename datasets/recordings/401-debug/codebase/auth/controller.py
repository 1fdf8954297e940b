"""Handlers below ``/api/auth`` and ``/api/session``.

Every handler takes a `Request` and returns a `Response`; refusals are raised as `ApiError`
and turned into answers by the error mapper.
"""

import json
import logging

from auth import errors, passwords
from auth.errors import BadRequest, Unauthorized
from auth.tokens import TokenError, TokenSigner, fingerprint
from infra.clock import Clock
from services.session_service import SessionService
from services.user_service import User, UserService
from web.http import Request, Response

COOKIE = "fg_session"

logger = logging.getLogger("ferrygate.auth")


class AuthController:
    """Login, logout, token refresh and the "who am I" endpoint."""

    def __init__(
        self,
        users: UserService,
        sessions: SessionService,
        signer: TokenSigner,
        clock: Clock,
    ) -> None:
        self._users = users
        self._sessions = sessions
        self._signer = signer
        self._clock = clock

    def login(self, request: Request) -> Response:
        """Check credentials, issue a token and open a session."""
        username, password = self._credentials(request)
        user = self._authenticate(username, password)
        token = self._signer.issue(user.id, self._clock.now())
        request.note("token", f"issued fp={fingerprint(token)}")
        session = self._sessions.create(user.id, client=request.client)
        if session is None:
            raise Unauthorized(errors.NO_SESSION, "session could not be established")
        self._users.record_login(user.id, self._clock.now())
        response = Response.json(
            200,
            {
                "token": token,
                "expires_in_s": self._signer.ttl_s,
                "user": {"id": user.id, "role": user.role},
            },
        )
        response.set_cookie(COOKIE, session.id, max_age_s=self._sessions.ttl_s)
        return response

    def logout(self, request: Request) -> Response:
        """Close the session; closing one that is already gone is not an error."""
        session_id = request.cookies.get(COOKIE)
        if session_id:
            self._sessions.revoke(session_id)
        response = Response.json(204, None)
        response.set_cookie(COOKIE, "", max_age_s=0)
        return response

    def refresh(self, request: Request) -> Response:
        """Swap a token that is still good, and whose session is open, for a fresh one."""
        header = request.headers.get("authorization", "")
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized(errors.TOKEN_REJECTED, "no bearer token")
        try:
            claims = self._signer.verify(token, self._clock.now())
        except TokenError as error:
            raise Unauthorized(errors.TOKEN_REJECTED, str(error)) from error
        session = request.session
        if session is None or session.user_id != claims.sub:
            raise Unauthorized(errors.SESSION_MISSING, "token and session differ")
        self._sessions.touch(session.id)
        fresh = self._signer.issue(claims.sub, self._clock.now())
        return Response.json(200, {"token": fresh, "expires_in_s": self._signer.ttl_s})

    def me(self, request: Request) -> Response:
        """Return who is signed in."""
        session = request.session
        if session is None:
            raise Unauthorized(errors.SESSION_MISSING)
        user = self._users.by_id(session.user_id)
        if user is None:
            raise Unauthorized(errors.SESSION_MISSING, "user of the session is gone")
        return Response.json(200, {"id": user.id, "role": user.role, "port": user.home_port})

    def _credentials(self, request: Request) -> tuple[str, str]:
        try:
            body = json.loads(request.body or "{}")
            username, password = body["username"], body["password"]
        except (json.JSONDecodeError, KeyError) as error:
            raise BadRequest("REQ-1002", "username and password are required") from error
        if not isinstance(username, str) or not isinstance(password, str):
            raise BadRequest("REQ-1003", "username and password must be text")
        return username.strip().lower(), password

    def _authenticate(self, username: str, password: str) -> User:
        user = self._users.by_username(username)
        if user is None:
            passwords.verify(password, self._users.decoy_hash)
            raise Unauthorized(errors.BAD_CREDENTIALS, "unknown user")
        if not passwords.verify(password, user.password_hash):
            self._users.record_failure(user.id)
            raise Unauthorized(errors.BAD_CREDENTIALS, "wrong password")
        if self._users.is_locked(user.id):
            raise Unauthorized(errors.ACCOUNT_LOCKED, "too many wrong passwords")
        return user
