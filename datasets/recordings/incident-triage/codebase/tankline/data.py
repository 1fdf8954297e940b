"""Reading the tables under data/."""

import csv
from datetime import datetime
from pathlib import Path

from tankline.model import Arrival, Pickup

ROOT = Path(__file__).resolve().parent.parent


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def when(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M")


def pickups(path: Path = ROOT / "data/pickups.csv") -> list[Pickup]:
    return [
        Pickup(
            **{
                **row,
                "at": when(row["at"]),
                "registered_at": when(row["registered_at"]),
                "compartment": int(row["compartment"]),
                "litres": int(row["litres"]),
                "temp_c": float(row["temp_c"]),
            }
        )
        for row in rows(path)
    ]


def arrivals(path: Path = ROOT / "data/arrivals.csv") -> list[Arrival]:
    return [Arrival(**{**row, "at": when(row["at"])}) for row in rows(path)]


def label_widths(path: Path = ROOT / "data/racks.csv") -> dict[str, int]:
    """Rack to number of digits printed on its bottles."""
    return {row["rack"]: int(row["label_width"]) for row in rows(path)}
