"""Replay a spool as it filled up and say how long each lane waited.

    python tools/replay.py samples/incident.ini
    python tools/replay.py samples/incident.ini --set pump.settle_s=0
    python tools/replay.py samples/incident.ini --digest
"""

import argparse
import configparser
import hashlib
import json
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from siltpump import config as settings
from siltpump import pump, spool
from siltpump.ledger import Ledger, LedgerError


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--digest", action="store_true", help="only hash ledger and sink")
    options = parser.parse_args()
    ini = configparser.ConfigParser()
    ini.read(options.config)
    ini["pump"]["spool"] = str((options.config.parent / ini["pump"]["spool"]).resolve())
    for assignment in options.set:
        where, _, value = assignment.partition("=")
        section, _, key = where.partition(".")
        if not ini.has_section(section):
            ini.add_section(section)
        ini[section][key] = value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replay.ini"
        with path.open("w") as out:
            ini.write(out)
        try:
            return replay(settings.load(path), options.digest)
        except (settings.ConfigError, LedgerError) as error:
            print(f"replay: {type(error).__name__}: {error}")
            return 2


def replay(config: settings.Config, digest: bool) -> int:
    ledger = Ledger(config.ledger)
    everything = [
        json.loads(text)
        for path in spool.segments(config.spool)
        for text in path.read_text().splitlines()
    ]
    now_ms = min(raw["t"] for raw in everything)
    waits: dict[str, list[tuple[int, str]]] = {}
    shipped = 0
    while shipped < len(everything):
        now_ms += config.interval_s * 1000
        try:
            flush = pump.turn(config, ledger, now_ms)
        except LedgerError:
            print(f"replay: stopped at flush {ledger.flushes + 1}, {shipped} shipped")
            raise
        for record in flush.records if flush else ():
            shipped += 1
            raw = json.loads(record.text)
            wait_s = (now_ms - record.ts) // 1000
            waits.setdefault(record.lane, []).append((wait_s, raw["id"]))
    if digest:
        seen = hashlib.sha256(config.ledger.read_bytes())
        for path in sorted(config.sink.iterdir()):
            seen.update(path.name.encode() + path.read_bytes())
        print(f"{ledger.flushes} flushes, digest {seen.hexdigest()[:12]}")
        return 0
    print(f"{shipped} records in {ledger.flushes} flushes")
    print(f"{'lane':<9}{'records':>8}{'median_s':>10}{'worst_s':>9}  worst id")
    for lane, found in sorted(waits.items(), key=lambda item: max(item[1])):
        worst, identifier = max(found)
        median = int(statistics.median(wait for wait, _ in found))
        print(f"{lane:<9}{len(found):>8}{median:>10}{worst:>9}  {identifier}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
