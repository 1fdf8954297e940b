"""Casualties on the road."""

from datetime import date

from toadline.night import night_of_walk


def by_night(rows, section: str, species=("BB", "RT")):
    """Return {night: casualties found} of a section."""
    found: dict[date, int] = {}
    for row in rows:
        if row["section"] == section and row["species"] in species:
            night = night_of_walk(date.fromisoformat(row["walk_date"]))
            found[night] = found.get(night, 0) + int(row["count"])
    return found


def estimated(found: float, detection: float) -> float:
    """Return the casualties that there were, from those found."""
    if not 0 < detection <= 1:
        raise ValueError(f"detection {detection}, expected above 0 and at most 1")
    return found / detection
