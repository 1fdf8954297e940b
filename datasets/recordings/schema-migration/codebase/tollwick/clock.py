"""Time: the service works with epoch seconds, kiosks with text in their own zone."""

import calendar
import os
import time
from datetime import datetime

SUMMER_ENDS = 1761440400  # 2025-10-26 01:00:00 UTC, 03:00 local becomes 02:00


def now() -> int:
    """Return the present in epoch seconds."""
    fixed = os.environ.get("RECORDING_NOW")
    return int(datetime.fromisoformat(fixed).timestamp()) if fixed else int(time.time())


def parse(text: str) -> int:
    """Return the epoch seconds of ``YYYY-MM-DD HH:MM:SS``, taken as UTC."""
    return calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M:%S"))


def show(at: int) -> str:
    """Return epoch seconds as ``YYYY-MM-DD HH:MM:SS`` in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))


def local_offset(at: int) -> int:
    """Return how many seconds local time is ahead of UTC at the epoch second ``at``."""
    return 7200 if at < SUMMER_ENDS else 3600


def from_local(text: str) -> int:
    """Return the epoch seconds of a local time."""
    naive = parse(text)
    return naive - local_offset(naive - 7200)


def local_day(at: int) -> str:
    """Return the local day of an epoch second as ``YYYY-MM-DD``."""
    return show(at + local_offset(at))[:10]
