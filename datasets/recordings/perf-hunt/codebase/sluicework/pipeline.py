"""One night from beginning to end."""

from dataclasses import dataclass, field

from sluicework import aggregate, readers
from sluicework.anomalies import anomalies
from sluicework.config import Settings
from sluicework.dedupe import dedupe
from sluicework.enrich import enrich
from sluicework.export import Exporter
from sluicework.files import Files
from sluicework.registry import Registry
from sluicework.tariffs import Tariffs
from sluicework.validate import Validator


@dataclass
class Result:
    """What a night came to."""

    files: Files
    read: int = 0
    kept: int = 0
    rows_held: int = 0
    unknown: list[str] = field(default_factory=list)
    thrown_out: dict[str, int] = field(default_factory=dict)


def run(settings: Settings, night: str, folder: str) -> Result:
    """Write the reports of a night into a folder."""
    files = Files()
    result = Result(files)
    registry, tariffs, validator = Registry(files), Tariffs(files), Validator(files, night)
    exporter = Exporter(files, folder, settings.batch_rows)
    for zone, readings in readers.zones(files, f"{settings.night_folder}/{night}.csv"):
        result.read += len(readings)
        result.rows_held = max(result.rows_held, len(readings))
        if len(readings) > settings.max_rows_held:
            raise MemoryError(f"zone {zone}: {len(readings)} rows, at most {settings.max_rows_held} may be held")
        valid = [reading for reading in readings if validator.keep(reading)]
        priced, unknown = enrich(dedupe(valid), registry, tariffs)
        result.unknown += sorted({reading.meter for reading in unknown})
        ordered = aggregate.in_order(priced)
        result.kept += len(ordered)
        exporter.rows("hours.csv", zone, aggregate.per_hour(ordered))
        exporter.rows("meters.csv", zone, aggregate.per_meter(ordered))
        exporter.rows("anomalies.csv", zone, anomalies(ordered))
    exporter.close()
    result.thrown_out = dict(sorted(validator.thrown_out.items()))
    return result
