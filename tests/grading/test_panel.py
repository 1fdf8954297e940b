from pathlib import Path

import pytest
from inspect_ai.scorer import Score

from compression_eval.grading.six_dimensions import six_dimensions
from tests.grading.samples import MockGrader, ids, only_score, record, reply, run, values


def grade(tmp_path: Path, *graders: MockGrader) -> Score:
    log = run(
        six_dimensions(),
        {("a", 1): record()},
        log_dir=tmp_path,
        roles={"grader": [grader.model for grader in graders]},
    )
    return only_score(log)


def test_the_median_of_each_criterion_counts(tmp_path: Path) -> None:
    low = dict.fromkeys(ids(), 1) | {"accuracy_factual": 5}
    graders = [
        MockGrader([reply(low)], name="mockllm/g1"),
        MockGrader([reply(4)], name="mockllm/g2"),
        MockGrader([reply(2)], name="mockllm/g3"),
    ]
    score = grade(tmp_path, *graders)
    metadata = score.metadata or {}
    by_id = {item["criterionId"]: item for item in metadata["criterionResults"]}
    assert by_id["accuracy_factual"]["score"] == 4
    assert by_id["accuracy_factual"]["spread"] == 3
    assert by_id["instruction_format"]["score"] == 2
    assert values(score)["accuracy"] == pytest.approx(0.6 * 4 + 0.4 * 2)
    assert [grader["model"] for grader in metadata["graders"]] == [
        "mockllm/g1",
        "mockllm/g2",
        "mockllm/g3",
    ]
    assert metadata["graders"][0]["criterionResults"][0] == {
        "criterionId": "accuracy_factual",
        "score": 5,
        "reasoning": "because accuracy_factual",
    }
    assert metadata["attempts"] == 3
    assert "(1) because" in by_id["accuracy_factual"]["reasoning"]
    assert "Spread" in (score.explanation or "")


def test_two_graders_meet_in_the_middle(tmp_path: Path) -> None:
    score = grade(
        tmp_path,
        MockGrader([reply(1)], name="mockllm/g1"),
        MockGrader([reply(4)], name="mockllm/g2"),
    )
    assert values(score)["overall"] == 2.5


def test_all_graders_read_the_same(tmp_path: Path) -> None:
    one = MockGrader([reply(1)], name="mockllm/g1")
    two = MockGrader([reply(4)], name="mockllm/g2")
    grade(tmp_path, one, two)
    assert [m.content for m in one.requests[0]] == [m.content for m in two.requests[0]]


def test_a_member_that_fails_is_recorded_and_left_out(tmp_path: Path) -> None:
    broken = MockGrader(["no"], name="mockllm/g1")
    score = grade(tmp_path, broken, MockGrader([reply(4)], name="mockllm/g2"))
    assert values(score)["overall"] == 4
    first, second = (score.metadata or {})["graders"]
    assert (first["failure"], first["attempts"]) == ("not_json", 3)
    assert first["criterionResults"] == []
    assert (second["failure"], second["attempts"]) == ("", 1)
    assert "failed: not_json" in (score.explanation or "")
    assert len(broken.requests) == 3


def test_a_failed_member_does_not_mark_self_grading(tmp_path: Path) -> None:
    own = MockGrader(["no"], name="mockllm/answerer")
    score = grade(tmp_path, own, MockGrader([reply(4)], name="mockllm/g2"))
    assert (score.metadata or {})["self_graded"] is False


def test_if_all_fail_the_sample_is_unscored(tmp_path: Path) -> None:
    score = grade(
        tmp_path,
        MockGrader(["no"], name="mockllm/g1"),
        MockGrader([""], name="mockllm/g2"),
    )
    assert score.reason == "grader_failed: empty, not_json"
    assert score.value != score.value
    assert "mockllm/g1: " in (score.explanation or "")
