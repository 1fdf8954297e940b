"""Which night something belongs to. A night runs from noon to noon and has its evening's date."""

from datetime import date, datetime, timedelta


def night_of(moment: datetime) -> date:
    """Return the night of a local time."""
    return moment.date() if moment.hour >= 12 else moment.date() - timedelta(days=1)


def night_of_check(day: date, shift: str) -> date:
    """Return the night of a bucket round."""
    if shift not in ("E", "M"):
        raise ValueError(f"shift {shift!r}, expected E or M")
    return day


def night_of_walk(day: date) -> date:
    """Return the night before a casualty walk."""
    return day - timedelta(days=1)


def nights(first: str, last: str) -> list[date]:
    """Return all nights from first to last, both included."""
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    return [start + timedelta(days=i) for i in range((end - start).days + 1)]
