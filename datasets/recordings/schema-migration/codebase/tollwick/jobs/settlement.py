"""What each kiosk took in on a day."""

import sqlite3

from tollwick.config import Settings


def run(connection: sqlite3.Connection, settings: Settings, day: str) -> list[tuple[str, int, float]]:
    """Return kiosk, number of vouchers and their sum in euros for a local day."""
    rows = connection.execute(
        "SELECT upper(kiosk) AS name, count(*) AS number, round(sum(total), 2) AS euros FROM returns "
        "WHERE substr(started, 1, 10) = ? AND voucher IS NOT NULL GROUP BY name ORDER BY name",
        (day,),
    )
    return [(row["name"], row["number"], row["euros"]) for row in rows]
