"""Counts for the yearly audit, from the log of the nights."""

import re
from collections import Counter

LINE = re.compile(r"^(?P<day>\S+) (?P<level>WARNING|ERROR) (?P<logger>[\w.]+): (?P<text>.*)$")
COUNTED = {"gaugeyard.common": "data", "gaugeyard.cli": "operation"}


def counts(path):
    """Return how many warnings there were, by sort; those of other loggers are not counted."""
    found = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        match = LINE.match(line)
        if match and match["logger"] in COUNTED:
            found[COUNTED[match["logger"]]] += 1
    return dict(found)


def fallbacks(path):
    """Return how often the generic procedure stepped in, by kind."""
    found = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        match = LINE.match(line)
        if match and (what := re.match(r"procedure (\w+) not loaded", match["text"])):
            found[what[1]] += 1
    return dict(found)
