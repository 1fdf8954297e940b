"""Balances with class E2 weights. The limit itself is outside (legal verification)."""

from decimal import Decimal

from gaugeyard import plugins
from gaugeyard.budget import combine
from gaugeyard.common import CalibrationError, check_reading, expand, in_tolerance, round_up_sig, stdev


def run(instrument, readings, rounding=None):
    """Return the lines of a certificate, in grams."""
    rounding = rounding or plugins.rounding("mass")
    lines = []
    for reading in readings:
        ok, message = check_reading(reading)
        if not ok:
            raise CalibrationError(f"{instrument.serial}: {message}", "C21")
        if reading.nominal <= 0:
            raise CalibrationError(f"{instrument.serial}: load of {reading.nominal} g", "C22")
        u = combine(stdev(reading.values), Decimal("0.0001"), "E2-SET")
        deviation = rounding(reading.deviation, instrument.places)
        lines.append((reading.nominal, deviation, round_up_sig(expand(u)), in_tolerance(deviation, instrument.limit)))
    return lines
