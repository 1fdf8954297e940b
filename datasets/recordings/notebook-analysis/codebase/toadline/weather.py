"""The station at the pond."""

from datetime import datetime

from toadline.night import night_of

HOUR = 21


def parse(row):
    """Return (time, temperature or None, rain) of a row."""
    temp = float(row["temp"]) if row["temp"] else None
    return datetime.fromisoformat(row["ts"]), temp, float(row["rain"])


def by_night(readings):
    """Return {night: (temperature at 21:00 or None, rain of the night)}."""
    temps = {}
    rain = {}
    for at, temp, mm in readings:
        night = night_of(at)
        rain[night] = rain.get(night, 0.0) + mm
        if at.hour == HOUR:
            temps[night] = temp
    return {night: (temps.get(night), round(rain[night], 1)) for night in sorted(rain)}
