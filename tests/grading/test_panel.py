from pathlib import Path

import pytest
from inspect_ai.log import EvalLog
from inspect_ai.scorer import Score

from compression_eval.grading.scorers import six_dimensions
from tests.grading.samples import MockGrader, ids, only_score, record, reply, run, values, weighted


def panel(*said: str | MockGrader) -> list[MockGrader]:
    """Return a grader for each reply, ``g1`` and up."""
    return [
        each if isinstance(each, MockGrader) else MockGrader([each], name=f"mockllm/g{n}")
        for n, each in enumerate(said, start=1)
    ]


def grade(tmp_path: Path, *said: str | MockGrader) -> Score:
    return only_score(run(six_dimensions(), record(), tmp_path, *panel(*said)))


def test_the_median_of_each_criterion_counts(tmp_path: Path) -> None:
    low = dict.fromkeys(ids(), 1) | {"accuracy_factual": 5}
    score = grade(tmp_path, reply(low), reply(4), reply(2))
    metadata = score.metadata or {}
    by_id = {item["criterionId"]: item for item in metadata["criterionResults"]}
    assert by_id["accuracy_factual"]["score"] == 4
    assert by_id["accuracy_factual"]["spread"] == 3
    assert by_id["instruction_format"]["score"] == 2
    medians = dict.fromkeys(ids(), 2) | {"accuracy_factual": 4}
    assert values(score)["accuracy"] == pytest.approx(weighted(medians, "accuracy"))
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
    assert ", spread " in (score.explanation or "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["stated", "stated", "missing"], "stated"),
        (["stated", "contradicted", "missing"], None),
        (["contradicted", "contradicted"], "contradicted"),
        (["stated", "missing"], None),
        (["stated", "stated", "missing", "missing"], None),
    ],
)
def test_most_graders_decide_on_a_fact(
    tmp_path: Path, words: list[str], expected: str | None
) -> None:
    said = [reply(4, facts=["stated", word]) for word in words]
    metadata = grade(tmp_path, *said).metadata or {}
    assert [row["verdict"] for row in metadata["facts"]] == ["stated", expected]
    assert [grader["facts"]["f2"] for grader in metadata["graders"]] == words


def test_a_member_that_fails_is_recorded_and_left_out(tmp_path: Path) -> None:
    broken = MockGrader(["no"], name="mockllm/g1")
    score = grade(tmp_path, broken, reply(4))
    assert values(score)["overall"] == 4
    first, second = (score.metadata or {})["graders"]
    assert (first["failure"], first["attempts"]) == ("not_json", 3)
    assert first["criterionResults"] == []
    assert (second["failure"], second["attempts"]) == ("", 1)
    assert second["parameters"] == {}
    assert "failed: not_json" in (score.explanation or "")
    assert len(broken.requests) == 3


def test_if_all_fail_the_sample_is_unscored(tmp_path: Path) -> None:
    score = grade(tmp_path, "no", "")
    assert score.reason == "grader_failed: empty, not_json"
    assert score.value != score.value
    assert "mockllm/g1: " in (score.explanation or "")


def alphas(log: EvalLog) -> dict[str, float]:
    assert log.results
    return {
        item.name: float(value.value)
        for item in log.results.scores
        for name, value in item.metrics.items()
        if name.endswith("krippendorff_alpha")
    }


def panel_log(tmp_path: Path, *said: str) -> EvalLog:
    records = {("a", 1): record(), ("b", 1): record()}
    return run(six_dimensions(), records, tmp_path, *panel(*said))


def test_alpha_is_computed_over_the_criteria_of_a_dimension(tmp_path: Path) -> None:
    one = dict.fromkeys(ids(), 2) | {"accuracy_factual": 1, "accuracy_technical": 4}
    two = dict.fromkeys(ids(), 2) | {"accuracy_factual": 2, "accuracy_technical": 5}
    log = panel_log(tmp_path, reply(one), reply(two))
    # Four units (two criteria, two samples): ratings 1,2 and 4,5, each twice. Observed: every
    # pair differs by 1. Expected: mean squared difference over all ordered pairs of 8 ratings.
    # A further criterion of the dimension has the ratings 2,2.
    units = [(one[name], two[name]) for name in ids() if name.startswith("accuracy_")]
    ratings = [rating for unit in units for rating in unit] * 2
    pairs = len(ratings) * (len(ratings) - 1)
    expected = sum((x - y) ** 2 for x in ratings for y in ratings) / pairs
    assert alphas(log)["accuracy"] == pytest.approx(1 - 2 / len(units) / expected)
    assert alphas(log)["completeness"] == 1
