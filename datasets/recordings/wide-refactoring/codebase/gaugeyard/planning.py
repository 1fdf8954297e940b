"""Which bench does what on which day."""

from collections import defaultdict

from gaugeyard import importer
from gaugeyard.common import CalError, NotDue, chunks, days_left, due_date, fail, next_due, today

PER_DAY = {"pressure": 9, "temperature": 4, "mass": 6, "torque": 12, "caliper": 14, "humidity": 3}


def urgency(instrument):
    """Return "overdue", "now" or "later"; NotDue for more than 90 days."""
    left = days_left(due_date(instrument.last, instrument.months))
    if left > 90:
        raise NotDue(instrument.serial)
    if left < 0:
        return "overdue"
    return "now" if left <= 30 else "later"


def month_load(instruments):
    """Return how many instruments fall due in each month, by the label (end of the month)."""
    load = defaultdict(int)
    for instrument in instruments:
        load[f"{next_due(instrument.last, instrument.months):%Y-%m}"] += 1
    return dict(sorted(load.items()))


def benches(path):
    """Return {kind: [serials of the first day, of the second, …]} for a file of orders."""
    by_kind = defaultdict(list)
    for instrument, day, _ in importer.orders(path):
        by_kind[instrument.kind].append((day, instrument.serial))
    plan = {}
    for kind, entries in sorted(by_kind.items()):
        if kind not in PER_DAY:
            continue
        serials = list(dict.fromkeys(serial for _, serial in sorted(entries)))
        plan[kind] = chunks(serials, PER_DAY[kind])
    if not plan:
        raise CalError(f"{path.name}: nothing to plan")
    return plan


def check_capacity(path, days):
    """End the process with 2 if the orders of a file do not fit into so many days."""
    for kind, per_day in benches(path).items():
        if len(per_day) > days:
            fail(f"{kind}: {len(per_day)} days from {today()}, {days} are planned")
