"""Compare the settlement with what finance booked: ``python -m tools.settle_check --db PATH --env ENV``."""

import argparse
import csv

from tollwick.config import ROOT, load
from tollwick.db import connect
from tollwick.jobs import settlement

CONTROL = ROOT / "data" / "finance" / "control-2026-02.csv"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--db", required=True)
    parser.add_argument("--env", required=True)
    parser.add_argument("--kiosks", action="store_true", help="name the kiosks that differ")
    options = parser.parse_args()
    connection = connect(options.db, readonly=True)
    settings = load(options.env)
    booked: dict[str, dict[str, tuple[int, int]]] = {}
    with CONTROL.open(newline="") as file:
        for row in csv.DictReader(file):
            booked.setdefault(row["day"], {})[row["kiosk"]] = (int(row["vouchers"]), int(row["cents"]))
    wrong = 0
    for day, kiosks in sorted(booked.items()):
        found = {name: (number, round(euros * 100)) for name, number, euros in settlement.run(connection, settings, day)}
        differ = sorted(name for name in {*kiosks, *found} if kiosks.get(name) != found.get(name))
        wrong += bool(differ)
        if differ:
            print(f"{day}: {len(differ)} kiosks differ")
            for name in differ if options.kiosks else ():
                print(f"    {name} booked {kiosks.get(name)} found {found.get(name)}")
    print(f"{len(booked)} closed days, {wrong} with differences")


if __name__ == "__main__":
    main()
