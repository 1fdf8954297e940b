"""Choose the records of the next flush."""

from collections.abc import Sequence
from dataclasses import dataclass

from siltpump.config import Config
from siltpump.spool import Record


@dataclass(frozen=True)
class Flush:
    """What goes out together."""

    records: tuple[Record, ...]
    size: int
    left_behind: int
    cut_ms: int


def next_flush(pending: Sequence[Record], config: Config, now_ms: int) -> Flush:
    """Fill one flush from the head of `pending` until `flush_bytes` is reached.

    A record larger than a whole flush goes out alone.
    """
    chosen: list[Record] = []
    size = 0
    for record in pending:
        if chosen and size + record.size > config.flush_bytes:
            break
        chosen.append(record)
        size += record.size
    return Flush(tuple(chosen), size, len(pending) - len(chosen), now_ms)
