"""Torque wrenches; the deviation is in per cent of the nominal value."""

from gaugeyard import plugins
from gaugeyard.budget import combine
from gaugeyard.common import check_reading, dec, expand, fail, round_u, stdev_mean, within


def run(instrument, readings, rounding=None):
    """Return the lines of a certificate, deviations and U in per cent."""
    rounding = rounding or plugins.rounding("torque")
    lines = []
    for reading in readings:
        ok, message = check_reading(reading)
        if not ok:
            fail(f"{instrument.serial}: {message}", 4)
        u = combine(stdev_mean(reading.values), dec("0.05"), "TQ-REF")
        share = reading.deviation / reading.nominal * 100
        deviation = rounding(share, instrument.places)
        wide = round_u(expand(u) / reading.nominal * 100)
        lines.append((reading.nominal, deviation, wide, within(deviation, instrument.limit)))
    return lines
