"""Order and sums."""

from sluicework.model import Reading


def in_order(readings: list[Reading]) -> list[Reading]:
    """Return the readings by time, then meter."""
    ordered: list[Reading] = []
    for reading in readings:
        position = 0
        while position < len(ordered) and ordered[position] < reading:
            position += 1
        ordered.insert(position, reading)
    return ordered


def per_hour(readings: list[Reading]) -> list[tuple[str, int, int, int]]:
    """Return hour, number, litres and price of each hour that has readings."""
    hours: list[tuple[str, int, int, int]] = []
    for hour in sorted({reading.taken().strftime("%Y-%m-%dT%H") for reading in readings}):
        rows = [reading for reading in readings if reading.taken().strftime("%Y-%m-%dT%H") == hour]
        hours.append((hour, len(rows), sum(r.litres for r in rows), sum(r.price for r in rows)))
    return hours


def per_meter(readings: list[Reading]) -> list[tuple[str, str, int, int, int]]:
    """Return meter, site, number, litres and price of each meter."""
    meters: dict[tuple[str, str], list[Reading]] = {}
    for reading in readings:
        meters.setdefault((reading.meter, reading.site), []).append(reading)
    return [
        (meter, site, len(rows), sum(r.litres for r in rows), sum(r.price for r in rows))
        for (meter, site), rows in sorted(meters.items())
    ]
