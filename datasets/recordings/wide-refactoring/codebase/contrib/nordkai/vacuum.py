"""Vacuum gauges of Nordkai, in place of the pressure procedure (config/procedures-nordkai.json)."""

from gaugeyard import plugins
from gaugeyard.common import check_reading, expand, fail, round_up_sig, stdev_mean, to_kpa_abs, within


def run(instrument, readings, rounding=None):
    rounding = rounding or plugins.rounding("pressure")
    lines = []
    for reading in readings:
        ok, message = check_reading(reading)
        if not ok:
            fail(f"{instrument.serial}: {message}", 4)
        nominal = to_kpa_abs(reading.nominal, reading.unit)
        deviation = rounding(reading.deviation, instrument.places)
        u = round_up_sig(expand(stdev_mean(reading.values)))
        lines.append((nominal, deviation, u, within(deviation, instrument.limit)))
    return lines
