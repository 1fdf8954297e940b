"""Reports for billing."""

from collections.abc import Iterable

from sluicework.files import Files

HEADS = {
    "hours.csv": "zone,hour,readings,litres,price",
    "meters.csv": "zone,meter,site,readings,litres,price",
    "anomalies.csv": "zone,meter,at,litres,usual",
}


class Exporter:
    """Writes the reports of a night, row by row or in batches."""

    def __init__(self, files: Files, folder: str, batch_rows: int) -> None:
        self.files = files
        self.folder = folder
        self.batch_rows = batch_rows
        self.waiting: dict[str, list[str]] = {name: [] for name in HEADS}
        for name in HEADS:
            files.write(f"{folder}/{name}", "")

    def rows(self, name: str, zone: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Add rows of a zone to a report."""
        for row in rows:
            self.waiting[name].append(",".join(str(value) for value in (zone, *row)))
            if len(self.waiting[name]) >= self.batch_rows:
                self.flush(name)

    def flush(self, name: str) -> None:
        """Write what is waiting; the head comes before the first row."""
        path = f"{self.folder}/{name}"
        lines = self.waiting[name]
        if lines and not self.files.read(path).startswith(HEADS[name]):
            lines = [HEADS[name], *lines]
        if lines:
            self.files.append(path, "\n".join(lines) + "\n")
        self.waiting[name] = []

    def close(self) -> None:
        for name in HEADS:
            self.flush(name)
