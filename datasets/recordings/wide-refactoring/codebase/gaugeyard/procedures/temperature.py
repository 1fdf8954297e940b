"""Thermometers in the bath. Few readings, so k comes from Student's t."""

from decimal import Decimal

from gaugeyard import plugins
from gaugeyard.budget import combine
from gaugeyard.common import (
    CalError,
    check_reading,
    expand_t,
    round_up_sig,
    stdev_mean,
    to_celsius,
    within_guarded,
)


def run(instrument, readings, rounding=None):
    """Return the lines of a certificate, in degrees Celsius."""
    rounding = rounding or plugins.rounding("temperature")
    lines = []
    for reading in readings:
        ok, message = check_reading(reading)
        if not ok:
            raise CalError(f"{instrument.serial}: {message}")
        nominal = to_celsius(reading.nominal, reading.unit)
        u = combine(stdev_mean(reading.values), Decimal("0.01"), "PT25-3")
        wide = round_up_sig(expand_t(u, len(reading.values) - 1))
        deviation = rounding(reading.deviation, instrument.places)
        lines.append((nominal, deviation, wide, within_guarded(deviation, instrument.limit, wide)))
    return lines
