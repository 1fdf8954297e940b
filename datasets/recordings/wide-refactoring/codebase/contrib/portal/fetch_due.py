"""Customer portal: answers "when is my instrument due?". Owner: @portal-team, release train of their own."""

import sys
from datetime import date

from gaugeyard.common import due_date, get_instrument, norm_serial, parse_date


def answer(serial):
    try:
        instrument = get_instrument(serial)
    except KeyError:
        return f"{norm_serial(serial)}: unknown"
    return f"{norm_serial(serial)}: {due_date(instrument.last, instrument.months)}"


def convert(value, unit):
    from gaugeyard.common import to_kpa

    try:
        return str(to_kpa(value, unit))
    except ValueError as error:
        return f"refused {error.code}"


if __name__ == "__main__":
    for serial in sys.argv[1:]:
        print(answer(serial))
    print(convert("2.5", "bar"), convert("2.5", "psi"))
    print(parse_date("31.03.2026") > date(2026, 3, 1))
