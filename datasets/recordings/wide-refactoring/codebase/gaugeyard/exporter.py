"""Lists for other systems."""

from gaugeyard import registry
from gaugeyard.common import chunks, due_date, fmt_value, slug


def due_list(until):
    """Return a CSV text of what is due until a day, for the planning board."""
    rows = ["serial,kind,customer,due,limit"]
    for instrument in sorted(registry.load().values(), key=lambda each: each.serial):
        due = due_date(instrument.last, instrument.months)
        if due <= until:
            rows.append(f"{instrument.serial},{instrument.kind},{slug(instrument.customer)},{due},{fmt_value(instrument.limit)}")
    return "\n".join(rows) + "\n"


def pages(rows, size=40):
    return chunks(rows, size)
