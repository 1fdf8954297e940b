"""``python -m seedhold --site SITE [--today DAY] COMMAND [NUMBER]``."""

import argparse
import sys
from datetime import date

from seedhold import migrate, report, requests
from seedhold.config import load
from seedhold.db import connect
from seedhold.errors import SeedholdError
from seedhold.jobs import nightly

parser = argparse.ArgumentParser(prog="seedhold")
parser.add_argument("--site", required=True, choices=["vault", "field"])
parser.add_argument("--db", help="in place of the database of the site")
parser.add_argument("--today", type=date.fromisoformat, default=date(2026, 3, 2))
commands = parser.add_subparsers(dest="command", required=True)
for name in ("migrate", "stock", "nightly"):
    commands.add_parser(name)
for name in ("approve", "refuse", "ship"):
    commands.add_parser(name).add_argument("request", type=int)


def main() -> int:
    """Run one command."""
    options = parser.parse_args()
    settings = load(options.site)
    connection = connect(options.db or settings.db)
    if options.command == "migrate":
        print("\n".join(migrate.up(connection)) or "nothing to do")
    elif options.command == "stock":
        print("\n".join(report.lines(connection, settings)))
    elif options.command == "nightly":
        print("\n".join(nightly.run(connection, settings, options.today)) or "nothing to do")
    elif options.command == "approve":
        requests.approve(connection, options.request, settings, options.today)
    elif options.command == "refuse":
        requests.refuse(connection, options.request)
    elif options.command == "ship":
        for lot, mg in requests.ship(connection, options.request, settings, options.today):
            print(f"lot {lot}: {mg} mg")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SeedholdError as error:
        sys.exit(str(error))
