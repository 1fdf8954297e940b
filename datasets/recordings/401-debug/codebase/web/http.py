"""Requests and responses."""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from services.session_service import Session


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    client: str = "-"
    id: str = ""
    session: "Session | None" = None
    notes: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.headers = {name.lower(): value for name, value in self.headers.items()}
        self.path, _, query = self.path.partition("?")
        self.query = dict(pair.partition("=")[::2] for pair in query.split("&") if pair)

    @property
    def cookies(self) -> dict[str, str]:
        pairs = (part.strip().partition("=") for part in self.headers.get("cookie", "").split(";"))
        return {name: value for name, _, value in pairs if name}

    def note(self, stage: str, text: str) -> None:
        """Leave a line in the trace of this request."""
        self.notes.append((stage, text))


@dataclass
class Response:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""

    @classmethod
    def json(cls, status: int, data: Any, headers: dict[str, str] | None = None) -> "Response":
        body = "" if data is None else json.dumps(data, sort_keys=True)
        return cls(status, {"Content-Type": "application/json", **(headers or {})}, body)

    def data(self) -> Any:
        return json.loads(self.body) if self.body else None

    def set_cookie(self, name: str, value: str, max_age_s: int) -> None:
        self.headers["Set-Cookie"] = (
            f"{name}={value}; Max-Age={max_age_s}; Path=/; HttpOnly; Secure; SameSite=Lax"
        )
