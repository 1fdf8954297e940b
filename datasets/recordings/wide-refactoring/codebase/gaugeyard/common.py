"""Things that are needed everywhere.

Started in 2017 as a place for three functions. Everybody imports it, see docs/public-api.md and
docs/outside-callers.md for who does so from outside.
"""

import csv
import datetime
import decimal
import logging
import math
import re
import sys
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"

# ---------------------------------------------------------------------------------------------
# who and when

SITE = "HQ"
"""Prefix of certificate numbers. Benches set their own (`common.SITE = "NK"`)."""

TODAY = None
"""If set, what `today` returns (tests, reruns of a night)."""


def today():
    """Return the day to work with."""
    if TODAY is not None:
        return TODAY
    return datetime.date.today()


def site():
    return SITE


def set_site(name):
    """Set the site for the whole process."""
    global SITE
    if not re.fullmatch(r"[A-Z]{2}", name):
        return False
    SITE = name
    return True


# ---------------------------------------------------------------------------------------------
# errors, as they came


class CalError(Exception):
    """Something is wrong with a calibration. From 2017."""


class CalibrationError(ValueError):
    """Something is wrong with a calibration, with a code. From 2020."""

    def __init__(self, message, code="C00"):
        super().__init__(message)
        self.code = code


class DataError(CalError):
    """A file cannot be read."""

    def __init__(self, path, line, message):
        super().__init__(f"{path}:{line}: {message}")
        self.path = path
        self.line = line


class LookupFailed(KeyError):
    """Something is not in the register."""


class NotDue(Exception):
    """An instrument is not due yet; not an error for the reminders."""


def fail(message, status=2):
    """Say what is wrong and end the process."""
    print(f"gaugeyard: {message}", file=sys.stderr)
    sys.exit(status)


def warn(message, *arguments):
    """Write a warning into the log of the night."""
    log.warning(message, *arguments)


# ---------------------------------------------------------------------------------------------
# numbers


def dec(value):
    """Return a Decimal, of text with a comma as well."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, float):
        return Decimal(repr(value))
    return Decimal(str(value).strip().replace(",", "."))


def to_decimal(value):
    """Return a Decimal of text with a point; a comma separates thousands."""
    if isinstance(value, Decimal):
        return value
    return Decimal(str(value).strip().replace(",", ""))


def round_half_up(value, places):
    """Round a value to so many places; halves go away from zero."""
    return dec(value).quantize(Decimal(1).scaleb(-places), rounding=decimal.ROUND_HALF_UP)


def round_half_even(value, places):
    """Round a value to so many places; halves go to the even digit."""
    return dec(value).quantize(Decimal(1).scaleb(-places), rounding=decimal.ROUND_HALF_EVEN)


def round_value(value, places):
    """Round a value to so many places; halves go up (towards plus infinity)."""
    step = Decimal(1).scaleb(-places)
    return ((dec(value) / step + Decimal("0.5")).to_integral_value(decimal.ROUND_FLOOR) * step).quantize(step)


def _exponent(value, digits):
    return dec(value).adjusted() - digits + 1


def round_u(value, digits=2):
    """Round an uncertainty to two digits; up, unless that adds nothing beyond 5 %.

    See docs/adr/0007-rounding-of-uncertainty.md.
    """
    value = dec(value)
    if not value:
        return value
    step = Decimal(1).scaleb(_exponent(value, digits))
    down = (value / step).to_integral_value(decimal.ROUND_FLOOR) * step
    if down and (value - down) / down <= Decimal("0.05") and value - down < step / 2:
        return down.quantize(step)
    return ((value / step).to_integral_value(decimal.ROUND_CEILING) * step).quantize(step)


def round_up_sig(value, digits=2):
    """Round an uncertainty to two digits; up, always."""
    value = dec(value)
    if not value:
        return value
    step = Decimal(1).scaleb(_exponent(value, digits))
    return ((value / step).to_integral_value(decimal.ROUND_CEILING) * step).quantize(step)


def fmt_value(value, unit=""):
    """Text of a value for a certificate: point, zeros at the end are kept."""
    text = f"{dec(value):f}"
    return f"{text} {unit}".rstrip()


def fmt_val(value, unit=""):
    """Text of a value for a label: comma, zeros at the end are dropped."""
    text = f"{dec(value):f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text.replace('.', ',')} {unit}".rstrip()


def mean(values):
    values = [dec(value) for value in values]
    return sum(values) / len(values)


def stdev(values):
    """Standard deviation of a sample (n - 1)."""
    values = [dec(value) for value in values]
    middle = mean(values)
    return (sum((value - middle) ** 2 for value in values) / (len(values) - 1)).sqrt()


def stdev_mean(values):
    """Standard deviation of the mean (divided by the root of n)."""
    return stdev(values) / Decimal(len(values)).sqrt()


def root_sum(values):
    """Root of the sum of squares."""
    return sum((dec(value) ** 2 for value in values), Decimal(0)).sqrt()


def expand(u):
    """Expanded uncertainty, k = 2."""
    return dec(u) * 2


def expand_t(u, degrees):
    """Expanded uncertainty, k from Student's t for so many degrees of freedom."""
    table = {1: "13.97", 2: "4.53", 3: "3.31", 4: "2.87", 5: "2.65", 6: "2.52", 7: "2.43", 8: "2.37"}
    return dec(u) * Decimal(table.get(degrees, "2"))


