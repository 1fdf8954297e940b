"""What it costs in a month (provider/prices.ini), in euros."""

import configparser
from typing import Any

from trellis import config, state
from trellis.settings import Settings


def price(prices: configparser.ConfigParser, region: str, kind: str, attrs: dict[str, Any]) -> float:
    """Return the price of one resource for a month; 0 for what costs nothing."""
    section = prices[region] if prices.has_section(region) else prices["eu1"]
    total = section.getfloat(f"{kind}.{attrs['size']}", fallback=0.0) if "size" in attrs else section.getfloat(kind, fallback=0.0)
    if kind == "db_instance":
        total += attrs["storage_gb"] * section.getfloat("db_instance.gb")
        total += max(0, attrs["retention_days"] - 7) * section.getfloat("db_instance.retention_day")
        if attrs.get("standby"):
            total *= 2
    return total


def table(settings: Settings, planned: bool) -> tuple[list[tuple[str, int, float]], float]:
    """Return name, resources and euros of each environment, and the sum.

    ``planned`` takes what the configuration wants, otherwise what the state holds.
    """
    prices = configparser.ConfigParser()
    prices.read(settings.path("provider", "prices.ini"))
    rows = []
    for name in config.names(settings):
        env = config.load(settings, name)
        if planned:
            items = [(each.type, each.attrs) for each in env.wanted.values()]
        else:
            items = [(address.split(".")[1], entry.attrs) for address, entry in state.load(settings, name).resources.items()]
        total = sum(price(prices, env.fields["region"], kind, attrs) for kind, attrs in items)
        rows.append((name, len(items), round(total, 2)))
    return rows, round(sum(row[2] for row in rows), 2)
