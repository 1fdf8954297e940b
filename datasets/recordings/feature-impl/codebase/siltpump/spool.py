"""Read the spool: a folder of append-only segments, one JSON record per line."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Record:
    """One log record and where it stands in the spool."""

    segment: str
    line: int
    ts: int
    lane: str
    text: str

    @property
    def size(self) -> int:
        return len(self.text.encode()) + 1


def segments(folder: Path) -> list[Path]:
    """The segments in the order they were written."""
    return sorted(folder.glob("seg-*.jsonl"))


def pending(
    folder: Path, shipped: Callable[[str, int], bool], now_ms: int, settle_s: int
) -> list[Record]:
    """Records that have settled and were not shipped yet, oldest first."""
    records = []
    for path in segments(folder):
        for number, text in enumerate(path.read_text().splitlines(), 1):
            if shipped(path.stem, number):
                continue
            raw = json.loads(text)
            if now_ms - raw["t"] < settle_s * 1000:
                continue
            records.append(Record(path.stem, number, raw["t"], raw.get("lane", "app"), text))
    return records
