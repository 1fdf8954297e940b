"""Rates by zone and time."""

import json
from functools import lru_cache

from sluicework.files import Files


class Tariffs:
    """Rates in tenths of a cent for 1000 litres."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def tariff_for(self, zone: str, at: str) -> int:
        """Return the rate of a zone at a local time."""
        return self._load_tariff(zone, at)

    @lru_cache(maxsize=256)
    def _load_tariff(self, zone: str, at: str) -> int:
        rates = self.load_tariffs(zone)
        return rates[max(since for since in rates if since <= at)]

    def load_tariffs(self, zone: str) -> dict[str, int]:
        """Return the rates of a zone by the time from which they hold."""
        rates = {entry["from"]: entry["rate"] for entry in json.loads(self.files.read(f"data/tariffs/{zone}.json"))["tariffs"]}
        override = f"data/tariffs/{zone}-override.json"
        if self.files.exists(override):
            rates.update({entry["from"]: entry["rate"] for entry in json.loads(self.files.read(override))["tariffs"]})
        return rates
