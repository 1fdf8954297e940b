"""Hygrometers in the chamber. Halves go up: the chamber is read at the lower mark."""

from decimal import Decimal

from gaugeyard import common, plugins
from gaugeyard.budget import combine


def run(instrument, readings, rounding=None):
    """Return the lines of a certificate, in per cent of relative humidity."""
    rounding = rounding or plugins.rounding("humidity")
    lines = []
    for reading in readings:
        ok, message = common.check_reading(reading)
        if not ok:
            raise common.CalError(f"{instrument.serial}: {message}")
        u = combine(common.stdev_mean(reading.values), Decimal("0.1"), "HC-2")
        deviation = rounding(reading.deviation, instrument.places)
        wide = common.round_up_sig(common.expand(u))
        lines.append((reading.nominal, deviation, wide, common.within(deviation, instrument.limit)))
    return lines
