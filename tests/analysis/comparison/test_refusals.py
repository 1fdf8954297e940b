"""What cannot be compared is refused with what differs, and can be allowed by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog

from compression_eval.versioning import COMPARABLE
from tests.analysis.comparison.arms import as_json, changed, compared, evaluated, refused
from tests.e2e import scripted, small
from tests.e2e.scripted import Script


@pytest.fixture(scope="module")
def once(folder: Path) -> EvalLog:
    return evaluated(folder / "plain", epochs=1)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("language", {"language": "zh"}, "base en, new zh"),
        ("min_removed", {"min_removed": 0.05}, "base 0.1, new 0.05"),
        (
            "state_facts",
            {"state_facts": "reader", "grader": scripted.proper_grading},
            "base looked up, new read by a model",
        ),
    ],
)
def test_another_setting(
    folder: Path, once: EvalLog, name: str, given: dict[str, Any], said: str
) -> None:
    other = evaluated(folder / f"other_{name}", **given, epochs=1)
    error = refused(compared(once.location, "--to", other.location))
    assert error.startswith("cannot be compared: ")
    assert f"{name} ({said})" in error
    assert f"--allow {name}" in error
    if name == "state_facts":
        text = compared(once.location, "--to", other.location, "--allow", name).stdout
        assert "WARNING only in new a model read which facts are there" in text


def test_another_grader_is_named_and_can_be_allowed(folder: Path, once: EvalLog) -> None:
    scripted.SCRIPTS["other"] = Script(scripted.proper_grading)
    roles = {**small.ROLES, "grader": "scripted/other"}
    other = evaluated(folder / "other_grader", model_roles=roles, epochs=1)
    error = refused(compared(once.location, "--to", other.location))
    assert "grader (base scripted/grades, new scripted/other)" in error
    _, found = as_json(once.location, "--to", other.location, "--allow", "grader")
    assert found["allowed"] == {"grader": "base scripted/grades, new scripted/other"}


def test_other_fixtures_and_what_both_have(folder: Path, once: EvalLog) -> None:
    more = evaluated(folder / "more", "tiny", "other", epochs=1)
    error = refused(compared(once.location, "--to", more.location))
    assert "fixtures (only in new: fixture other)" in error
    assert "probes" not in error.partition("(to compare")[0]
    _, found = as_json(once.location, "--to", more.location, "--allow", "fixtures")
    assert found["other_measures"][0]["probes"] == small.PROBES


def test_a_probe_that_was_edited_and_one_that_is_gone(folder: Path, once: EvalLog) -> None:
    bank = small.bank()
    bank["probes"][0]["question"] = "Which code stood in the log of the logins?"
    del bank["probes"][2]
    data = small.write(folder / "asked", "tiny", probes=bank).parent
    other = evaluated(folder / "other_bank", data=data, epochs=1)
    error = refused(compared(once.location, "--to", other.location))
    assert "probes (only in base: probe tiny@11 next, changed: probe tiny@11 code)" in error


def _another_run(change: Callable[[EvalLog], None]) -> Callable[[EvalLog], None]:
    def both(log: EvalLog) -> None:
        log.eval.task_id = "another"
        change(log)

    return both


def _status(status: Any) -> Callable[[EvalLog], None]:
    return lambda log: setattr(log, "status", status)


def _another_rubric(log: EvalLog) -> None:
    for sample in log.samples or []:
        metadata = (sample.scores or {})["six_dimensions"].metadata or {}
        metadata["rubric_digest"] = "0" * 64


def _another_release(log: EvalLog) -> None:
    log.eval.task_version = "1-abc"


def _more_cycles(log: EvalLog) -> None:
    for sample in log.samples or []:
        sample.metadata["cycles"] = 2


def _older_record(log: EvalLog) -> None:
    for sample in log.samples or []:
        sample.store["ProbeRecord:record_version"] = 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_status("started"), "still going on"),
        (_status("cancelled"), "ended early, cancelled; finish it with: inspect eval-retry"),
        (_another_rubric, "new 000000000000"),
        (_another_release, f"release (base {COMPARABLE}, new 1)"),
        (_more_cycles, "cycles (base 1, new 2)"),
        (_older_record, "record_version: is 0, this version of compression_eval reads 1, 2, 3"),
    ],
)
def test_logs_that_do_not_fit(
    once: EvalLog, tmp_path: Path, change: Callable[[EvalLog], None], said: str
) -> None:
    other = changed(once, tmp_path, _another_run(change))
    assert said in refused(compared(once.location, "--to", other))


def test_only_failed_samples(folder: Path, once: EvalLog) -> None:
    failed = evaluated(folder / "failed", epochs=1, compresses=lambda _: "", status="error")
    said = "none of the 3 samples of 'anchored' has a score (3 x compression_failed: empty)"
    assert refused(compared(once.location, "--to", failed.location)) == f"new: {said}"
    assert refused(compared(failed.location, "--to", once.location)) == f"base: {said}"


def test_the_same_run_on_both_sides(once: EvalLog) -> None:
    folder = Path(once.location).parent
    error = refused(compared(folder, "--to", folder))
    assert error == f"{once.location}: the same run is on both sides"


def test_several_arms_on_one_side(folder: Path, once: EvalLog, bad: EvalLog) -> None:
    arms = "'anchored (tail_tokens=60)', 'anchored (tail_tokens=61)'"
    error = refused(compared(once.location, bad.location, "--to", bad.location))
    assert error == f"base: the logs are of 2 arms, {arms}; name one of them with --base-arm"
    logs = (once.location, bad.location)
    chosen = ("--base-arm", "anchored (tail_tokens=60)", "--new-arm", "=61")
    code, found = as_json(*logs, "--to", *logs, *chosen)
    assert code == 3
    assert (found["base"]["logs"], found["new"]["logs"]) == ([once.location], [bad.location])
    error = refused(compared(*logs, "--to", *logs, "--base-arm", "tail"))
    assert error == f"--base-arm: 'tail' fits 2 arms, {arms}; give more of the name"
    error = refused(compared(*logs, "--to", *logs, "--base-arm", chosen[1], "--new-arm", "mask"))
    assert error == f"--new-arm: no log of the arm 'mask'; the arms are {arms}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a.eval",), "Missing option '--to'"),
        (("a.eval", "--to", "b.eval", "--allow", "anything"), "is not one of 'unfinished'"),
        (("a.eval", "--to", "b.eval"), "a.eval: no such file or folder"),
    ],
)
def test_what_is_asked_wrongly(arguments: tuple[str, ...], said: str) -> None:
    done = compared(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert isinstance(done.exception, SystemExit)
