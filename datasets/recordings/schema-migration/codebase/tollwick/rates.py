"""What a bottle is worth on a day."""

import sqlite3


class Rates:
    """The deposit rates, read once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._rates: dict[str, list[tuple[str, int]]] = {}
        for row in connection.execute("SELECT sku, valid_from, cents FROM deposit_rates ORDER BY sku, valid_from"):
            self._rates.setdefault(row["sku"], []).append((row["valid_from"], row["cents"]))

    def cents(self, sku: str, day: str) -> int:
        """Return the deposit in cents on a day (``YYYY-MM-DD``); KeyError for an unknown SKU."""
        found = None
        for valid_from, cents in self._rates[sku]:
            if valid_from <= day:
                found = cents
        if found is None:
            raise KeyError(sku)
        return found

    def total(self, pairs: list[tuple[str, int]], day: str) -> float:
        """Return the total in euros, as the kiosks work it out."""
        return sum(number * (self.cents(sku, day) / 100) for sku, number in pairs)
