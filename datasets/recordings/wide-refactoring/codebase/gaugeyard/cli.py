"""Command line: `python -m gaugeyard COMMAND`."""

import argparse
import logging
import sys
from pathlib import Path

from gaugeyard import audit, certificates, common, exporter, labels, orders, reminders, settings
from gaugeyard.common import CalError, CalibrationError, DataError, fail, lookup_instrument, parse_day

log = logging.getLogger(__name__)


def _parser():
    parser = argparse.ArgumentParser(prog="gaugeyard")
    parser.add_argument("--site", default="lab")
    parser.add_argument("--day", type=parse_day)
    commands = parser.add_subparsers(dest="command", required=True)
    cert = commands.add_parser("cert")
    cert.add_argument("serial")
    cert.add_argument("readings", type=Path)
    cert.add_argument("--number", type=int, default=1)
    commands.add_parser("reminders")
    due = commands.add_parser("due")
    due.add_argument("until", type=parse_day)
    sticker = commands.add_parser("label")
    sticker.add_argument("serial")
    order = commands.add_parser("orders")
    order.add_argument("path", type=Path)
    log_counts = commands.add_parser("audit")
    log_counts.add_argument("path", type=Path)
    return parser


def main(arguments=None):
    """Run a command; the exit codes are in docs/errors.md."""
    options = _parser().parse_args(arguments)
    common.TODAY = options.day
    try:
        site = settings.lab(options.site).get("lab", "site")
        if not common.set_site(site):
            fail(f"not a site: {site}")
        return _run(options)
    except DataError as error:
        print(f"gaugeyard: {error}", file=sys.stderr)
        return 5
    except CalibrationError as error:
        print(f"gaugeyard: {error.code} {error}", file=sys.stderr)
        return 4
    except CalError as error:
        print(f"gaugeyard: {error}", file=sys.stderr)
        return 1


def _run(options):
    if options.command == "cert":
        instrument = lookup_instrument(options.serial)
        done = certificates.issue_file(instrument, options.readings, options.number, options.day)
        print(done.text, end="")
        return 0 if done.passed else 6
    if options.command == "reminders":
        print("\n".join(reminders.lines()))
    elif options.command == "due":
        print(exporter.due_list(options.until), end="")
    elif options.command == "label":
        print(labels.label(lookup_instrument(options.serial), common.today()))
    elif options.command == "orders":
        net, tax, whole = orders.total(options.path)
        print(f"net {net} tax {tax} sum {whole}")
    elif options.command == "audit":
        for sort, number in sorted(audit.counts(options.path).items()):
            print(f"{sort} {number}")
    return 0
