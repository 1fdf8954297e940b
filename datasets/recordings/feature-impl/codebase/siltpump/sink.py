"""Write flushes to the sink folder."""

from pathlib import Path

from siltpump.batcher import Flush


def write(folder: Path, number: int, flush: Flush) -> Path:
    """Write one flush as `flush-NNNNN.jsonl`, complete or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"flush-{number:05d}.jsonl"
    partial = target.with_suffix(".part")
    partial.write_text("".join(record.text + "\n" for record in flush.records))
    partial.replace(target)
    return target
