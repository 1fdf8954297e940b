"""Does the program still give the same results? For changes that should move nothing.

    python -m benchmarks.same_results record BEFORE --samples PATH   # today's program; 15 minutes
    python -m benchmarks.same_results record AFTER --samples PATH --logs BEFORE/logs
    python -m benchmarks.same_results diff BEFORE AFTER              # exits with 1 if any differs

Recorded are, through commands and public functions only: scores, reasons and the life of every
fact, sample by sample, of `ARMS` on all shipped fixtures with the embedded model; every fixture,
bank and account that `import` and `probes generate` make of the conversations in ``--samples``,
scrubbed and not; the JSON of the commands that read logs, on the logs given with ``--logs`` (by
default those that were just made); and the text of every error that the tests on bad input meet.
Each part is a folder of text files, so that any diff tool shows what moved.
"""

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

ARMS = (
    *("full", "none", "tail", "anchored", "regenerative", "summary", "edit", "trim", "masking"),
    *("claude-code", "codex", "pi", "openhands", "anchored+artifacts"),
)

MODEL = "embedded/lexical"

MOST_SHOWN = 40
"""Lines of a difference that are printed."""

BAD_INPUT = ("tests/e2e/test_bad_input.py", "tests/e2e/test_bad_input_command.py")

_PASSING = (
    (re.compile(r'("(?:created|started|completed|seconds|took|elapsed)\w*": )[^,\n]+'), r"\1*"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d[\w.+:-]*"), "TIME"),
    (re.compile(r"0x[0-9a-f]{8,}"), "ADDRESS"),
)
"""What differs between two runs of the same program."""


def run(*arguments: str, log_dir: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run one of the commands that stand next to this Python."""
    program = Path(sys.executable).with_name(arguments[0])
    environment = {**os.environ, "INSPECT_DISPLAY": "none", "COLUMNS": "100", "NO_COLOR": "1"}
    if log_dir:
        environment["INSPECT_LOG_DIR"] = str(log_dir)
    return subprocess.run(
        [str(program), *arguments[1:]],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def record_arms(folder: Path, logs: Path) -> None:
    """Write, for every arm, what became of each sample."""
    from inspect_ai.log import list_eval_logs, read_eval_log

    for arm in ARMS:
        shutil.rmtree(logs / arm, ignore_errors=True)
        ended = run(
            *("inspect", "eval", "tasks/compression.py", "--model", MODEL, "--epochs", "1"),
            *("-T", "fixtures=all", "-T", f"compressor={arm}"),
            log_dir=logs / arm,
        )
        found = list_eval_logs(str(logs / arm))
        if len(found) != 1:
            raise SystemExit(f"{arm}: {len(found)} logs; {ended.stderr.strip()[-400:]}")
        rows = [_sample(each) for each in read_eval_log(found[0]).samples or []]
        rows.sort(key=lambda row: str(row["id"]))
        _write(folder / f"{arm}.json", rows)
        print(f"  {arm}: {len(rows)} samples", flush=True)


def _sample(sample: Any) -> dict[str, Any]:
    facts: list[dict[str, Any]] = []
    scores: dict[str, Any] = {}
    for name, score in sorted((sample.scores or {}).items()):
        metadata = score.metadata or {}
        facts.extend(metadata.get("facts") or [])
        scores[name] = {"value": score.value, "reason": score.reason}
    return {"id": sample.id, "answer": sample.output.completion, "scores": scores, "facts": facts}


def record_imports(folder: Path, samples: Path) -> None:
    """Write everything that is made of other agents' conversations, scrubbed and not."""
    key = folder / "key"
    key.parent.mkdir(parents=True, exist_ok=True)
    key.write_bytes(b"the same stand-ins in every run")
    for name, options in (
        ("plain", ()),
        ("scrubbed", ("--scrub", "default", "--key-file", str(key))),
    ):
        out = folder / name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        made = out / "fixtures"
        ended = run(
            *("compression-eval", "import", str(samples), "--out", str(made), "--cut", "auto"),
            *(f"--explain={out / 'account.jsonl'}", *options),
        )
        (out / "import.txt").write_text(_said(ended, out), encoding="utf-8")
        ended = run(
            "compression-eval", "probes", "generate", str(made), "--out", str(out / "banks")
        )
        (out / "generate.txt").write_text(_said(ended, out), encoding="utf-8")
        print(f"  {name}: {sum(1 for path in out.rglob('*.json'))} files", flush=True)
    key.unlink()


def record_commands(folder: Path, logs: Path) -> None:
    """Write the JSON of the commands that read logs."""
    folder.mkdir(parents=True, exist_ok=True)
    for new in ("anchored", "masking", "tail"):
        pair = (str(logs / "claude-code"), "--to", str(logs / new))
        ended = run("compression-eval", "compare", *pair, "--format", "json")
        (folder / f"compare-{new}.json").write_text(_said(ended, logs), encoding="utf-8")
        ended = run("compression-eval", "compare", *pair)
        (folder / f"compare-{new}.txt").write_text(_said(ended, logs), encoding="utf-8")
    ended = run("compression-eval", "report", str(logs), "--out", str(folder / "report"))
    (folder / "report.txt").write_text(_said(ended, logs), encoding="utf-8")
    for drawn in ("charts", "index.html"):
        place = folder / "report" / drawn
        shutil.rmtree(place, ignore_errors=True) if place.is_dir() else place.unlink(
            missing_ok=True
        )
    run("compression-eval", "facts", str(logs), "--json", str(folder / "facts.json"))
    estimate = ("--arms", "anchored,masking", "--models", "openai/gpt-4o", "--fixtures", "all")
    ended = run("compression-eval", "estimate", *estimate)
    (folder / "estimate.txt").write_text(_said(ended, logs), encoding="utf-8")
    graded = logs / "calibration"
    if not graded.exists():
        run("inspect", "eval", "tasks/grader_calibration.py", "--model", MODEL, log_dir=graded)
    ended = run("compression-eval", "grader", str(graded), "--format", "json")
    (folder / "grader.json").write_text(_said(ended, logs), encoding="utf-8")


def record_errors(folder: Path) -> None:
    """Write the text of every error that the tests on bad input meet."""
    folder.mkdir(parents=True, exist_ok=True)
    script = (
        "import json, os, sys, pytest\n"
        "from _pytest._code import ExceptionInfo\n"
        "said, fill = [], ExceptionInfo.fill_unfilled\n"
        "def noted(self, exc_info):\n"
        "    test = os.environ.get('PYTEST_CURRENT_TEST', '').split(' ')[0]\n"
        "    said.append([test, str(exc_info[1])])\n"
        "    return fill(self, exc_info)\n"
        "ExceptionInfo.fill_unfilled = noted\n"
        "code = pytest.main(['-q', '-p', 'no:cacheprovider', '--basetemp', *sys.argv[2:]])\n"
        "open(sys.argv[1], 'w').write(json.dumps(said, indent=1))\n"
        "sys.exit(code)\n"
    )
    place = folder / "temporary"
    ended = run("python", "-c", script, str(folder / "errors.json"), str(place), *BAD_INPUT)
    shutil.rmtree(place, ignore_errors=True)
    errors = folder / "errors.json"
    errors.write_text(errors.read_text().replace(str(place), "PLACE"), encoding="utf-8")
    if ended.returncode:
        print(ended.stdout[-2000:], file=sys.stderr)
        raise SystemExit("the tests on bad input fail")


def _said(ended: subprocess.CompletedProcess[str], place: Path) -> str:
    said = f"{ended.stdout}\n--- {ended.returncode}\n{ended.stderr}"
    return said.replace(str(place), "PLACE")


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def differing(before: Path, after: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each file that is not the same in both, with what moved in it."""
    parts = [
        {path.relative_to(side) for path in side.rglob("*") if path.is_file()}
        for side in (before, after)
    ]
    for name in sorted(parts[0] | parts[1]):
        if name.parts[0] == "logs":
            continue
        old, new = (_text(side / name, side) for side in (before, after))
        if old != new:
            yield str(name), list(difflib.unified_diff(old, new, lineterm="", n=1))[2:]


def _text(path: Path, side: Path) -> list[str]:
    if not path.exists():
        return ["(no such file)"]
    text = path.read_text(encoding="utf-8", errors="replace").replace(str(side), "SIDE")
    for pattern, instead in _PASSING:
        text = pattern.sub(instead, text)
    return text.splitlines()


def main() -> int:
    """Record, or tell what differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record")
    record.add_argument("folder", type=Path)
    record.add_argument("--samples", type=Path, help="conversations to import; else none are")
    record.add_argument("--logs", type=Path, help="logs for the commands; else those of this run")
    record.add_argument(
        "--part", choices=["arms", "imports", "commands", "errors"], action="append"
    )
    diff = commands.add_parser("diff")
    diff.add_argument("before", type=Path)
    diff.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "diff":
        count = 0
        for name, lines in differing(given.before.resolve(), given.after.resolve()):
            count += 1
            print(f"=== {name}: {len(lines)} lines", *lines[:MOST_SHOWN], sep="\n")
        print(f"{count} files differ")
        return int(count > 0)
    folder = given.folder.resolve()
    logs = folder / "logs"
    parts: dict[str, Callable[[], None]] = {
        "arms": lambda: record_arms(folder / "arms", logs),
        "errors": lambda: record_errors(folder / "errors"),
        "commands": lambda: record_commands(folder / "commands", (given.logs or logs).resolve()),
    }
    if given.samples:
        parts["imports"] = lambda: record_imports(folder / "imports", given.samples.resolve())
    for name, part in parts.items():
        if not given.part or name in given.part:
            print(name, flush=True)
            part()
    return 0


if __name__ == "__main__":
    sys.exit(main())
