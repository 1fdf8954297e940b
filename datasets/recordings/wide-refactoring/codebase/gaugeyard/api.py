"""What others may use. See docs/public-api.md."""

from gaugeyard.archive import dump, load
from gaugeyard.certificates import Certificate, issue, issue_file
from gaugeyard.common import (
    CalError,
    CalibrationError,
    Instrument,
    LookupFailed,
    Reading,
    due_date,
    find_instrument,
    get_instrument,
    norm_serial,
    read_readings,
    set_site,
)
from gaugeyard.exporter import due_list

__all__ = [
    "CalError",
    "CalibrationError",
    "Certificate",
    "Instrument",
    "LookupFailed",
    "Reading",
    "due_date",
    "due_list",
    "dump",
    "find_instrument",
    "get_instrument",
    "issue",
    "issue_file",
    "load",
    "norm_serial",
    "read_readings",
    "set_site",
]