# ---------------------------------------------------------------------------------------------
# units

KPA_PER_BAR = Decimal(100)
AMBIENT_KPA = Decimal("101.325")


def to_kpa(value, unit):
    """Gauge pressure in kPa."""
    factor = {"kPa": Decimal(1), "bar": KPA_PER_BAR, "mbar": Decimal("0.1"), "MPa": Decimal(1000)}
    if unit not in factor:
        raise CalibrationError(f"no pressure unit: {unit}", "C11")
    return dec(value) * factor[unit]


def to_kpa_abs(value, unit):
    """Absolute pressure in kPa of a gauge pressure."""
    return to_kpa(value, unit) + AMBIENT_KPA


def to_celsius(value, unit):
    if unit == "C":
        return dec(value)
    if unit == "K":
        return dec(value) - Decimal("273.15")
    if unit == "F":
        return (dec(value) - 32) * 5 / 9
    raise CalibrationError(f"no temperature unit: {unit}", "C12")


# ---------------------------------------------------------------------------------------------
# days

DAY_FORMAT = "%Y-%m-%d"


def parse_day(text):
    """Return the day of `2026-03-02`; ValueError for anything else."""
    return datetime.datetime.strptime(text.strip(), DAY_FORMAT).date()


def parse_date(text):
    """Return the day of `2026-03-02` or `02.03.2026`, None for anything else."""
    for pattern in (DAY_FORMAT, "%d.%m.%Y"):
        try:
            return datetime.datetime.strptime(text.strip(), pattern).date()
        except ValueError:
            continue
    return None


