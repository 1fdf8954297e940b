"""Section B: from pulses of the light barriers to passes."""

from datetime import datetime


def parse(row):
    """Return (logger, time on the logger's clock, direction, length in ms) of a row."""
    return row["logger"], datetime.fromisoformat(row["ts"]), row["dir"], int(row["len_ms"])


def animals(pulses, min_len_ms: int):
    """Leave out mice."""
    return [pulse for pulse in pulses if pulse[3] >= min_len_ms]


def merge(pulses, seconds: int):
    """Put pulses of one logger and direction together to passes.

    A pulse belongs to the pass before it if it comes within ``seconds`` of its last pulse.
    Returns (logger, time of the first pulse, direction) in order of time.
    """
    first: dict[tuple[str, str], datetime] = {}
    passes = []
    for logger, at, direction, _ in sorted(pulses, key=lambda pulse: (pulse[1], pulse[0])):
        key = (logger, direction)
        if key in first and (at - first[key]).total_seconds() <= seconds:
            continue
        first[key] = at
        passes.append((logger, at, direction))
    return passes
