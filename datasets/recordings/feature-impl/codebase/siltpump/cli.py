"""Command line: `python -m siltpump COMMAND --config FILE`."""

import argparse
import sys
from datetime import datetime
from pathlib import Path

from siltpump import config as settings
from siltpump import pump, spool
from siltpump.ledger import Ledger, LedgerError


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="siltpump")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("flush", "carry out one flush"),
        ("status", "say how much is pending"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--config", type=Path, required=True)
        command.add_argument("--now", type=datetime.fromisoformat, required=True)
    options = parser.parse_args(argv)
    try:
        return _COMMANDS[options.command](options)
    except (settings.ConfigError, LedgerError) as error:
        print(f"siltpump: {error}", file=sys.stderr)
        return 2


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000


def _flush(options: argparse.Namespace) -> int:
    config = settings.load(options.config)
    flush = pump.turn(config, Ledger(config.ledger), _milliseconds(options.now))
    if flush is None:
        print("nothing pending")
    else:
        print(f"{len(flush.records)} records, {flush.size} bytes, {flush.left_behind} left")
    return 0


def _status(options: argparse.Namespace) -> int:
    config = settings.load(options.config)
    ledger = Ledger(config.ledger)
    now_ms = _milliseconds(options.now)
    waiting = spool.pending(config.spool, ledger.shipped, now_ms, config.settle_s)
    print(f"{len(waiting)} pending, {sum(record.size for record in waiting)} bytes")
    return 0


_COMMANDS = {"flush": _flush, "status": _status}
