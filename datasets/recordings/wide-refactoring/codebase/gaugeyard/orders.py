"""Work orders: what is done next, and what it costs."""

from gaugeyard import importer
from gaugeyard.common import CalError, days_left, due_date, round_half_up


def sequence(path):
    """Return serial numbers in the order of work: the longest overdue first."""
    found = importer.orders(path)
    return [
        each[0].serial
        for each in sorted(found, key=lambda each: (days_left(due_date(each[0].last, each[0].months)), each[0].serial))
    ]


def total(path, rate="0.19"):
    """Return (net, tax, sum) of the orders of a file, in euros."""
    found = importer.orders(path)
    if not found:
        raise CalError(f"{path.name}: no orders")
    net = sum(price for _, _, price in found)
    tax = round_half_up(net * type(net)(rate), 2)
    return net, tax, net + tax
