"""Certificates."""

from dataclasses import dataclass

from gaugeyard import plugins, templates
from gaugeyard.common import (
    CalibrationError,
    cert_number,
    clean_serial,
    fmt_value,
    read_readings,
    today,
)

KINDS = {"pressure": "bar", "temperature": "C", "mass": "g", "torque": "%", "caliper": "mm", "humidity": "%rh"}


@dataclass
class Certificate:
    """A certificate that was issued."""

    number: str
    serial: str
    lines: list
    passed: bool
    text: str


def issue(instrument, readings, number, day=None):
    """Return the certificate of an instrument."""
    if instrument.kind not in KINDS:
        raise CalibrationError(f"no certificates for {instrument.kind}", "C51")
    lines = plugins.procedure(instrument.kind)(instrument, readings)
    passed = all(line[3] for line in lines)
    name = cert_number(instrument.kind, number, day)
    text = templates.render(name, clean_serial(instrument.serial), instrument, lines, day or today())
    return Certificate(name, instrument.serial, lines, passed, text)


def issue_file(instrument, path, number, day=None):
    """Return the certificate of an instrument for a file of readings."""
    return issue(instrument, read_readings(path), number, day)


def line_text(line, unit):
    """Text of one line of a certificate."""
    nominal, deviation, u, inside = line
    return (
        f"{fmt_value(nominal):>10} {fmt_value(deviation, unit):>16} {fmt_value(u, unit):>14}"
        f"  {'pass' if inside else 'FAIL'}"
    )
