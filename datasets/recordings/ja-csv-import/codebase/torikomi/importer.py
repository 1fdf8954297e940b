"""行を入庫データに変換し、伝票番号ごとにまとめる。"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from .reader import read_rows


@dataclass
class Result:
    received: dict[str, dict] = field(default_factory=dict)
    skipped: int = 0

    @property
    def total(self) -> int:
        return sum(item["個数"] for item in self.received.values())


def parse_quantity(text: str) -> int:
    return int(text.replace(",", ""))


def run(path: Path, settings: dict) -> Result:
    result = Result()
    for row in read_rows(path, settings["encoding"]):
        try:
            quantity = parse_quantity(row["数量"])
        except ValueError:
            result.skipped += 1
            continue
        factor = settings["入数"].get(row["単位"], 1)
        result.received[row["伝票番号"]] = {"品番": row["品番"], "個数": quantity * factor}
    return result


def load_settings(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))
