"""Bytes of log for each sample, against the bytes of what is unique to it.

    python -m benchmarks.logsize

Unique to a sample are its question, answer, grades with reasons and facts. The state belongs to all
probes about it, and the rubric to all samples; the rest is what each log contains of them again.
"""

import json
import tempfile
import zipfile
from pathlib import Path

from inspect_ai import eval  # noqa: A004

from benchmarks.prefix import ARMS, MODEL
from compression_eval.arguments import TaskArguments
from compression_eval.record import ProbeRecord
from compression_eval.task import compression_task


def main() -> None:
    """Print one line per arm."""
    head = ("arm", "log/sample", "unpacked", "unique", "log/unique")
    print(f"{head[0]:14}" + "".join(f"{name:>12}" for name in head[1:]))
    with tempfile.TemporaryDirectory() as folder:
        for arm in ARMS:
            (log,) = eval(
                compression_task(TaskArguments(compressor=arm)),
                model=MODEL,
                model_roles={"grader": MODEL, "compressor": MODEL},
                epochs=1,
                log_dir=folder,
                display="none",
            )
            samples = log.samples or []
            unique = 0
            for sample in samples:
                record = sample.store_as(ProbeRecord).sample
                scores = {name: score.model_dump() for name, score in (sample.scores or {}).items()}
                parts = [sample.output.completion, json.dumps(scores, default=str)]
                if record:
                    parts.append(record.probe.model_dump_json())
                    parts.extend(fact.model_dump_json() for fact in record.state.facts)
                unique += sum(len(part.encode()) for part in parts)
            path = Path(log.location)
            with zipfile.ZipFile(path) as archive:
                unpacked = sum(
                    entry.file_size
                    for entry in archive.infolist()
                    if entry.filename.startswith("samples/")
                )
            number = len(samples)
            print(
                f"{arm:14}{path.stat().st_size // number:12,}{unpacked // number:12,}"
                f"{unique // number:12,}{path.stat().st_size / unique:12.2f}"
            )


if __name__ == "__main__":
    main()
