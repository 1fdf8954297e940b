"""Bench of Nordkai: takes a delivery and prints the labels. Owner: @nordkai-bench. Frozen copy, changed once a year."""

from gaugeyard import common
from gaugeyard.common import *

common.SITE = "NK"
common.TODAY = datetime.date(2026, 3, 2)


def main(path):
    total = Decimal(0)
    for row in load_rows(path):
        found = find_instrument(row["serial"])
        if found is None:
            warn("%s is not ours", row["serial"])
            continue
        ok, message = check_reading(Reading(dec(row["nominal"]), [dec(v) for v in row["values"].split()]))
        if not ok:
            print(row["serial"], "refused:", message)
            continue
        total += round_cert(row["price"], 2)
        print(cert_number(found.kind, int(row["number"])), fmt_val(found.limit), due_date(today(), found.months))
    print("sum", total, "ten" if is_power_of_ten(1000) else "")


if __name__ == "__main__":
    main(sys.argv[1])
