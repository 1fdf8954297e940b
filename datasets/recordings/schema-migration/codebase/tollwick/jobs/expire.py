"""End vouchers that nobody redeemed."""

import sqlite3

from tollwick.config import Settings


def run(connection: sqlite3.Connection, settings: Settings, at: int) -> int:
    """Void what was printed more than ``voucher_days`` ago; return the number of returns."""
    oldest = at - settings.voucher_days * 86400
    with connection:
        return connection.execute(
            "UPDATE returns SET status = 'void' WHERE status = 'printed' AND id IN "
            "(SELECT return_id FROM voucher_log WHERE printed_at < ?)",
            (oldest,),
        ).rowcount
