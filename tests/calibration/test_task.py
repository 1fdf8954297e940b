import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog, write_eval_log

from compression_eval.calibration.answers import load_sets
from compression_eval.calibration.task import calibration_task
from compression_eval.cli import main
from compression_eval.errors import DataError
from compression_eval.fixtures.locations import data_folder
from tests.grading.samples import MockGrader

pytestmark = pytest.mark.slow

Marks = Callable[[dict[str, Any], str], float]


@cache
def _marks() -> tuple[dict[tuple[str, str], dict[str, float]], dict[str, str]]:
    """Return the marks by probe and answer, and the probe of each question."""
    items = [(group, item) for group in load_sets() for item in group.answers.answers]
    by_answer = {(item.probe, item.answer): item.scores for _, item in items}
    return by_answer, {group.probes[item.probe].question: item.probe for group, item in items}


def _reference(request: dict[str, Any]) -> dict[str, float]:
    by_answer, by_question = _marks()
    probe = by_question[request["probe_question"]]
    for (asked, answer), scores in by_answer.items():
        if asked == probe and answer in request["model_response"]:
            return scores
    raise AssertionError("an answer that no set holds")


def _grader(marks: Marks, name: str = "mockllm/grader") -> MockGrader:
    def reply(text: str) -> str:
        request = json.loads(text.splitlines()[-1])
        return json.dumps(
            {
                "criterionResults": [
                    {"criterionId": id_, "score": marks(request, id_), "reasoning": "So."}
                    for id_ in request["rubric_criteria"]
                ],
                "facts": [
                    {"factId": asked["id"], "verdict": "stated"}
                    for name in ("expected_facts", "wrong_values")
                    for asked in request["ground_truth"].get(name, [])
                ],
            }
        )

    return MockGrader(reply, name)


def careful(request: dict[str, Any], criterion: str) -> float:
    return _reference(request).get(criterion, 3)


def always_five(request: dict[str, Any], criterion: str) -> float:
    return 5


def lenient(request: dict[str, Any], criterion: str) -> float:
    return min(5, careful(request, criterion) + 1)


def impressed(request: dict[str, Any], criterion: str) -> float:
    """Give a point more where a method is praised."""
    praised = any(word in request["model_response"] for word in ("state of the art", "最先"))
    return lenient(request, criterion) if praised else careful(request, criterion)


def run(tmp_path: Path, *graders: MockGrader, **arguments: Any) -> EvalLog:
    (log,) = inspect_eval(
        calibration_task(**arguments),
        model="mockllm/nobody",
        model_roles={"grader": [grader.model for grader in graders]},
        log_dir=str(tmp_path),
        display="log",
        log_realtime=False,
    )
    assert log.status == "success", log.error
    return log


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.results
    (found,) = log.results.scores
    return {name: float(item.value) for name, item in found.metrics.items()}


def printed(tmp_path: Path) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, ["grader", str(tmp_path), "--format", "json"])
    assert done.exit_code == 0, done.output
    written = json.loads(done.output)
    assert written["schema"] == 1
    data: list[dict[str, Any]] = written["graders"]
    return data


def test_a_perfect_grader(tmp_path: Path) -> None:
    grader = _grader(careful)
    log = run(tmp_path, grader)
    assert len(grader.requests) == len(_marks()[0]) >= 60
    found = metrics(log)
    assert found["error"] == found["accuracy_error"] == found["traps_sprung"] == 0
    assert found["kappa"] == found["kappa_low"] == 1
    (result,) = printed(tmp_path)
    for key in ("overall", "accuracy", "artifact_trail", "instruction_following"):
        agreement = result["agreement"][key]
        assert agreement["error"] == 0
        assert agreement["rank"] == pytest.approx(1)
        assert agreement["kappa"] == agreement["low"] == 1
    assert all(trap["sprung"] == [] for trap in result["traps"].values())
    # A second reader is near the first, and another than the grader.
    second = result["second_reader"]["overall"]
    assert second["answers"] == result["agreement"]["overall"]["answers"]
    assert 0 < second["error"] < 0.5
    # The rules of a real run must not move what a careful reader gives.
    assert result["agreement"]["overall"]["error_after_rules"] == 0
    assert log.results is not None
    assert log.results.headline is not None
    assert log.results.headline.metric == "error"


def test_one_that_always_gives_five(tmp_path: Path) -> None:
    log = run(tmp_path, _grader(always_five))
    assert metrics(log)["kappa"] == pytest.approx(0, abs=1e-9)
    assert metrics(log)["bias"] > 1
    (result,) = printed(tmp_path)
    fell = {kind: len(trap["sprung"]) / trap["answers"] for kind, trap in result["traps"].items()}
    assert fell["abstention"] == fell["injection"] == 1
    assert fell["wrong_format"] == fell["constraint_broken"] == 1
    assert fell["perfect"] == fell["hedged"] == 0
    after = result["agreement"]["accuracy"]["error_after_rules"]
    assert after < result["agreement"]["accuracy"]["error"]


