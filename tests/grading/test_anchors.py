"""Answers of known worth that a run has graded beside its own."""

import json
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai import eval_retry, score
from inspect_ai.log import EvalLog, EvalSample, read_eval_log
from inspect_ai.model import ModelOutput

from compression_eval import compression
from compression_eval.errors import DataError
from compression_eval.grading.anchors import AnchorGrading, anchor_of, chosen_anchors
from compression_eval.grading.scorers import DIMENSION_KEYS, six_dimensions
from tests.e2e import scripted, small
from tests.e2e.scripted import ANSWERS, GRADES, Call, Script, criteria_in, facts_in, grading
from tests.grading.samples import MockGrader, record, reply, run, samples

PREFIX = "compression_eval/anchors_"


def graded_anchors(log: EvalLog, scorer: str = "six_dimensions") -> dict[str, AnchorGrading]:
    """Return what came of a log's anchors, by their id."""
    found = [beside(sample, scorer) for sample in samples(log)]
    return {each.id: each for each in found if each is not None}


def beside(sample: EvalSample, scorer: str = "six_dimensions") -> AnchorGrading | None:
    """Return what came of a sample's anchor."""
    return anchor_of((sample.scores or {})[scorer])


def anchor_metrics(log: EvalLog) -> dict[str, float]:
    """Return what the run's metrics say about its anchors."""
    assert log.results
    leading = next(item for item in log.results.scores if item.name == DIMENSION_KEYS[0])
    return {
        name.removeprefix(PREFIX): float(metric.value)
        for name, metric in leading.metrics.items()
        if name.startswith(PREFIX)
    }


def by_the_key(more: float) -> Any:
    """Return a grader that gives anchors their marks and as much more, and other answers 4."""
    every = {each.answer.answer: each for each in chosen_anchors(75)}

    def answer(request: str) -> str:
        asked = json.loads(request.splitlines()[-1])
        known = every.get(asked["model_response"])
        ids = asked["rubric_criteria"]
        right = known.answer.scores if known else dict.fromkeys(ids, 4.0)
        facts = ["stated"] * len(asked["ground_truth"]["expected_facts"])
        return reply({name: min(max(right[name] + more, 0), 5) for name in ids}, facts=facts)

    return answer


def records(number: int, epochs: int = 1) -> Any:
    return {
        (name, epoch): record(fixture=name)
        for name in map(str, range(number))
        for epoch in range(1, epochs + 1)
    }


def test_they_are_spread_and_a_few_are_the_first_of_many() -> None:
    eight, twelve = chosen_anchors(8), chosen_anchors(12)
    assert [each.id for each in eight] == [each.id for each in twelve[:8]]
    assert len({each.id for each in twelve}) == 12
    for type_ in ("recall", "artifact", "continuation", "decision"):
        assert sum(each.probe.type == type_ for each in eight) == 2
    marks = [each.mark for each in twelve]
    assert min(marks) < 2
    assert max(marks) > 3.5
    assert sum(1 < mark < 4.5 for mark in marks) > 8, "at the ends a grader has no room to change"
    assert len({each.language for each in twelve}) == 3
    assert len({each.digest for each in chosen_anchors(75)}) == 75


@pytest.mark.parametrize("number", [-1, 1.5, "3", True, 76])
def test_a_number_that_cannot_be_had_is_refused(number: Any) -> None:
    with pytest.raises(DataError, match=r"^anchors: "):
        six_dimensions(anchors=number)


def test_a_run_has_them_graded_beside_its_own_answers(tmp_path: Path) -> None:
    exact = MockGrader(by_the_key(0))
    log = run(six_dimensions(anchors=3), records(4, epochs=2), tmp_path, exact, epochs=2)
    found = graded_anchors(log)
    assert set(found) == {each.id for each in chosen_anchors(3)}
    assert len(exact.requests) == 4 * 2 + 3
    for each in found.values():
        assert each.graded == each.expected
        assert set(each.difference.values()) == {0.0}
        assert each.graders == ["mockllm/grader"]
    assert anchor_metrics(log) == {
        "off_by": 0,
        "stderr": 0,
        "graded": 3,
        "failed": 0,
    }
    # They are beside the scores and never in them.
    for sample in samples(log):
        assert (sample.scores or {})["six_dimensions"].as_dict()["overall"] == 4


def test_a_lenient_grader_is_seen(tmp_path: Path) -> None:
    lenient = MockGrader(by_the_key(2.2))
    log = run(six_dimensions(anchors=6), records(6), tmp_path, lenient)
    found = anchor_metrics(log)
    differences = [each.difference["knowledge"] for each in graded_anchors(log).values()]
    assert found["off_by"] == pytest.approx(sum(differences) / 6)
    assert found["off_by"] == pytest.approx(2.0, abs=0.5)
    assert found["stderr"] == pytest.approx(statistics.stdev(differences) / 6**0.5)
    assert found["stderr"] > 0, "some marks are so high that there was less room above them"


def test_the_grader_cannot_tell_them_from_other_answers(tmp_path: Path) -> None:
    grader = MockGrader(by_the_key(0))
    run(six_dimensions(anchors=3), records(3), tmp_path, grader)
    shapes = set()
    for request in grader.requests:
        said = [message.text for message in request]
        assert not re.search(r"anchor|calibrat", "".join(said), re.IGNORECASE)
        user = [list(json.loads(line)) for line in said[-1].splitlines()]
        shapes.add((len(request), json.dumps(user)))
    assert len(shapes) == 1, "every request has the same lines with the same keys"


