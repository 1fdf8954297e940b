"""Group the access log.

    python -m scripts.log_report logs/ferrygate-2026-02-27.log --by worker status
    python -m scripts.log_report LOG --path /api/auth/login --status 401 --by bucket
"""

import argparse
import re
from collections import Counter
from pathlib import Path

LINE = re.compile(
    r"(?P<date>\S+)T(?P<time>\S+)Z INFO ferrygate\.web (?P<worker>w\d) req=(?P<req>\S+) "
    r"(?P<method>[A-Z]+) (?P<path>\S+) (?P<status>\d+) code=(?P<code>\S+) "
    r"origin=(?P<origin>\S+) client=(?P<client>\S+) dur_s=(?P<dur>[\d.]+)"
)
FIELDS = ("worker", "method", "path", "status", "code", "origin", "client", "bucket")


def parse(path: Path, bucket_s: int) -> list[dict[str, str]]:
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        match = LINE.fullmatch(line)
        if match:
            row = match.groupdict()
            hours, minutes, seconds = (int(part) for part in row["time"].split(":"))
            start = (hours * 3600 + minutes * 60 + seconds) // bucket_s * bucket_s
            row["bucket"] = f"{start // 3600:02d}:{start % 3600 // 60:02d}"
            rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("--by", nargs="+", choices=FIELDS, default=["worker", "status"])
    parser.add_argument("--path")
    parser.add_argument("--status")
    parser.add_argument("--worker")
    parser.add_argument("--bucket-s", type=int, default=300)
    options = parser.parse_args()

    rows = parse(options.log, options.bucket_s)
    for name in ("path", "status", "worker"):
        wanted = getattr(options, name)
        if wanted:
            rows = [row for row in rows if row[name] == wanted]
    counts = Counter(tuple(row[name] for name in options.by) for row in rows)
    print("  ".join(f"{name:28s}" if name in ("path", "origin") else f"{name:10s}"
                    for name in options.by) + "  count")
    for key in sorted(counts):
        cells = (f"{cell:28s}" if name in ("path", "origin") else f"{cell:10s}"
                 for name, cell in zip(options.by, key, strict=True))
        print("  ".join(cells) + f"  {counts[key]:5d}")
    print(f"{len(rows)} lines")


if __name__ == "__main__":
    main()
