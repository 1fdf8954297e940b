"""Values that are far from what a meter usually has."""

from statistics import median

from sluicework.model import Reading

WINDOW = 12
FACTOR = 4


def anomalies(readings: list[Reading]) -> list[tuple[str, str, int, float]]:
    """Return meter, time, litres and the median of the values before, in the order given."""
    found = []
    for position, reading in enumerate(readings):
        before = [other.litres for other in readings[:position] if other.meter == reading.meter][-WINDOW:]
        if len(before) >= 3:
            usual = median(before)
            if usual and reading.litres > FACTOR * usual:
                found.append((reading.meter, reading.at, reading.litres, usual))
    return found
