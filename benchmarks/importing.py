"""Time and memory of an import, a scrub on the way, the Inspect dataset and the probes made of it.

    python -m benchmarks.importing                       # 366, 3,661 and 36,611 messages
    python -m benchmarks.importing --messages 1000 10000
    python -m benchmarks.importing --messages 31000 --steps import probes

Each step runs in a process of its own, whose peak memory is taken from the system. The corpus is
made of the shipped conversations, every copy with other texts and ids, a file each, as OpenAI chat
messages. Where COMPRESSION_EVAL_SAMPLES names a folder with real sessions, the sessions of Claude
Code and Codex in it, copied with other ids, are measured too. What is constant is the interpreter
and its libraries, so the memory that counts is the difference between the rows.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from compression_eval.arguments import TaskArguments
from compression_eval.cli import main as compression_eval
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.loading import load_fixture
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.parquet_files import ParquetFixtures, ParquetWriter
from compression_eval.fixtures.writing import fixture_text
from compression_eval.task import compression_task

MESSAGES = (366, 3_661, 36_611)
PROBES = 8
_UUID = re.compile(rb"\b[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)")


def write_synthetic(folder: Path, messages: int) -> int:
    """Write conversations until there are enough messages; returns how many there are."""
    shipped = [load_fixture(path) for path in shipped_fixtures().values()]
    total = number = 0
    while total < messages:
        fixture = shipped[number % len(shipped)]
        copied = list(_copied(fixture, number))[: messages - total]
        (folder / f"{number:05}.json").write_text(json.dumps({"messages": copied}))
        total += len(copied)
        number += 1
    return total


def _copied(fixture: Fixture, number: int) -> Iterator[dict[str, Any]]:
    for message in fixture.messages:
        data = message.model_dump(exclude_none=True)
        data["content"] = f"{data.get('content', '')}\n(copy {number})"
        for called in data.get("tool_calls", []):
            called["id"] += f"-{number}"
        if "tool_call_id" in data:
            data["tool_call_id"] += f"-{number}"
        yield data


def write_copies(folder: Path, samples: Path, messages: int) -> int:
    """Copy real sessions with other ids, about as many messages as asked for."""
    files = sorted(path for kind in ("claude_code", "codex") for path in samples.glob(f"{kind}/*"))
    lines = number = 0
    # About half of the lines of these sessions are messages.
    while lines < 2 * messages:
        raw = files[number % len(files)].read_bytes()
        raw = _with_other_ids(raw, number)
        (folder / f"{number:05}.jsonl").write_bytes(raw)
        lines += raw.count(b"\n")
        number += 1
    return lines


def _with_other_ids(raw: bytes, number: int) -> bytes:
    return _UUID.sub(lambda found: b"%08x" % ((int(found[0], 16) + number) % 2**32), raw)


def add_banks(imported: Path, out: Path) -> None:
    """Give every fixture of a Parquet file a bank."""
    with ParquetWriter(out) as writer:
        for row in ParquetFixtures(imported).rows():
            text, _ = row.texts()
            fixture = Fixture.model_validate_json(text)
            bank = _bank(fixture)
            writer.add(fixture, text, bank, fixture_text(bank))


def _bank(fixture: Fixture) -> ProbeBank:
    step = max(1, len(fixture.messages) // PROBES)
    probes = [
        {
            "id": f"p{index}",
            "type": "recall",
            "question": "Which word stood there?",
            "expected_facts": [{"fact": words[0][:40], "evidence": [index]}],
        }
        for index in range(0, len(fixture.messages), step)
        if (words := fixture.messages[index].searchable().split())
    ]
    return ProbeBank.model_validate({"fixture": fixture.name, "probes": probes})


def step(name: str, source: str, out: str) -> dict[str, Any]:
    """Carry out one step in this process; returns what it took."""
    started = time.perf_counter()
    found: dict[str, Any] = {}
    if name in ("import", "import and scrub"):
        scrub = ["--scrub", "default"] if name.endswith("scrub") else []
        done = CliRunner().invoke(compression_eval, ["import", source, "--out", out, *scrub])
        if done.exit_code:
            raise SystemExit(done.output[-2000:])
    elif name == "probes":  # in one process, whose memory is that of the row
        given = [source, "--out", out, "--jobs", "1"]
        done = CliRunner().invoke(compression_eval, ["probes", "generate", *given])
        if done.exit_code:
            raise SystemExit(done.output[-2000:])
    elif name == "banks":
        add_banks(Path(source), Path(out))
    elif name == "dataset":
        task = compression_task(TaskArguments(fixtures=source, compressor="full"))
        found["samples"] = len(task.dataset)
    seconds = time.perf_counter() - started
    if name.startswith("import"):
        import pyarrow.parquet as pq

        found["messages"] = sum(pq.read_table(out, columns=["messages"])["messages"].to_pylist())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Kilobytes on Linux, bytes on macOS.
    megabytes = peak / (1024 if sys.platform != "darwin" else 1024**2)
    return {"seconds": seconds, "megabytes": megabytes, **found}


def in_process(name: str, source: Path, out: Path) -> dict[str, Any]:
    """Return what `step` does, from a process of its own."""
    program = [sys.executable, "-m", "benchmarks.importing", "--child", name, str(source), str(out)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(corpus: Path, work: Path, label: str, wanted: list[str] | None) -> None:
    """Print the rows of one corpus, for the wanted steps or for all."""
    size = sum(path.stat().st_size for path in corpus.iterdir()) / 1e6
    plain, scrubbed, ready = (work / name for name in ("a.parquet", "b.parquet", "c.parquet"))
    steps = [
        ("import", corpus, plain),
        ("probes", plain, work / "probes"),
        ("import and scrub", corpus, scrubbed),
        ("banks", scrubbed, ready),
        ("dataset", ready, work),
    ]
    messages = 0
    for name, source, out in steps:
        if wanted and name not in wanted:
            continue
        done = in_process(name, source, out)
        messages = done.get("messages", messages)
        if name == "banks":
            continue
        rate = done["seconds"] / messages * 1000
        print(
            f"{label:10} {messages:>8,} {size:>8.1f}  {name:18}{done['seconds']:>8.1f}"
            f"{rate:>10.2f}{done['megabytes']:>9.0f}",
            flush=True,
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", nargs="*", type=int, default=MESSAGES)
    parser.add_argument("--steps", nargs="*", help="as in the table; each needs those before it")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(step(*arguments.child)))
        return
    samples = os.environ.get("COMPRESSION_EVAL_SAMPLES")
    print("corpus     messages       MB  step               seconds per 1,000  peak MB")
    for messages in arguments.messages:
        for label in ("synthetic", "real") if samples else ("synthetic",):
            with tempfile.TemporaryDirectory() as folder:
                corpus = Path(folder) / "in"
                corpus.mkdir()
                if label == "synthetic":
                    write_synthetic(corpus, messages)
                else:
                    write_copies(corpus, Path(str(samples)), messages)
                measure(corpus, Path(folder), label, arguments.steps)


if __name__ == "__main__":
    main()
