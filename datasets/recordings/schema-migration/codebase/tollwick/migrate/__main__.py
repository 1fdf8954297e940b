"""``python -m tollwick.migrate --db PATH status|up|down``."""

import argparse
import sys

from tollwick.db import connect
from tollwick.migrate import runner

parser = argparse.ArgumentParser(prog="tollwick.migrate")
parser.add_argument("--db", required=True)
parser.add_argument("--to", type=int, help="last version to apply")
parser.add_argument("action", choices=["status", "up", "down"])
options = parser.parse_args()
connection = connect(options.db)
try:
    if options.action == "up":
        print("\n".join(f"applied {name}" for name in runner.up(connection, to=options.to)) or "nothing to do")
    elif options.action == "down":
        print("took back", runner.down(connection))
    else:
        have = runner.applied(connection)
        for migration in runner.migrations():
            state = "applied" if migration.version in have else "pending"
            print(f"{migration.version:04d} {migration.name:28} {state:8} {migration.checksum}")
except runner.MigrationError as error:
    sys.exit(f"error: {error}")
