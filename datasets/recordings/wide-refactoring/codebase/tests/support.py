"""What several tests need."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from datetime import date
from decimal import Decimal
from pathlib import Path

from gaugeyard import cli
from gaugeyard.common import Instrument, Reading

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "golden"


def instrument(kind="pressure", **fields):
    given = {"serial": "PG1042", "customer": "Sallow Pharma", "months": 12, "limit": Decimal("0.25")}
    given |= {"last": date(2025, 8, 31), "places": 3} | fields
    return Instrument(kind=kind, **given)


def reading(nominal, *values, unit="bar"):
    return Reading(Decimal(nominal), [Decimal(value) for value in values], unit)


def run(*arguments):
    """Run a command; return (exit code, output, errors)."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = cli.main(list(arguments))
        except SystemExit as end:
            code = end.code
    return code, out.getvalue(), err.getvalue()


def outside(*arguments, warnings="default"):
    """Run a program of an outside caller; return (exit code, output)."""
    done = subprocess.run(
        [sys.executable, "-W", warnings, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout
