"""Drift of instruments, and shorter intervals because of it."""

from decimal import Decimal

from gaugeyard import history
from gaugeyard.common import CalibrationError, round_value


def per_year(entries):
    """Slope of a straight line through the first and the last entry, None for less than two."""
    if len(entries) < 2:
        return None
    (first, low), (last, high) = entries[0], entries[-1]
    days = (last - first).days
    if not days:
        raise CalibrationError("two entries on one day", "C41")
    return round_value((high - low) / Decimal(days) * 365, 4)


def months(instrument):
    """Interval that an instrument should have: halved if it drifts by more than half the limit."""
    slope = per_year(history.of(instrument.serial))
    if slope is not None and abs(slope) * 2 > instrument.limit:
        return max(instrument.months // 2, 3)
    return instrument.months
