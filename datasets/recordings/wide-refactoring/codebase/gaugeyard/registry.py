"""The register of instruments."""

from gaugeyard.common import DATA, CalError, DataError, Instrument, dec, load_rows, norm_serial, parse_day


def load(path=None):
    """Return the instruments by serial number."""
    path = path or DATA / "instruments.csv"
    found = {}
    for number, row in enumerate(load_rows(path), 2):
        try:
            last = parse_day(row["last"])
        except ValueError as error:
            raise DataError(path.name, number, f"no day: {row['last']}") from error
        serial = norm_serial(row["serial"])
        if serial in found:
            raise DataError(path.name, number, f"{serial} for the second time")
        found[serial] = Instrument(
            serial, row["kind"], row["customer"], int(row["months"]), dec(row["limit"]), last, int(row["places"])
        )
    return found


def of_customer(customer):
    """Return the instruments of a customer, by serial number; CalError if there are none."""
    found = [each for each in load().values() if each.customer == customer]
    if not found:
        raise CalError(f"no instruments of {customer}")
    return sorted(found, key=lambda each: each.serial)


def kinds():
    return sorted({each.kind for each in load().values()})
