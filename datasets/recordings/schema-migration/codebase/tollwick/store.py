"""Returns in the database (old schema)."""

import sqlite3

from tollwick.errors import UnknownReturn, UnknownVoucher, WrongState


class ReturnsStore:
    """Reads and writes `returns`, `voucher_log` and `redemptions`. Commits nothing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def create(self, kiosk: str, started: str, member: str | None) -> int:
        cursor = self.connection.execute(
            "INSERT INTO returns (kiosk, started, items, total, status, member) VALUES (?, ?, '', 0, 'open', ?)",
            (kiosk, started, member),
        )
        return int(cursor.lastrowid or 0)

    def get(self, return_id: int) -> sqlite3.Row:
        row = self.connection.execute("SELECT * FROM returns WHERE id = ?", (return_id,)).fetchone()
        if row is None:
            raise UnknownReturn(f"return {return_id}")
        return row

    def finish(self, return_id: int, items: str, total: float, voucher: str, printed_at: int) -> None:
        if self.get(return_id)["status"] != "open":
            raise WrongState(f"return {return_id} is not open")
        self.connection.execute(
            "UPDATE returns SET items = ?, total = ?, voucher = ?, status = 'printed' WHERE id = ?",
            (items, total, voucher, return_id),
        )
        self.connection.execute(
            "INSERT INTO voucher_log (voucher, return_id, printed_at) VALUES (?, ?, ?)",
            (voucher, return_id, printed_at),
        )

    def redeem(self, voucher: str, till: str, at: int) -> float:
        row = self.connection.execute(
            "SELECT id, total FROM returns WHERE voucher = ? AND status = 'printed' ORDER BY id", (voucher,)
        ).fetchone()
        if row is None:
            raise UnknownVoucher(f"voucher {voucher}")
        self.connection.execute("UPDATE returns SET status = 'redeemed' WHERE id = ?", (row["id"],))
        self.connection.execute(
            "INSERT INTO redemptions (voucher, till, paid, at) VALUES (?, ?, ?, ?)",
            (voucher, till, row["total"], at),
        )
        return float(row["total"])

    def void(self, return_id: int) -> None:
        if self.get(return_id)["status"] != "open":
            raise WrongState(f"return {return_id} is not open")
        self.connection.execute("UPDATE returns SET status = 'void' WHERE id = ?", (return_id,))

    def set_member(self, return_id: int, member: str | None) -> None:
        self.get(return_id)
        self.connection.execute("UPDATE returns SET member = ? WHERE id = ?", (member, return_id))
