"""Calipers with gauge blocks. Five readings or none."""

from decimal import Decimal

from gaugeyard import plugins
from gaugeyard.budget import combine
from gaugeyard.common import check_reading, expand, round_u, stdev_mean, within


def run(instrument, readings, rounding=None):
    """Return the lines of a certificate, in millimetres; ValueError for too few readings."""
    rounding = rounding or plugins.rounding("caliper")
    lines = []
    for reading in readings:
        ok, message = check_reading(reading)
        if not ok or len(reading.values) != 5:
            raise ValueError(f"{instrument.serial}: {message or 'five values are needed'}")
        u = combine(stdev_mean(reading.values), Decimal("0.01"), "GB-87")
        deviation = rounding(reading.deviation, instrument.places)
        lines.append((reading.nominal, deviation, round_u(expand(u)), within(deviation, instrument.limit)))
    return lines
