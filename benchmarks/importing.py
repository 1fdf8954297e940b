"""Time and memory of an import, a scrub on the way, making banks, and the Inspect dataset of it.

    python -m benchmarks.importing                       # 366, 3,661 and 36,611 messages
    python -m benchmarks.importing --messages 1000 10000
    python -m benchmarks.importing --sessions 120        # and so many real sessions
    python -m benchmarks.importing --before ../earlier   # by another checkout, too

Each step runs in a process of its own, and an import in as many more as it starts; the memory is
the most that all of them held at one time. The corpus is made of the shipped conversations, every
copy with other texts and ids, a file each, as OpenAI chat messages. Where COMPRESSION_EVAL_SAMPLES
names a folder with real sessions, those of Claude Code in it, copied with other ids, texts and
accounts, are measured too. About 40 MB are the interpreter and its libraries.
"""

import argparse
import contextlib
import ctypes
import json
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]
import pyarrow.parquet as pq

from compression_eval.arguments import TaskArguments
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.loading import load_fixture
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.parquet_files import ParquetFixtures, parquet_writer, row_of
from compression_eval.fixtures.writing import fixture_text
from compression_eval.task import compression_task

MESSAGES = (366, 3_661, 36_611)
STEPS = ("import", "import and scrub", "generate", "dataset")
PROBES = 8
PR_SET_CHILD_SUBREAPER = 36
"""Asks Linux for the processes that those of this one leave behind, to count their time, too."""
_ALTERED = re.compile(rb'"(?:text|content|command|prompt|old_string|new_string)":"[^"\\\\]{8}')
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


def write_copies(folder: Path, samples: Path, sessions: int) -> None:
    """Copy so many real sessions with other ids, texts and accounts."""
    files = sorted(samples.glob("claude_code/*"))
    for number in range(sessions):
        raw = _with_other_ids(files[number % len(files)].read_bytes(), number)
        raw = re.sub(rb"([/-]Users[/-])(\w+)", rb"\g<1>mkolb%d" % number, raw)
        raw = _ALTERED.sub(rb"\g<0>(copy %d) " % number, raw)
        (folder / f"{number:05}.jsonl").write_bytes(raw)


def _with_other_ids(raw: bytes, number: int) -> bytes:
    return _UUID.sub(lambda found: b"%08x" % ((int(found[0], 16) + number) % 2**32), raw)


def add_banks(imported: Path, out: Path) -> None:
    """Give every fixture of a Parquet file a bank."""
    with parquet_writer(out) as writer:
        for row in ParquetFixtures(imported).rows():
            text, _ = row.texts()
            fixture = Fixture.model_validate_json(text)
            bank = _bank(fixture)
            writer.write(row_of(fixture, text, bank, fixture_text(bank)))


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


def step(name: str, source: str, out: str) -> None:
    """Carry out one step other than an import in this process."""
    if name == "banks":
        add_banks(Path(source), Path(out))
    else:
        compression_task(TaskArguments(fixtures=source, compressor="full"))


class Taken(NamedTuple):
    """What a command took."""

    seconds: float
    cpu: float
    megabytes: float
    load: float
    """Of the machine, when it began."""


def taken(arguments: list[str], folder: Path) -> Taken:
    """Run a module in a process of its own; returns what it and all that it started took."""
    adopts = sys.platform == "linux" and not ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started, load = time.perf_counter(), os.getloadavg()[0]
    peak = 0
    with tempfile.TemporaryFile() as said:
        program = [sys.executable, "-m", *arguments]
        process = psutil.Popen(program, cwd=folder, stdout=said, stderr=said)
        while process.poll() is None:
            with contextlib.suppress(psutil.Error):
                every = [process, *process.children(recursive=True)]
                used = (one.memory_full_info() for one in every)
                # Where the system tells, what processes share counts once.
                peak = max(peak, sum(getattr(one, "pss", one.uss) for one in used))
            time.sleep(0.3)
        if process.returncode:
            said.seek(0)
            raise SystemExit(said.read().decode()[-2000:])
    seconds = time.perf_counter() - started
    with contextlib.suppress(ChildProcessError):  # what it forked its processes from ends after it
        while adopts:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(seconds, cpu, peak / 1e6, load)


def measure(
    corpus: Path, work: Path, label: str, checkouts: dict[str, Path], steps: Sequence[str]
) -> None:
    """Print the rows of one corpus."""
    size = sum(path.stat().st_size for path in corpus.iterdir()) / 1e6
    out, ready = work / "out.parquet", work / "ready.parquet"
    rows: list[tuple[str, Taken]] = []
    commands = {
        "import": ["import", str(corpus), "--out", str(out)],
        "import and scrub": ["import", str(corpus), "--out", str(out), "--scrub", "default"],
        "generate": ["probes", "generate", str(out), "--out", str(work / "banks")],
    }
    for name, command in commands.items():
        for which, checkout in checkouts.items() if name in steps else ():
            done = taken(["compression_eval.cli", *command, "--force"], checkout)
            rows.append((f"{name}{which}", done))
    for name, source, made in (("banks", out, ready), ("dataset", ready, work)):
        if "dataset" in steps:
            child = ["benchmarks.importing", "--child", name, str(source), str(made)]
            rows.append((name, taken(child, Path.cwd())))
    messages = sum(pq.read_table(out, columns=["messages"])["messages"].to_pylist())
    for name, done in rows:
        if name != "banks":
            print(
                f"{label:10} {messages:>8,} {size:>8.1f}  {name:24}{done.seconds:>8.1f}"
                f"{done.cpu:>8.1f}{done.megabytes:>9.0f}{done.load:>7.1f}",
                flush=True,
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", nargs="*", type=int, default=MESSAGES)
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS, help="with an import")
    parser.add_argument("--sessions", nargs="*", type=int, default=())
    parser.add_argument("--before", type=Path, help="another checkout to import with, too")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        step(*arguments.child)
        return
    samples = os.environ.get("COMPRESSION_EVAL_SAMPLES")
    if arguments.sessions and not samples:
        parser.error("--sessions: COMPRESSION_EVAL_SAMPLES names no folder")
    checkouts = {"": Path.cwd()}
    if arguments.before:
        checkouts = {", before": arguments.before, "": Path.cwd()}
    print("corpus     messages       MB  step                     seconds     CPU  peak MB   load")
    corpora: list[tuple[str, Callable[[Path], object]]] = [
        *(("synthetic", partial(write_synthetic, messages=n)) for n in arguments.messages),
        *(
            ("real", partial(write_copies, samples=Path(str(samples)), sessions=n))
            for n in arguments.sessions
        ),
    ]
    for label, write in corpora:
        with tempfile.TemporaryDirectory() as folder:
            corpus = Path(folder) / "in"
            corpus.mkdir()
            write(corpus)
            measure(corpus, Path(folder), label, checkouts, arguments.steps)


if __name__ == "__main__":
    main()
