"""Nights from files."""

from collections.abc import Iterator
from itertools import groupby

from sluicework.files import Files
from sluicework.model import Reading


def zones(files: Files, path: str) -> Iterator[tuple[str, list[Reading]]]:
    """Yield each zone of a night with its readings, in the order of the file."""
    lines = files.read(path).splitlines()[1:]
    for zone, group in groupby(lines, key=lambda line: line.split(",", 1)[0]):
        yield zone, [parse(line) for line in group]


def parse(line: str) -> Reading:
    zone, meter, at, received, litres = line.split(",")
    return Reading(zone, meter, at, received, int(litres))
