"""``compression-eval probes check``, as a user runs it."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compression_eval.cli import main
from tests.fixtures.building import (
    Json,
    assistant,
    bank_data,
    call,
    probe,
    result,
    system,
    user,
    write_pair,
)


def test_fixtures_without_a_bank_are_passed_over(tmp_path: Path) -> None:
    write_pair(
        tmp_path, {"name": "asked", "messages": messages()}, bank_data(good(), fixture="asked")
    )
    alone = write_pair(tmp_path, {"name": "alone", "messages": messages()}, bank_data(good()))
    alone.with_name("alone.probes.json").unlink()
    found = check(tmp_path)
    assert found.exit_code == 0, found.output
    assert f"skipped (1):\n  {alone}: no probe bank" in found.stderr
    assert "\n1 checked: 0 errors" in found.stdout
    assert check(alone).exit_code == 1


FILLER = "One more look at the worker pool, and nothing new came out of it. " * 6


def check(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["probes", "check", *map(str, arguments)])


def messages(**said: str) -> list[Json]:
    """Return a session whose facts are in its first, second and last third, before the tail."""
    return [
        system("You are a coding agent. The house style is four spaces."),
        user(said.get("early", "The login answers E4401. Please fix it in auth/session.py.")),
        assistant(FILLER),
        assistant(FILLER, call("c1", command="cat limits.toml")),
        result(
            "c1", said.get("middle", "retries = 7\nMAX_TOKENS=2600\nmail: anna@ferrant-freight.com")
        ),
        assistant(FILLER),
        user(said.get("late", "We drop the queue, because its lag was 45 s at night.")),
        assistant(FILLER),
        assistant("Still to do: write docs/retry.md."),
    ]


def good() -> list[Json]:
    return [
        probe("r", "recall", "Which code did it answer?", {"fact": "E4401", "evidence": [1]}),
        probe("a", "artifact", "Which file?", {"fact": "auth/session.py", "evidence": [1]}),
        probe("m", "recall", "How many retries?", {"fact": "retries = 7", "evidence": [4]}),
        probe("d", "decision", "Why no queue?", {"fact": "45 s", "evidence": [6]}),
    ]


def pair(folder: Path, probes: list[Json], **fields: Any) -> Path:
    fixture = {"name": "demo", "messages": messages(), **fields}
    return write_pair(folder, fixture, bank_data(probes, fixture="demo"))


def warned(path: Path, *arguments: object) -> list[str]:
    """Return the findings of a check, without the names of files."""
    done = check(path, "--tail-tokens", 30, *arguments)
    found = [line for line in done.stdout.splitlines() if line.startswith(("error", "warning"))]
    folder = f"{path.parent}/"
    return [line.replace(folder, "") for line in found]


def test_a_sound_bank_has_only_what_it_lacks_said(tmp_path: Path) -> None:
    path = pair(tmp_path, good())
    assert warned(path) == [
        "warning: demo.probes.json: probes: none is of type continuation",
        "warning: demo.probes.json: probes: 4 probes, 8 to 14 at a cut are expected",
    ]
    done = check(path, "--tail-tokens", 30)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[2:] == [
        "demo: 4 probes: recall 2, artifact 1, continuation 0, decision 1",
        "demo: facts first said: early 2, middle 1, late 1, kept 0",
        "demo: at cut: 9 4",
        "demo: answered by the kept tail: 0 (0%), by the system prompt alone: 0",
        "1 checked: 0 errors, 2 warnings",
        "Go on with:",
        f"  inspect eval compression_eval/compression -T fixtures={path}",
    ]


@pytest.mark.parametrize(
    ("extra", "place", "text"),
    [
        (
            probe("x", "continuation", "What is still to do?", "docs/retry.md"),
            "(",
            "every fact is also in the kept tail (messages 8 to 8)",
        ),
        (
            probe("x", "recall", "How far to indent?", "four spaces"),
            "(",
            "the system prompt alone contains every fact",
        ),
        (
            probe("x", "artifact", "Which file?", "auth/session.py", "session.py"),
            "facts[0] and [1]",
            "overlap: whoever gives the longer has given the shorter",
        ),
    ],
)
def test_each_defect_is_named(tmp_path: Path, extra: Json, place: str, text: str) -> None:
    lines = [line for line in warned(pair(tmp_path, [*good(), extra])) if "('x')" in line]
    assert len([line for line in lines if place in line and text in line]) == 1, lines


def test_errors_of_a_bank_fail_the_command(tmp_path: Path) -> None:
    leaking = probe("x", "recall", "Is it E4401?", {"fact": "E4401", "evidence": [1]})
    done = check(pair(tmp_path, [leaking]))
    assert done.exit_code == 1
    assert "the question gives away 'E4401'" in done.stdout


def test_a_file_that_cannot_be_read_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    pair(tmp_path, good())
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    done = check(tmp_path)
    assert done.exit_code == 1
    assert "not JSON" in done.stdout
    assert "demo: 4 probes" in done.stdout
    assert "2 checked: 1 errors" in done.stdout
    assert "Traceback" not in done.output


@pytest.mark.slow
def test_the_shipped_banks_are_without_errors() -> None:
    done = check()
    assert done.exit_code == 0, done.stdout
    found = [line for line in done.stdout.splitlines() if line.startswith("warning")]
    kept = [line for line in found if "every fact is also in the kept tail" in line]
    assert len(kept) <= 6, kept
    # Two that a language model answers in words that the look-up does not follow.
    names = ("decision-calls-ceiling", "decision-wet-detection")
    others = [line for line in found if line not in kept]
    assert all("not qualified" in line and any(n in line for n in names) for line in others), others
