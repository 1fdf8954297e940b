"""What kiosks and tills can ask for. Each call is one transaction."""

import sqlite3
from typing import Any

from tollwick.config import Settings
from tollwick.errors import TollwickError
from tollwick.items import parse_items
from tollwick.rates import Rates
from tollwick.store import ReturnsStore


class Api:
    """Handlers by name; `call` turns errors into answers."""

    def __init__(self, connection: sqlite3.Connection, settings: Settings) -> None:
        self.connection = connection
        self.settings = settings
        self.store = ReturnsStore(connection)
        self.rates = Rates(connection)

    def call(self, name: str, arguments: dict[str, Any], at: int) -> dict[str, Any]:
        """Carry out one call at the epoch second ``at``."""
        try:
            with self.connection:
                return {"ok": True, **getattr(self, f"do_{name}")(at=at, **arguments)}
        except TollwickError as error:
            return {"ok": False, "code": error.code, "error": str(error)}

    def do_start(self, kiosk: str, started: str, at: int, member: str | None = None) -> dict[str, Any]:
        return {"return_id": self.store.create(kiosk, started, member)}

    def do_finish(self, return_id: int, items: str, voucher: str, at: int) -> dict[str, Any]:
        day = self.store.get(return_id)["started"][:10]
        total = self.rates.total(parse_items(items), day)
        self.store.finish(return_id, items, total, voucher, at)
        return {"voucher": voucher, "total": total}

    def do_redeem(self, voucher: str, till: str, at: int) -> dict[str, Any]:
        return {"paid": self.store.redeem(voucher, till, at)}

    def do_void(self, return_id: int, at: int) -> dict[str, Any]:
        self.store.void(return_id)
        return {}
