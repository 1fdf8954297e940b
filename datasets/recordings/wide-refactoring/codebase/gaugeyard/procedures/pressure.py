"""Gauges against the dead-weight tester. Limits include the limit itself (customer contracts)."""

from decimal import Decimal

from gaugeyard import plugins
from gaugeyard.budget import combine
from gaugeyard.common import CalibrationError, check_reading, expand, round_u, stdev_mean, to_kpa, within

RESOLUTION = {"bar": "0.001", "kPa": "0.1", "mbar": "0.5", "MPa": "0.0001"}


def run(instrument, readings, rounding=None):
    """Return the lines of a certificate, in the unit of the readings."""
    rounding = rounding or plugins.rounding("pressure")
    lines = []
    for reading in readings:
        ok, message = check_reading(reading)
        if not ok:
            raise CalibrationError(f"{instrument.serial}: {message}", "C21")
        to_kpa(reading.nominal, reading.unit)
        u = combine(stdev_mean(reading.values), Decimal(RESOLUTION[reading.unit]), "DWT-1")
        deviation = rounding(reading.deviation, instrument.places)
        lines.append((reading.nominal, deviation, round_u(expand(u)), within(deviation, instrument.limit)))
    return lines
