"""Who has to be reminded of what is due."""

from gaugeyard import registry, settings
from gaugeyard.common import NotDue, days_left, due_date, today

STEPS = (60, 30, 0, -14)


def step(instrument):
    """Return the step of a reminder; NotDue if it is too early."""
    left = days_left(due_date(instrument.last, instrument.months))
    reached = [each for each in STEPS if left <= each]
    if not reached:
        raise NotDue(instrument.serial)
    return min(reached)


def lines(customer=None):
    """Return the lines of the list of reminders, for today."""
    found = [f"reminders {today()}"]
    for instrument in sorted(registry.load().values(), key=lambda each: (each.customer, each.serial)):
        if customer not in (None, instrument.customer):
            continue
        try:
            reached = step(instrument)
        except NotDue:
            continue
        due = due_date(instrument.last, instrument.months)
        found.append(f"{instrument.customer};{instrument.serial};{due};{reached}")
    return found


def receivers():
    return settings.mail_to("reminders")
