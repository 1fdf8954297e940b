"""Instruments that customers borrow while theirs are with us."""

from gaugeyard.common import DATA, NotDue, dec, find_instrument, in_tolerance, load_rows, norm_serial, parse_date, within


def _rows():
    return load_rows(DATA / "loans.csv")


def out():
    """Return the serial numbers that are with customers."""
    return sorted(norm_serial(row["serial"]) for row in _rows() if not row["back"])


def can_lend(serial):
    """Return (True, "") or (False, why not)."""
    instrument = find_instrument(serial)
    if instrument is None:
        return False, f"{serial} is not in the register"
    if instrument.serial in out():
        return False, f"{serial} is with a customer"
    return True, ""


def take_back(serial, deviation):
    """Return whether an instrument may be lent again after its check; NotDue if it was not lent.

    The limit itself is good enough for pressure (contracts), not for anything else.
    """
    if norm_serial(serial) not in out():
        raise NotDue(serial)
    instrument = find_instrument(serial)
    rule = within if instrument.kind == "pressure" else in_tolerance
    return rule(deviation, instrument.limit)


def days(serial):
    """Return the days that an instrument was away in all, None for a day that cannot be read."""
    total = dec(0)
    for row in _rows():
        if norm_serial(row["serial"]) != norm_serial(serial) or not row["back"]:
            continue
        first, last = parse_date(row["out"]), parse_date(row["back"])
        if first is None or last is None:
            return None
        total += (last - first).days
    return int(total)
