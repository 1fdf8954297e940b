"""入庫CSVを読む。"""

import csv
from pathlib import Path

COLUMNS = ["伝票番号", "品番", "数量", "単位", "備考"]


def read_rows(path: Path, encoding: str) -> list[dict[str, str]]:
    """見出しを除いた行を辞書で返す。"""
    text = path.read_bytes().decode(encoding, errors="replace")
    rows = []
    for line in text.splitlines()[1:]:
        fields = next(csv.reader([line]), [])
        if len(fields) != len(COLUMNS):
            continue
        rows.append(dict(zip(COLUMNS, fields)))
    return rows
