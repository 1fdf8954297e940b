"""Days and seconds. `..._on` is an ISO date, `..._at` integer epoch seconds in UTC."""

from datetime import UTC, date, datetime, time


def day(text: str) -> date:
    """Return the date of an ISO text."""
    return date.fromisoformat(text)


def start_of(when: date) -> int:
    """Return the first second of a day."""
    return int(datetime.combine(when, time(), UTC).timestamp())


def day_of(seconds: int) -> date:
    """Return the day in which a second lies."""
    return datetime.fromtimestamp(seconds, UTC).date()


def months_after(when: date, months: int) -> date:
    """Return the day so many months later; the last of the month if it has no such day."""
    total = when.year * 12 + when.month - 1 + months
    year, month = divmod(total, 12)
    for last in (when.day, 30, 29, 28):
        if last <= when.day:
            try:
                return date(year, month + 1, last)
            except ValueError:
                continue
    raise AssertionError
