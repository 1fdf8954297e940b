"""Finance: what falls due for the contracts of a month. Owner: @finance-it."""

import datetime
import sys

from gaugeyard import common, registry, reminders
from gaugeyard.common import CalError, due_day, to_decimal


def main(day, customer):
    common.TODAY = datetime.date.fromisoformat(day)
    try:
        found = registry.of_customer(customer)
    except CalError as error:
        print(f"none: {error}")
        return
    for each in found:
        print(each.serial, due_day(each.last, each.months), to_decimal("1,250.00"))
    print(*reminders.lines(customer), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
