"""Takes over what benches deliver."""

from pathlib import Path

from gaugeyard.common import DataError, find_instrument, get_instrument, load_rows, parse_date, to_decimal, warn


def orders(path):
    """Return the work orders of a file: (instrument, day, price); unknown instruments are left out."""
    found = []
    for number, row in enumerate(load_rows(path), 2):
        instrument = find_instrument(row["serial"])
        if instrument is None:
            warn("%s:%s: %s is not in the register", Path(path).name, number, row["serial"])
            continue
        day = parse_date(row["day"])
        if day is None:
            raise DataError(Path(path).name, number, f"no day: {row['day']}")
        found.append((instrument, day, to_decimal(row["price"])))
    return found


def bench(path):
    """Return the instruments of a delivery of a bench; LookupFailed for an unknown one.

    Benches print serial numbers with zeros in front or without.
    """
    return [get_instrument(row["serial"]) for row in load_rows(path)]
