"""The ledger: which lines of which segment went out with which flush. Format 3.

One JSON object per flush: ``{"v": 3, "flush": 7, "took": {"seg-0002": "14-19,22"}}``.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from siltpump.spool import Record

FORMAT = 3
RANGE_LIMIT = 16


class LedgerError(RuntimeError):
    """An entry cannot be written or read."""


def ranges(lines: Iterable[int]) -> list[tuple[int, int]]:
    """Fold line numbers into closed ranges."""
    found: list[tuple[int, int]] = []
    for line in sorted(lines):
        if found and found[-1][1] == line - 1:
            found[-1] = (found[-1][0], line)
        else:
            found.append((line, line))
    return found


class Ledger:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.flushes = 0
        self._took: dict[str, set[int]] = {}
        if path.exists():
            for text in path.read_text().splitlines():
                self._replay(json.loads(text))

    def shipped(self, segment: str, line: int) -> bool:
        return line in self._took.get(segment, ())

    def append(self, records: Iterable[Record]) -> None:
        """Write the entry of one flush."""
        lines: dict[str, set[int]] = {}
        for record in records:
            lines.setdefault(record.segment, set()).add(record.line)
        took = {}
        for segment, numbers in sorted(lines.items()):
            folded = ranges(numbers)
            if len(folded) > RANGE_LIMIT:
                raise LedgerError(
                    f"LG-41 {segment}: {len(folded)} ranges in one entry, limit {RANGE_LIMIT}"
                )
            took[segment] = ",".join(f"{a}-{b}" if a < b else str(a) for a, b in folded)
        entry = {"v": FORMAT, "flush": self.flushes + 1, "took": took}
        with self.path.open("a") as out:
            out.write(json.dumps(entry) + "\n")
        self._replay(entry)

    def _replay(self, entry: dict) -> None:
        if entry["v"] != FORMAT:
            raise LedgerError(f"LG-12 {self.path.name}: format {entry['v']}, expected {FORMAT}")
        self.flushes = entry["flush"]
        for segment, text in entry["took"].items():
            for part in text.split(","):
                first, _, last = part.partition("-")
                self._took.setdefault(segment, set()).update(
                    range(int(first), int(last or first) + 1)
                )
