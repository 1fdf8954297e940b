"""Type A only; for kinds without a procedure of their own."""

from gaugeyard.common import CalibrationError, check_reading, expand, round_half_even, round_u, stdev_mean, within


def run(instrument, readings, rounding=None):
    """Return the lines of a certificate: (nominal, deviation, U, inside)."""
    lines = []
    for reading in readings:
        ok, message = check_reading(reading)
        if not ok:
            raise CalibrationError(f"{instrument.serial}: {message}", "C21")
        u = round_u(expand(stdev_mean(reading.values)))
        deviation = round_half_even(reading.deviation, instrument.places)
        lines.append((reading.nominal, deviation, u, within(deviation, instrument.limit)))
    return lines
