"""A grader that changed between two runs, taken out by grading both again."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog, read_eval_log

from tests.analysis.comparison.arms import as_json, compared, evaluated, refused, swinging
from tests.analysis.embedded import TAIL, embedded
from tests.e2e import scripted, small
from tests.e2e.scripted import Call, Script, criteria_in, facts_in, grading

SAMPLES = 4 * small.PROBES
"""Of each of the runs below: four epochs."""


def answers(mark: str) -> Callable[[Call], str]:
    """Return a model whose answers can be told apart by a word; all say the same."""
    return lambda _: f"The code was E4401 in auth/session.py; {mark}."


@pytest.fixture(scope="module")
def lenient(folder: Path) -> EvalLog:
    return evaluated(folder / "lenient", answer=answers("first"), grader=swinging(4.5, 3.0))


@pytest.fixture(scope="module")
def harsh(folder: Path) -> EvalLog:
    """The same arm whose grader gives a point less."""
    return evaluated(folder / "harsh", answer=answers("second"), grader=swinging(3.5, 2.0))


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> Script:
    """The model that grades both sides again."""
    script = Script(lambda call: grading(criteria_in(call.text), facts_in(call.text), 3))
    monkeypatch.setitem(scripted.SCRIPTS, "again", script)
    return script


def test_other_graders_are_warned_of(folder: Path, harsh: EvalLog) -> None:
    roles = {**small.ROLES, "grader": "scripted/other"}
    scripted.SCRIPTS["other"] = Script(swinging(3.5, 2.0))
    other = evaluated(folder / "other", answer=answers("third"), model_roles=roles)
    sides = (other.location, "--to", harsh.location)
    assert "grader" in refused(compared(*sides))
    text = compared(*sides, "--allow", "grader").stdout
    assert "WARNING the graders of base and new differ" in text


def test_grading_both_again_takes_the_grader_out(
    lenient: EvalLog, harsh: EvalLog, again: Script, controls: Path
) -> None:
    sides = (lenient.location, "--to", harsh.location)
    before = [Path(str(log.location)).read_bytes() for log in (lenient, harsh)]
    assert as_json(*sides)[0] == 1, "the harsher grader makes the same arm look worse"
    done = compared(*sides, "--regrade", "scripted/again", "--format", "json")
    assert done.exit_code != 1, done.stderr
    assert f"{2 * SAMPLES} answers again, {SAMPLES} of base, {SAMPLES} of new" in done.stderr
    assert f"by scripted/again: {2 * SAMPLES} calls" in done.stderr
    found = json.loads(done.stdout)
    for side in ("base", "new"):
        assert found[side]["graded_by"] == ["scripted/again"]
        assert found[side]["regraded"] == {
            "graders": ["scripted/again"],
            "answers": SAMPLES,
            "failed": 0,
            "calls": SAMPLES,
        }
    text = compared(*sides, "--regrade", "scripted/again").stdout
    assert "both sides graded again, together and in random order, by scripted/again" in text
    assert [Path(str(log.location)).read_bytes() for log in (lenient, harsh)] == before
    # The controls are graded by the same model, which here finds all alike.
    given = ("--regrade", "scripted/again", "--controls", controls, "--format", "json")
    done = compared(*sides, *given)
    assert f"of new, {small.PROBES} of none, {small.PROBES} of full" in done.stderr
    assert (done.exit_code, json.loads(done.stdout)["decision"]["reader"]["range"]) == (3, 0)


def test_the_sides_are_interleaved_and_the_grader_is_blind(
    lenient: EvalLog, harsh: EvalLog, again: Script
) -> None:
    orders = []
    for _ in range(2):
        again.calls.clear()
        one_by_one = ("--regrade", "scripted/again", "--max-connections", "1")
        compared(lenient.location, "--to", harsh.location, *one_by_one)
        orders.append(["; first." in call.text for call in again.calls])
    assert orders[0] == orders[1], "the order has a seed"
    assert sum(orders[0]) == SAMPLES
    changes = sum(one != other for one, other in zip(orders[0], orders[0][1:], strict=False))
    assert changes > SAMPLES / 2, "the sides come in turns"
    first, second = (
        {call.text.replace(mark, "") for call in again.calls if mark in call.text}
        for mark in ("; first.", "; second.")
    )
    # The states are numbered as they were written; but for that nothing tells the sides apart.
    assert {_without_numbers(text) for text in first} == {_without_numbers(text) for text in second}


def _without_numbers(text: str) -> str:
    return "".join(letter for letter in text if not letter.isdigit())


def test_the_embedded_grader_says_the_same_again(tmp_path: Path) -> None:
    tiny = small.write(tmp_path / "data")
    base = embedded(tmp_path / "base", tiny, epochs=2, **TAIL).location
    new = embedded(tmp_path / "new", tiny, epochs=2, compressor="none").location
    _, found = as_json(base, "--to", new)
    code, again = as_json(base, "--to", new, "--regrade", "embedded/lexical")
    assert again["base"].pop("regraded")["answers"] == 2 * small.PROBES
    assert again["new"].pop("regraded")["failed"] == 0
    for each in (found, again):
        for side in ("base", "new"):
            each[side].pop("regraded", None)
            each[side].pop("settings")  # says what grades them
    assert again == found
    assert code == found["exit_code"]


def test_what_failed_before_is_not_graded_and_keeps_its_reason(
    folder: Path, lenient: EvalLog, again: Script
) -> None:
    def compresses(call: Call) -> Any:
        return scripted.proper_compression(call) if call.number % 2 else ""

    failing = evaluated(folder / "failing", answer=answers("fourth"), compresses=compresses)
    done = compared(
        *(lenient.location, "--to", failing.location),
        *("--regrade", "scripted/again", "--format", "json"),
    )
    found = json.loads(done.stdout)["new"]
    read = read_eval_log(failing.location)
    scores = [(sample.scores or {})["six_dimensions"] for sample in read.samples or []]
    kept = [score.reason for score in scores if score.reason]
    assert kept
    assert found["regraded"]["answers"] == SAMPLES - len(kept)
    assert found["failures"]["failed"] == len(kept)
    assert set(found["failures"]["reasons"]) == set(kept)


def test_the_settings_of_who_graded_again_are_told(
    lenient: EvalLog, harsh: EvalLog, again: Script
) -> None:
    done = compared(
        *(lenient.location, "--to", harsh.location, "--regrade", "scripted/again"),
        *("--temperature", "0.5", "--max-connections", "3", "--format", "json"),
        *("--model-base-url", "https://me:hunter2@example.org/v1"),
    )
    (named,) = json.loads(done.stdout)["new"]["regraded"]["graders"]
    name = "scripted/again temperature=0.5 base_url=https://example.org/v1 #"
    assert named.startswith(name)
    assert "hunter2" not in done.output


def test_gradings_that_fail_are_failures(lenient: EvalLog, harsh: EvalLog, again: Script) -> None:
    again.reply = lambda call: (
        "No."
        if "; first." in call.text
        else grading(criteria_in(call.text), facts_in(call.text), 3)
    )
    sides = (lenient.location, "--to", harsh.location, "--regrade", "scripted/again")
    assert refused_last(compared(*sides)) == (
        "--regrade: base: every grading failed: grader_failed: not_json"
    )
    again.reply = lambda call: (
        "No."
        if "; first." in call.text and "Which error" in call.text
        else grading(criteria_in(call.text), facts_in(call.text), 3)
    )
    found = json.loads(compared(*sides, "--format", "json").stdout)
    assert found["base"]["regraded"]["failed"] == 4
    assert found["base"]["regraded"]["calls"] == SAMPLES + 4 * 2
    assert found["base"]["failures"]["ungraded_reasons"] == {"grader_failed: not_json": 4}
    assert found["outcome"] == "cannot tell"


def refused_last(done: Any) -> str:
    assert done.exit_code == 2, done.stdout
    assert not done.stdout
    return str(done.stderr.splitlines()[-1]).removeprefix("Error: ")


def test_a_panel_grades_again(lenient: EvalLog, harsh: EvalLog, again: Script) -> None:
    scripted.SCRIPTS["second"] = Script(
        lambda call: grading(criteria_in(call.text), facts_in(call.text), 4)
    )
    done = compared(
        *(lenient.location, "--to", harsh.location, "--format", "json"),
        *("--regrade", "scripted/again,scripted/second", "--max-connections", "3"),
    )
    found = json.loads(done.stdout)
    assert found["base"]["regraded"]["calls"] == 2 * SAMPLES
    assert again.most_running <= 3
    leading = next(line for line in found["other_measures"] if line["measure"] == "accuracy")
    assert (leading["base"], leading["new"]) == (3.5, 3.5)


def test_an_interrupt_leaves_nothing(
    lenient: EvalLog, harsh: EvalLog, again: Script, tmp_path: Path
) -> None:
    def interrupted(call: Call) -> str:
        if call.number == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return grading(criteria_in(call.text), facts_in(call.text), 3)

    again.reply = interrupted
    sides = (lenient.location, "--to", harsh.location, "--regrade", "scripted/again")
    out, junit = tmp_path / "page.txt", tmp_path / "junit.xml"
    done = compared(*sides, "--out", out, "--junit", junit)
    assert refused_last(done) == "interrupted while grading; nothing was written"
    assert len(again.calls) < 2 * SAMPLES
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--temperature", "1"], "--temperature: only with --regrade"),
        (["--regrade", "nobody/knows"], "'nobody/knows': cannot be used: "),
        (["--regrade", "embedded/lexical", "-M", "x"], "-M: expected NAME=VALUE, got "),
    ],
)
def test_options_are_checked_before_a_call(
    good: EvalLog, bad: EvalLog, options: list[str], message: str
) -> None:
    assert message in refused_last(compared(good.location, "--to", bad.location, *options))


def test_what_cannot_be_compared_is_not_graded(folder: Path, good: EvalLog, again: Script) -> None:
    elsewhere = evaluated(folder / "elsewhere", "tiny", "small", epochs=1)
    sides = (good.location, "--to", elsewhere.location, "--regrade", "scripted/again")
    assert "fixtures" in refused_last(compared(*sides))
    assert again.calls == []
