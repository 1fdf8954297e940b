"""Errors that become HTTP answers.

Clients only ever see the public code; the internal code says why and stays in the process.
"""


class ApiError(Exception):
    """Base of every error with a defined answer."""

    status = 500
    public_code = "INT-5000"
    label = "internal_error"

    def __init__(self, internal_code: str, detail: str = "") -> None:
        super().__init__(f"{internal_code} {detail}".strip())
        self.internal_code = internal_code
        self.detail = detail

    def headers(self) -> dict[str, str]:
        return {}


class BadRequest(ApiError):
    status = 400
    public_code = "REQ-1000"
    label = "bad_request"


class Unauthorized(ApiError):
    """Deliberately vague outside: one code for every reason (threat model T-4)."""

    status = 401
    public_code = "AUTH-1100"
    label = "unauthorized"


class Forbidden(ApiError):
    status = 403
    public_code = "CORS-2003"
    label = "forbidden"


class TooManyRequests(ApiError):
    status = 429
    public_code = "RATE-4001"
    label = "too_many_requests"

    def __init__(self, internal_code: str, retry_after_s: int) -> None:
        super().__init__(internal_code, f"retry after {retry_after_s}s")
        self.retry_after_s = retry_after_s

    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after_s)}


# Internal codes of Unauthorized.
BAD_CREDENTIALS = "AUTH-1101"
ACCOUNT_LOCKED = "AUTH-1104"
NO_SESSION = "AUTH-1107"
SESSION_MISSING = "AUTH-1110"
TOKEN_REJECTED = "AUTH-1112"
