"""Totals of a quarter, by hand. Reads the copy so as not to hold up the writer."""

import sqlite3

from tollwick.config import Settings


def run(connection: sqlite3.Connection, settings: Settings, first: str, last: str) -> dict[str, int]:
    """Return number and cents of the vouchers from day ``first`` to ``last``, and of the breakage."""
    row = connection.execute(
        "SELECT count(*) AS vouchers, sum(total_cents) AS cents, "
        "sum(CASE WHEN status = 'void' THEN total_cents ELSE 0 END) AS breakage "
        "FROM returns_v2_tmp WHERE substr(started, 1, 10) BETWEEN ? AND ? AND voucher IS NOT NULL",
        (first, last),
    ).fetchone()
    return {"vouchers": row["vouchers"], "cents": row["cents"] or 0, "breakage_cents": row["breakage"] or 0}
