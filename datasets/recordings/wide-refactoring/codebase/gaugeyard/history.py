"""What earlier calibrations found."""

from gaugeyard.common import DATA, dec, load_rows, norm_serial_key, parse_date


def of(serial):
    """Return [(day, deviation)] of an instrument, oldest first."""
    wanted = norm_serial_key(serial)
    rows = [row for row in load_rows(DATA / "history.csv") if norm_serial_key(row["serial"]) == wanted]
    found = [(parse_date(row["day"]), dec(row["deviation"])) for row in rows]
    return sorted(entry for entry in found if entry[0] is not None)


def trend(serial):
    """Return the drift in units per year, None if there is too little."""
    from gaugeyard import drift

    return drift.per_year(of(serial))
