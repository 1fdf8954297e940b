"""Inspect's own command, run as a user runs it."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout."""

TIME_LIMIT = 300.0
"""Seconds after which a command hangs."""


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    output: str
    errors: str


def environment(log_dir: Path, **more: str) -> dict[str, str]:
    """Return this process's environment without settings of Inspect, but for a place for logs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INSPECT_")}
    return {**kept, "INSPECT_LOG_DIR": str(log_dir), "INSPECT_DISPLAY": "plain", **more}


def start(
    arguments: Sequence[str], log_dir: Path, cwd: Path = ROOT, **more: str
) -> "subprocess.Popen[str]":
    """Start ``inspect`` with arguments, as if a shell in ``cwd`` had done so."""
    program = Path(sys.executable).with_name("inspect")
    return subprocess.Popen(
        [str(program), *arguments],
        cwd=cwd,
        env=environment(log_dir, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def finish(process: "subprocess.Popen[str]") -> Ended:
    """Wait for a command; one that hangs is stopped."""
    try:
        output, errors = process.communicate(timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        raise AssertionError(f"hangs:\n{output}\n{errors}") from None
    return Ended(process.returncode, output, errors)


def inspect(arguments: Sequence[str], log_dir: Path, cwd: Path = ROOT, **more: str) -> Ended:
    """Run ``inspect`` to its end."""
    return finish(start(arguments, log_dir, cwd, **more))


def logs(log_dir: Path) -> list[Path]:
    """Return the logs in a folder, oldest first."""
    return sorted(log_dir.glob("*.eval"))