def test_a_grader_that_fails_on_an_anchor_leaves_the_answer_its_score(tmp_path: Path) -> None:
    texts = {each.answer.answer for each in chosen_anchors(1)}

    def answer(request: str) -> str:
        last = request.splitlines()[-1]
        # A correction is no JSON, and only this answer is asked for again.
        unusable = not last.startswith("{") or json.loads(last)["model_response"] in texts
        return "No." if unusable else by_the_key(0)(request)

    grader = MockGrader(answer)
    log = run(six_dimensions(anchors=2), records(2), tmp_path, grader)
    failed, graded = sorted(graded_anchors(log).values(), key=lambda each: not each.failure)
    assert (failed.failure, failed.attempts, failed.difference) == ("not_json", 3, {})
    assert not graded.failure
    assert anchor_metrics(log)["graded"] == anchor_metrics(log)["failed"] == 1
    assert all((sample.scores or {})["six_dimensions"].value for sample in samples(log))


def test_a_failed_compression_still_carries_one(tmp_path: Path) -> None:
    state = record()["state"].model_copy(update={"status": "empty", "failure": "nothing came"})
    grader = MockGrader(by_the_key(0))
    log = run(
        six_dimensions(anchors=1),
        {("a", 1): record(state=state), ("b", 1): record()},
        tmp_path,
        grader,
    )
    assert len(graded_anchors(log)) == 1


def test_a_log_is_scored_again_with_anchors(tmp_path: Path) -> None:
    first = MockGrader([reply(4)] * 2)
    made = run(six_dimensions(), records(2), tmp_path, first)
    assert graded_anchors(made) == {}
    assert anchor_metrics(made) == {}
    second = MockGrader(by_the_key(0.5))
    again = score(
        read_eval_log(made.location),
        six_dimensions(anchors=2),
        model_roles={"grader": second.model},
        action="append",
        display="log",
    )
    assert len(graded_anchors(again, "six_dimensions1")) == 2
    assert graded_anchors(again) == {}


@pytest.mark.slow
def test_from_the_command_line_with_the_embedded_grader(tmp_path: Path) -> None:
    fixture = small.write(tmp_path / "data")
    log_dir = tmp_path / "logs"
    command = [sys.executable, "-m", "inspect_ai"]
    given = ["-T", f"fixtures={fixture}", "-T", "compressor=full", "-T", "anchors=3"]
    subprocess.run(
        [*command, "eval", small.TASK, *given, "--epochs", "1", "--log-dir", str(log_dir)],
        check=True,
        capture_output=True,
    )
    (path,) = log_dir.glob("*.eval")
    log = read_eval_log(str(path))
    found = graded_anchors(log)
    assert len(found) == 3
    copy = tmp_path / "again.eval"
    arguments = [
        *("--scorer", "compression_eval/six_dimensions", "-S", "anchors=3"),
        *("--action", "overwrite", "--output-file", str(copy)),
        *("--model-role", "grader=embedded/lexical"),
    ]
    subprocess.run(
        [*command, "score", str(path), *arguments],
        check=True,
        capture_output=True,
    )
    assert graded_anchors(read_eval_log(str(copy))) == found


def test_the_task_takes_them(tmp_path: Path) -> None:
    def graded(call: Call) -> str:
        return grading(criteria_in(call.text), facts_in(call.text), 3)

    fixture = small.write(tmp_path / "data")
    scripted.SCRIPTS.update(scripted.proper_scripts() | {GRADES: Script(graded)})
    log = small.run(tmp_path / "logs", fixture, anchors=2, epochs=2)
    assert len(graded_anchors(log)) == 2
    assert len(scripted.SCRIPTS[GRADES].calls) == small.PROBES * 2 + 2


def test_every_model_and_a_retry_have_the_same_beside_the_same_samples(tmp_path: Path) -> None:
    scripts = scripted.SCRIPTS
    scripts.update(scripted.proper_scripts())
    answer = scripts[ANSWERS].reply
    scripts["other"] = Script(answer)
    fixture = small.write(tmp_path / "data")

    def fail_once(call: Call) -> str | ModelOutput:
        if not call.number:
            raise RuntimeError("once")
        return answer(call)

    created = compression(
        fixtures=str(fixture), compressor_args=small.BUDGETS, state_facts="match", anchors=2
    )
    log_dir = str(tmp_path / "logs")
    given: Any = {"model_roles": small.ROLES, "epochs": 1, "log_dir": log_dir, "display": "plain"}
    both = inspect_eval(created, model=[f"scripted/{ANSWERS}", "scripted/other"], **given)
    again = inspect_eval(created, model="scripted/other", **given)
    scripts["once"] = Script(fail_once)
    named: Any = {"fixtures": str(fixture), "compressor_args": small.BUDGETS, "anchors": 2}
    broken = inspect_eval(
        small.TASK, task_args=named, model="scripted/once", fail_on_error=False, **given
    )
    retried = eval_retry(broken, log_dir=log_dir, display="log")
    found = [
        {each.id: graded.id for each in samples(log) if (graded := beside(each))}
        for log in [*both, *again, *retried]
    ]
    assert [len(each) for each in found] == [2] * 4
    assert all(each == found[0] for each in found)