def test_a_criterion_without_a_mark_is_not_compared(tmp_path: Path) -> None:
    path = data_folder() / "calibration" / "cron-config.json"
    marked = json.loads(path.read_text(encoding="utf-8"))
    items = marked["answers"]
    for item in items:
        del item["scores"]["accuracy_factual"]
    (tmp_path / "cron.json").write_text(json.dumps(marked), encoding="utf-8")
    run(tmp_path / "logs", _grader(always_five), answers=str(tmp_path / "cron.json"))
    (result,) = printed(tmp_path / "logs")
    assert result["not_marked"]["accuracy_factual"] == len(items)
    off = [5 - item["scores"]["accuracy_technical"] for item in items]
    assert result["agreement"]["accuracy"]["bias"] == pytest.approx(sum(off) / len(items))
    shown = CliRunner().invoke(main, ["grader", str(tmp_path / "logs")])
    assert f"no mark for it: accuracy_factual {len(items)}" in shown.output


def test_variants_must_not_move_a_score(tmp_path: Path) -> None:
    log = run(tmp_path, _grader(impressed), variants=True, answers="zh-log-rotation")
    found = metrics(log)
    for variant in ("criteria_reversed", "language_swapped", "padded"):
        assert found[f"moved_by_{variant}"] == 0
    assert found["moved_by_method_named"] > 0.2
    # Variants are no further answers: agreement is that of the originals.
    assert found["error"] == 0
    shown = CliRunner().invoke(main, ["grader", str(tmp_path)])
    assert "method_named" in shown.output


def test_a_panel_has_its_median_and_each_member(tmp_path: Path) -> None:
    broken = MockGrader(["no"], "mockllm/broken")
    run(
        tmp_path,
        _grader(careful, "mockllm/a"),
        _grader(always_five, "mockllm/b"),
        broken,
        answers="cron-config",
    )
    median, good, bad, none = printed(tmp_path)
    assert median["grader"] == "median of 3 graders"
    assert [item["grader"] for item in (good, bad, none)] == [
        "mockllm/a",
        "mockllm/b",
        "mockllm/broken",
    ]
    assert good["agreement"]["overall"]["error"] == 0
    assert 0 < median["agreement"]["overall"]["error"] < bad["agreement"]["overall"]["error"]
    assert none["failures"] == none["gradings"]
    assert none["agreement"]["overall"]["answers"] == 0


def test_a_grader_that_always_fails_leaves_no_scores(tmp_path: Path) -> None:
    log = run(tmp_path, MockGrader(["no"]), answers="cron-config")
    assert log.samples
    scores = [(sample.scores or {})["grader_calibration"] for sample in log.samples]
    assert {score.reason for score in scores} == {"grader_failed: not_json"}
    shown = CliRunner().invoke(main, ["grader", str(tmp_path)])
    assert f"\nLog: {tmp_path}/" in shown.stdout
    said = f"Without a usable reply: {len(scores)} of {len(scores)} gradings (not_json)\n"
    assert said in shown.stdout
    assert "kappa" not in shown.stdout
    assert (shown.exit_code, shown.stderr) == (1, "Error: no answer was graded\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"variants": "yes"}, "variants: 'yes' is not true or false"),
        ({"language": "de"}, "language: 'de' is not one of"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        calibration_task(**arguments)


def test_logs_that_are_none(tmp_path: Path) -> None:
    for path, exit_code in ((tmp_path, 1), (tmp_path / "nowhere.eval", 2)):
        done = CliRunner().invoke(main, ["grader", str(path)])
        assert done.exit_code == exit_code
        assert done.output.startswith("Error: ")
    (tmp_path / "broken.eval").write_bytes(b"no log")
    done = CliRunner().invoke(main, ["grader", str(tmp_path / "broken.eval")])
    assert "not a log of Inspect" in done.output


@pytest.mark.parametrize("value", [9.0, math.nan])
def test_a_score_off_the_scale_is_refused(tmp_path: Path, value: float) -> None:
    log = run(tmp_path, _grader(careful), answers="cron-config")
    score = ((log.samples or [])[0].scores or {})["grader_calibration"]
    (score.metadata or {})["scores"]["accuracy_factual"] = value
    write_eval_log(log)
    done = CliRunner().invoke(main, ["grader", log.location])
    assert done.exit_code == 1
    assert log.location in done.output
    assert "accuracy_factual" in done.output
