"""Letters of the reminders."""

import logging

from gaugeyard import customers, registry, reminders
from gaugeyard.common import CalError, NotDue, days_left, due_date, today, warn

log = logging.getLogger(__name__)

TEXT = {
    60: "falls due on {due}",
    30: "falls due on {due}; please book a day",
    0: "is due",
    -14: "is overdue since {due} and may not be used",
}


def letter(name):
    """Return the text of a letter, None if there is nothing to say."""
    lines = []
    for instrument in registry.of_customer(name):
        try:
            step = reminders.step(instrument)
        except NotDue:
            continue
        due = due_date(instrument.last, instrument.months)
        lines.append(f"- {instrument.serial} {TEXT[step].format(due=due)}")
    if not lines:
        return None
    return "\n".join([f"{today()}, to {name}", "", *lines, ""])


def outgoing():
    """Return {address: letter} of today; customers without an address are left out with a warning."""
    found = {}
    for name in sorted({each.customer for each in registry.load().values()}):
        address = customers.mail_of(name)
        if not address:
            warn("%s has no address", name)
            continue
        try:
            text = letter(name)
        except CalError as error:
            log.warning("%s", error)
            continue
        if text:
            found[address] = text
    return found


def worst(name):
    """Return the days that the oldest instrument of a customer is overdue, 0 for none."""
    return max([0, *(-days_left(due_date(each.last, each.months)) for each in registry.of_customer(name))])
