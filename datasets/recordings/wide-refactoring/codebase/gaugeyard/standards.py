"""Reference standards and whether they may be used."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from gaugeyard.common import DATA, CalError, days_left, dec, next_due, parse_day, read_rows


@dataclass
class Standard:
    """A reference standard; `u` is its standard uncertainty."""

    name: str
    u: Decimal
    last: date
    months: int

    @property
    def due(self):
        return next_due(self.last, self.months)


def load(path=None):
    """Return the standards by name."""
    found = {}
    for row in read_rows(path or DATA / "standards.csv"):
        found[row["name"]] = Standard(row["name"], dec(row["u"]), parse_day(row["last"]), int(row["months"]))
    return found


def find(name):
    """Return a standard or None."""
    return load().get(name)


def usable(name):
    """Return a standard that is not overdue; CalError otherwise."""
    standard = find(name)
    if standard is None:
        raise CalError(f"no reference standard {name}")
    if days_left(standard.due) < 0:
        raise CalError(f"{name} is overdue since {standard.due}")
    return standard