def _month_end(year, month):
    following = datetime.date(year + month // 12, month % 12 + 1, 1)
    return following - datetime.timedelta(days=1)


def due_date(last, months):
    """The same day so many months later, or the last of that month if it has no such day."""
    index = last.year * 12 + last.month - 1 + months
    end = _month_end(index // 12, index % 12 + 1)
    return end.replace(day=min(last.day, end.day))


def next_due(last, months):
    """The last day of the month that is so many months later."""
    index = last.year * 12 + last.month - 1 + months
    return _month_end(index // 12, index % 12 + 1)


def due_day(last, months):
    """So many times 30 days later. For contracts (finance)."""
    return last + datetime.timedelta(days=30 * months)


def days_left(due):
    """Days until a day; negative once it has passed."""
    return (due - today()).days


# ---------------------------------------------------------------------------------------------
# serial numbers


def norm_serial(text):
    """A serial number as it is kept: capitals, without blanks and dashes."""
    return re.sub(r"[\s-]", "", text).upper()


def norm_serial_key(text):
    """A serial number to compare with: as `norm_serial`, and without zeros in front."""
    return norm_serial(text).lstrip("0")


def clean_serial(text):
    """A serial number to print: blanks at the ends removed, the rest as the maker writes it."""
    return text.strip()


def cert_number(kind, number, day=None):
    """Number of a certificate, `HQ-P-2026-00042`."""
    return f"{SITE}-{kind[0].upper()}-{(day or today()).year}-{number:05d}"


# ---------------------------------------------------------------------------------------------
# tolerance


def within(deviation, limit):
    """Whether a deviation is inside of a limit, the limit itself included."""
    return abs(dec(deviation)) <= dec(limit)


def in_tolerance(deviation, limit):
    """Whether a deviation is inside of a limit, the limit itself not included."""
    return abs(dec(deviation)) < dec(limit)


def within_guarded(deviation, limit, u):
    """Whether a deviation with its uncertainty is inside of a limit."""
    return abs(dec(deviation)) + dec(u) <= dec(limit)


def check_reading(reading):
    """Return (True, "") or (False, what is wrong)."""
    if reading.nominal is None:
        return False, "no nominal value"
    if not reading.values:
        return False, "no values"
    if len(reading.values) < 3:
        return False, f"{len(reading.values)} values, at least 3 are needed"
    return True, ""


# ---------------------------------------------------------------------------------------------
# readings


@dataclass
class Reading:
    """What was read at one point: a nominal value and several values."""

    nominal: Decimal
    values: list = field(default_factory=list)
    unit: str = ""
    reference: Decimal = None

    @property
    def deviation(self):
        return mean(self.values) - (self.reference if self.reference is not None else self.nominal)


@dataclass
class Instrument:
    """An instrument of a customer."""

    serial: str
    kind: str
    customer: str
    months: int
    limit: Decimal
    last: datetime.date
    places: int = 2


# ---------------------------------------------------------------------------------------------
# files


def load_rows(path):
    """Rows of a CSV file as dictionaries, all of them."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_rows(path):
    """Rows of a CSV file as dictionaries; lines that begin with # are left out, values stripped."""
    with open(path, newline="", encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    return [{key: value.strip() for key, value in row.items()} for row in csv.DictReader(lines)]


def read_readings(path):
    """Readings of a bench; DataError with the line for what cannot be read."""
    readings = []
    for number, row in enumerate(read_rows(path), 2):
        try:
            values = [dec(row[key]) for key in ("v1", "v2", "v3", "v4", "v5") if row.get(key)]
            reference = dec(row["reference"]) if row.get("reference") else None
            readings.append(Reading(dec(row["nominal"]), values, row.get("unit", ""), reference))
        except (decimal.InvalidOperation, KeyError) as error:
            raise DataError(Path(path).name, number, f"not a reading ({type(error).__name__})") from error
    return readings


# ---------------------------------------------------------------------------------------------
# the register (here, because everybody looks something up)


def find_instrument(serial):
    """Return an instrument or None."""
    from gaugeyard import registry

    return registry.load().get(norm_serial(serial))


def get_instrument(serial):
    """Return an instrument; LookupFailed if there is none."""
    from gaugeyard import registry

    wanted = norm_serial_key(serial)
    for key, instrument in registry.load().items():
        if norm_serial_key(key) == wanted:
            return instrument
    raise LookupFailed(serial)


def lookup_instrument(serial):
    """Return an instrument, or end the process with 3."""
    found = find_instrument(serial)
    if found is None:
        fail(f"no instrument {serial}", 3)
    return found


# ---------------------------------------------------------------------------------------------
# not used any more?


def c_to_f(value):
    return dec(value) * 9 / 5 + 32


def round_cert(value, places):
    """Old name of `round_half_even`; named in the settings of sites."""
    return round_half_even(value, places)


def is_power_of_ten(value):
    return math.log10(float(value)).is_integer()


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def chunks(values, size):
    return [values[at : at + size] for at in range(0, len(values), size)]
