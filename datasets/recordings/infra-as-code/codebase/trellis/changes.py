"""The change calendar (calendar/changes.csv): when an environment may be changed."""

import csv

from trellis import TrellisError
from trellis.settings import Settings


def rows(settings: Settings) -> list[dict[str, str]]:
    """Return the calendar."""
    with settings.path("calendar", "changes.csv").open() as file:
        return list(csv.DictReader(file))


def require_window(settings: Settings, env: str, at: str | None) -> str:
    """Return the number of the window that a time lies in.

    Raises:
        TrellisError: There is no approved window at that time, or a freeze is on.
    """
    if at is None:
        raise TrellisError(f"{env} is only changed in a window: give --at")
    for row in rows(settings):
        if row["kind"] == "freeze" and row["env"] in ("*", env) and row["from"] <= at < row["to"]:
            raise TrellisError(f"E-FREEZE {env}: {row['id']} from {row['from']} to {row['to']} ({row['what']})")
    for row in rows(settings):
        if row["kind"] == "window" and row["env"] == env and row["status"] == "approved" and row["from"] <= at < row["to"]:
            return row["id"]
    raise TrellisError(f"E-WINDOW {env}: no approved window at {at}")
