"""Which meter hangs where."""

import csv
from dataclasses import dataclass

from sluicework.files import Files


@dataclass(frozen=True)
class Meter:
    meter: str
    site: str
    installed: str
    removed: str
    factor: int

    def matches(self, meter: str, at: str) -> bool:
        """Whether this is the meter of that number at a local time."""
        return self.meter == meter and self.installed <= at and (not self.removed or at < self.removed)


class Registry:
    """The meters; a number is used again when a meter is exchanged."""

    def __init__(self, files: Files) -> None:
        rows = csv.DictReader(files.read("data/meters.csv").splitlines())
        self.meters = [
            Meter(row["meter"], row["site"], row["installed"], row["removed"], int(row["factor"])) for row in rows
        ]

    def find(self, meter: str, at: str) -> Meter | None:
        """Return the meter that had a number at a local time."""
        for candidate in self.meters:
            if candidate.matches(meter, at):
                return candidate
        return None
