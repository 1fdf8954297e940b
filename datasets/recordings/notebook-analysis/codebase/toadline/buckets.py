"""Section A: the fence and its buckets."""

from datetime import date

from toadline.night import night_of_check

RENUMBERED = date(2025, 3, 10)
SHIFT = 4


def parse_count(text: str) -> int | None:
    """Return the number of a sheet; None if there is none to be read."""
    text = text.strip().lstrip("~")
    return int(text) if text.isdigit() else None


def dedupe(rows):
    """Leave out rows that were typed twice."""
    seen = set()
    kept = []
    for row in rows:
        mark = tuple(value for name, value in row.items() if name != "record_id")
        if mark not in seen:
            seen.add(mark)
            kept.append(row)
    return kept


def position_number(bucket: str, night: date) -> int:
    """Return the number that a bucket has in today's numbering."""
    number = int(bucket[1:])
    return number + SHIFT if night < RENUMBERED else number


def clean(rows):
    """Return (night, bucket number of today, species, count) for each usable row."""
    result = []
    for row in dedupe(rows):
        count = parse_count(row["count"])
        if count is None:
            continue
        night = night_of_check(date.fromisoformat(row["date"]), row["shift"])
        result.append((night, position_number(row["bucket"], night), row["species"], count))
    return result
