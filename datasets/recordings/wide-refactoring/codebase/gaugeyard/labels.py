"""Stickers for instruments."""

from gaugeyard.common import SITE, clean_serial, fmt_val, next_due

WIDTH = 24


def label(instrument, day):
    """Return the text of a sticker. It shows the end of the month (a sticker has no days)."""
    due = next_due(day, instrument.months)
    lines = [
        f"{SITE} {clean_serial(instrument.serial)}",
        f"next {due:%m/%Y}",
        f"limit {fmt_val(instrument.limit)}",
    ]
    return "\n".join(line[:WIDTH] for line in lines)
