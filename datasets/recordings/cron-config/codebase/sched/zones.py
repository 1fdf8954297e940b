"""Offsets from UTC. The runner image has no tz database, so the European rule is spelled out."""

from datetime import UTC, datetime, timedelta

WINTER_MINUTES = {"Europe/Lisbon": 0, "Europe/Vienna": 60, "Europe/Helsinki": 120}


def _last_sunday(year: int, month: int) -> datetime:
    day = datetime(year, month, 31, 1, tzinfo=UTC)  # March and October have 31 days
    return day - timedelta(days=(day.weekday() + 1) % 7)


def offset_minutes(zone: str, moment: datetime) -> int:
    """Minutes to ADD to UTC to get local time of ``zone`` at ``moment`` (aware, UTC)."""
    if zone == "UTC":
        return 0
    summer = _last_sunday(moment.year, 3) <= moment < _last_sunday(moment.year, 10)
    return WINTER_MINUTES[zone] + (60 if summer else 0)


def to_local(zone: str, moment: datetime) -> datetime:
    return moment.replace(tzinfo=None) + timedelta(minutes=offset_minutes(zone, moment))


def to_utc(zone: str, local: datetime) -> datetime:
    """UTC of a wall-clock time; a time skipped in spring is taken as if it were not."""
    guess = local.replace(tzinfo=UTC) - timedelta(minutes=WINTER_MINUTES.get(zone, 0))
    for _ in range(2):
        guess = local.replace(tzinfo=UTC) - timedelta(minutes=offset_minutes(zone, guess))
    return guess
