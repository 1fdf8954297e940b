"""When a job runs."""

import os
from datetime import UTC, datetime, timedelta

from sched import zones
from sched.model import DAYS, Job


def now() -> datetime:
    return datetime.fromisoformat(os.environ["RECORDING_NOW"]).astimezone(UTC)


def runs(job: Job, after: datetime, weeks: int) -> list[datetime]:
    """Starts of ``job`` in UTC, later than ``after`` and within ``weeks`` weeks of it."""
    hour, minute = map(int, job.at.split(":"))
    midnight = zones.to_local(job.tz, after).replace(hour=0, minute=0, second=0)
    found = []
    for ahead in range(weeks * 7 + 1):
        day = midnight + timedelta(days=ahead)
        if DAYS[day.weekday()] not in job.days:
            continue
        start = zones.to_utc(job.tz, day.replace(hour=hour, minute=minute))
        if after < start <= after + timedelta(weeks=weeks):
            found.append(start)
    return found
