"""The user directory: read from ``data/users.json``, failures counted in memory."""

import json
from dataclasses import dataclass
from pathlib import Path

LOCK_AFTER = 6
"""Wrong passwords in a row before an account is locked."""


@dataclass(frozen=True)
class User:
    id: str
    username: str
    role: str
    home_port: str
    password_hash: str


class UserService:
    def __init__(self, users: list[User], decoy_hash: str) -> None:
        self._by_username = {user.username: user for user in users}
        self._by_id = {user.id: user for user in users}
        self._failures: dict[str, int] = {}
        self._last_login: dict[str, float] = {}
        self.decoy_hash = decoy_hash

    @classmethod
    def from_file(cls, path: Path) -> "UserService":
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls([User(**entry) for entry in data["users"]], data["decoy_hash"])

    def by_username(self, username: str) -> User | None:
        return self._by_username.get(username)

    def by_id(self, user_id: str) -> User | None:
        return self._by_id.get(user_id)

    def record_failure(self, user_id: str) -> None:
        self._failures[user_id] = self._failures.get(user_id, 0) + 1

    def record_login(self, user_id: str, now: float) -> None:
        self._failures.pop(user_id, None)
        self._last_login[user_id] = now

    def is_locked(self, user_id: str) -> bool:
        return self._failures.get(user_id, 0) >= LOCK_AFTER
