"""Do the tests notice when behaviour breaks? Thirty small faults, one at a time.

    python -m benchmarks.mutants          # all of them
    python -m benchmarks.mutants ID ...   # some of them

Each entry of ``mutants.yaml`` says which behaviour it breaks, by which edit of one file, and which
tests are run for it. The package and the tests are copied, the edit is made in the copy, and the
tests are run there until one fails. Without a fault they run first and must pass. Exits with 1 if
a fault survives. When the faults were chosen, 19 of 30 were killed, in 19 minutes on a busy machine
of two cores; for each of the 11 others a test was written then.

The faults were chosen before anybody looked at what the tests cover. Where code is moved or
rewritten, ``file``, ``old``, ``new`` and ``tests`` are moved by hand to where the behaviour stands
then; a fault is never exchanged for another. An ``old`` not found exactly once is an error.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

ROOT = Path(__file__).parents[1]
PACKAGE = "compression_eval"
SECONDS = 1800
"""Time limit of one run of tests; to hang is to fail."""

_WHERE = f"import {PACKAGE}, sys; sys.stdout.write({PACKAGE}.__file__)"
_PYTEST = ["-m", "pytest", "-x", "-q", "-n", "0", "-rfE", "-p", "no:cacheprovider"]
_PYTEST += ["-m", "not slow and not recordings"]


@dataclass(frozen=True)
class Mutant:
    """One fault, with the fields of its entry."""

    id: str
    breaks: str
    file: str
    old: str
    new: str
    tests: Sequence[str]

    def mutated(self) -> str:
        """Return the file's text with the fault.

        Raises:
            SystemExit: The old text is not found exactly once.
        """
        path = ROOT / self.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if (found := text.count(self.old)) != 1:
            sys.exit(f"{self.id}: `old` is found {found} times in {self.file}, expected once")
        changed = text.replace(self.old, self.new)
        compile(changed, self.file, "exec")
        return changed


def run(tests: Sequence[str], mutant: Mutant | None = None) -> tuple[str, float]:
    """Run tests in a copy; return the first that failed, empty if none did, and the seconds."""
    with TemporaryDirectory(prefix="mutant-") as name:
        copy = Path(name)
        for item in ROOT.iterdir():
            if item.name in (PACKAGE, "tests"):
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(item, copy / item.name, ignore=ignored)
            elif item.name != ".git":
                (copy / item.name).symlink_to(item)
        if mutant:
            (copy / mutant.file).write_text(mutant.mutated(), encoding="utf-8")
        # An editable install names the checkout; this comes before it in every process.
        env = {**os.environ, "PYTHONPATH": name, "PY_COLORS": "0"}
        where = subprocess.check_output([sys.executable, "-c", _WHERE], cwd="/", env=env, text=True)
        if not Path(where).is_relative_to(copy):
            sys.exit(f"{PACKAGE} is imported from {where}, not from the copy")
        command, begun = [sys.executable, *_PYTEST, *tests], time.monotonic()
        try:
            done = subprocess.run(
                command, cwd=copy, env=env, capture_output=True, check=False, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"no end within {SECONDS} s", SECONDS
        output = done.stdout.decode(errors="replace")
        if done.returncode not in (0, 1, 2):  # no tests, or a wrong option
            sys.exit(f"pytest ended with {done.returncode}:\n{output[-2000:]}")
        first = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
        failed = first[1] if first else "not collected"
        return failed if done.returncode else "", time.monotonic() - begun


def main() -> None:
    """Run the faults that are named, and print what became of them."""
    parser = argparse.ArgumentParser(description="Run tests on a copy with one fault at a time.")
    parser.add_argument("ids", nargs="*", metavar="ID", help="all of them by default")
    named = parser.parse_args().ids
    entries = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    mutants = {entry["id"]: Mutant(**entry) for entry in entries}
    if unknown := sorted(set(named) - set(mutants)):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(mutants)}")
    chosen = [mutants[name] for name in named or mutants]
    for mutant in chosen:
        mutant.mutated()  # all errors before any test is run
    failed, seconds = run(sorted({test for mutant in chosen for test in mutant.tests}))
    if failed:
        sys.exit(f"{failed}: fails without a fault, so nothing can be told")
    print(f"{'without a fault':<24}{'passed':<10}{seconds:>6.0f} s", flush=True)
    survivors = []
    for mutant in chosen:
        failed, seconds = run(mutant.tests, mutant)
        survivors += [] if failed else [mutant]
        state = "killed" if failed else "survived"
        print(f"{mutant.id:<24}{state:<10}{seconds:>6.0f} s  {failed}".rstrip(), flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} killed")
    for mutant in survivors:
        print(f"  {mutant.id}: {mutant.breaks}")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
