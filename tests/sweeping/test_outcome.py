"""What a sweep says at its end: scores, failures, and commands that can be pasted."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compression_eval.cli import main
from tests.e2e import small
from tests.e2e.scripted import (
    COMPRESSES,
    GRADES,
    Call,
    Scripts,
    is_reading,
    proper_compression,
    proper_grading,
)
from tests.sweeping.commanding import run, samples, scripted_models, settings_file

pytestmark = pytest.mark.slow

FAILING = """
def failing(messages):
    raise RuntimeError("no quota left")
"""


def commands(output: str) -> list[list[str]]:
    """Return the commands that are printed below "Go on with:"."""
    lines = output.partition("Go on with:\n")[2]
    return [shlex.split(line) for line in lines.splitlines() if line.strip()]


def test_an_arm_that_gave_nothing_is_an_error_with_its_reason(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FAILING, encoding="utf-8")
    arms = [
        {"compressor": "anchored", "args": small.BUDGETS},
        f"{tmp_path}/mine.py@failing",
        {"compressor": "tail", "args": {"tail_tokens": 60}},
    ]
    file = str(settings_file(tmp_path, tiny, arms=arms))
    ended = run("sweep", file)
    assert ended.code == 1
    (row,) = [line for line in ended.output.splitlines() if " of 6" in line]
    assert row.split()[-8:] == ["-", "-", "-", "-", "-", "6", "of", "6"]
    assert "2 of 2 compressions failed: RuntimeError: no quota left" in ended.output
    assert ended.output.count("compressions failed") == 1
    assert "mine.py@failing: none of the 6 samples has a grade" in ended.errors.splitlines()[-3]
    assert [c for c in commands(ended.output) if "mine.py@failing" in " ".join(c)] == []
    # What it says about trying again is so.
    (remove,) = [line for line in ended.errors.splitlines() if line.startswith("  rm ")]
    again = run("sweep", file)
    assert again.code == 1
    assert len(samples(tmp_path / "sweep")) == 18
    assert "done     18" in again.output
    Path(shlex.split(remove)[1]).unlink()
    (tmp_path / "mine.py").write_text(FAILING, encoding="utf-8")
    once_more = run("sweep", file)
    assert "done     12" in once_more.output
    assert "RuntimeError: no quota left" in once_more.errors


def test_an_arm_with_failures_has_the_same_mean_as_in_the_report(tmp_path: Path) -> None:
    short = "assert len(messages) < 12; return messages[:2] + messages[6:]"
    (tmp_path / "mine.py").write_text(f"def short(messages): {short}", encoding="utf-8")
    long = small.conversation("long")
    long["messages"] += [{"role": "user", "content": "Go on."}]
    for name in ("tiny", "long"):
        fixture = small.write(tmp_path / "data", name, fixture=long if name == "long" else None)
    arms = [f"{tmp_path}/mine.py@short", {"compressor": "tail", "args": {"tail_tokens": 60}}]
    ended = run("sweep", str(settings_file(tmp_path, fixture.parent, arms=arms)))
    assert run("report", str(tmp_path / "sweep"), "--out", str(tmp_path / "out")).code == 0
    of_arm = json.loads((tmp_path / "out" / "figures.json").read_text("utf-8"))["of_arm"]
    knowledge = {name: each["estimates"]["knowledge"]["mean"] for name, each in of_arm.items()}
    rows = {line.split()[0]: line.split() for line in ended.output.splitlines() if line[:1].strip()}
    assert knowledge["mine.py@short"] > 0
    for name, mean in knowledge.items():
        if name in ("mine.py@short", "tail"):
            assert rows[name][1] == f"{mean:.2f}"
    assert rows["mine.py@short"][-3:] == ["6", "of", "12"]


def test_a_share_of_failures_can_be_made_an_error(
    scripts: Scripts, tiny: Path, tmp_path: Path
) -> None:
    def grade(call: Call) -> str:
        asked = "Which source file" in call.text and not is_reading(call)
        return "{}" if asked else proper_grading(call)

    scripts[GRADES].reply = grade
    file = str(settings_file(tmp_path, tiny, **scripted_models()))
    ended = run("sweep", file)
    assert ended.code == 0, ended.errors
    assert ended.output.count("2 of 6 gradings failed: ") == 2
    assert ended.output.count("  2 of 6") == 2 + 2
    strict = run("sweep", file, "--max-failed", "0.3")
    assert strict.code == 1
    assert "2 of 6 samples have no grade, more than max_failed=0.3" in strict.errors
    assert run("sweep", file, "--max-failed", "0.4").code == 0


def test_what_is_printed_can_be_pasted_and_fits_a_terminal(
    scripts: Scripts, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts[COMPRESSES].reply = proper_compression
    monkeypatch.chdir(tmp_path)
    arms = [
        {"compressor": "anchored", "args": {"tail_tokens": tail, "summary_tokens": 200}}
        for tail in (60, 70)
    ]
    given = scripted_models() | {"arms": arms, "controls": True, "log_dir": "logs/a sweep"}
    models = [*given.pop("models"), "embedded/lexical"]
    ended = run("sweep", str(settings_file(tmp_path, tiny, **given, models=models)))
    assert ended.code == 0, ended.errors
    table, _, rest = ended.output.partition("Go on with:")
    assert all(len(line) <= 80 for line in table.partition("arm ")[2].splitlines())
    for name in ("full", "none", "anchored (tail_tokens=60)", "[embedded/lexical]"):
        assert name in table
    found = commands(ended.output)
    compares = [command for command in found if "compare" in command]
    assert len(compares) == len(models), "the two arms under each model"
    for _, *arguments in compares:
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code in (0, 1, 3), result.output
    assert ["inspect", "view", "--log-dir", "logs/a sweep"] in found
    assert "report" in rest


def test_the_only_arm_is_compared_with_its_control_at_the_same_budget(
    tiny: Path, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"arms": ["anchored"], "budgets": [170, 220], "controls": True}
    ended = run("sweep", str(settings_file(tmp_path, tiny, **given)), "--display", "none")
    pairs = [(each[4], each[8]) for each in commands(ended.output) if "compare" in each]
    assert pairs == [
        (f"tail (target_tokens={target})", f"anchored (target_tokens={target})")
        for target in (170, 220)
    ], ended
