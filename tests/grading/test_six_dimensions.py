import math
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Epochs
from inspect_ai.scorer import Score
from inspect_ai.util import Store

from compression_eval.errors import DataError
from compression_eval.grading.rubric import rubric_digest, structure
from compression_eval.grading.scorers import DIMENSION_KEYS, six_dimensions
from compression_eval.record import SampleRecord, read_record, write_record
from tests.grading.samples import (
    MockGrader,
    answer_record,
    ids,
    metric,
    only_score,
    probe,
    record,
    reply,
    run,
    state_record,
    texts,
    values,
    weighted,
)


def grade(tmp_path: Path, given: dict[str, Any], said: str | None = None, **args: Any) -> Score:
    grader = MockGrader([said or reply(5, given["probe"])])
    log = run(six_dimensions(**args), given, tmp_path, grader)
    return only_score(log)


def test_the_score_has_every_key_and_its_computation(tmp_path: Path) -> None:
    scores = dict.fromkeys(ids(), 4.0) | {"accuracy_factual": 5, "accuracy_technical": 1}
    score = grade(tmp_path, record(), reply(scores))
    assert list(score.as_dict()) == list(DIMENSION_KEYS)
    accuracy = weighted(scores, "accuracy")
    assert values(score)["accuracy"] == pytest.approx(accuracy, abs=0.001)
    graded = sum(not math.isnan(values(score)[name]) for name in structure().dimensions)
    assert values(score)["knowledge"] == pytest.approx(4 + (accuracy - 4) / (graded - 1), abs=0.001)
    assert values(score)["overall"] == pytest.approx(4 + (accuracy - 4) / graded, abs=0.001)
    metadata = score.metadata or {}
    assert metadata["aggregateScore"] == pytest.approx(values(score)["overall"], abs=0.001)
    assert set(metadata["dimensionScores"]) == set(DIMENSION_KEYS) - {"knowledge", "overall"}
    assert metadata["criterionResults"][0] == {
        "criterionId": "accuracy_factual",
        "score": 5,
        "reasoning": "because accuracy_factual",
        "graded": 5,
    }
    assert metadata["rubric_digest"] == rubric_digest("en")
    assert metadata["language"] == "en"
    explanation = score.explanation or ""
    (weight,) = [each.weight for each in structure().criteria if each.id == "accuracy_technical"]
    assert f"\n  - accuracy_technical **1.00** (weight {weight:g}): because acc" in explanation
    assert "dimension = weighted mean of its graded criteria" in explanation
    assert "Grader 1: mockllm/grader (1 call)" in explanation
    assert score.answer == "It uses 8080, see gateway.toml."


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            record(state=state_record(status="not_smaller", failure="grew by 3 tokens")),
            "compression_failed: not_smaller",
        ),
        (
            record(
                state=state_record(status="error", failure="boom"),
                answer=answer_record("", failure="not asked"),
            ),
            "compression_failed: error",
        ),
        (
            record(answer=answer_record("", failure="context overflow\nlong trace")),
            "answer_failed: context overflow",
        ),
        (record(answer="  \n"), "answer_failed: the answer is empty"),
        (record() | {"answer": None}, "answer_failed: no answer was recorded"),
        (record() | {"state": None}, "scoring_failed: no record"),
    ],
)
def test_failures_are_unscored_and_not_graded(
    tmp_path: Path, given: dict[str, Any], reason: str
) -> None:
    grader = MockGrader([reply(5)])
    log = run(six_dimensions(), given, tmp_path, grader)
    score = only_score(log)
    assert score.reason == reason
    assert math.isnan(float(score.as_float()))
    assert grader.requests == []
    assert score.explanation
    assert math.isnan(metric(log, "overall"))


def test_an_abstention_gets_nothing_but_for_instructions(tmp_path: Path) -> None:
    asked = probe(
        type="artifact",
        constraint={"text": "Be brief.", "violated_by": ["sorry"]},
        answer_key={"files_modified": ["gateway.toml"]},
    )
    score = grade(tmp_path, record(asked=asked, answer="I do not know."))
    assert values(score) == {
        "knowledge": 0,
        "overall": round(5 / 6, 3),
        "accuracy": 0,
        "context_awareness": 0,
        "artifact_trail": 0,
        "completeness": 0,
        "continuity": 0,
        "instruction_following": 5,
    }
    assert (score.metadata or {})["abstained"] is True
    assert "abstained: 5.00 counts as 0.00" in (score.explanation or "")


@pytest.mark.parametrize("graded", [0, None])
@pytest.mark.parametrize(
    ("answer", "given", "expected"),
    [
        ("I do not know.", {}, 5),
        ("I do not know.", {"format": {"kind": "json"}}, 0),
        ('{"port": "unknown"}', {"format": {"kind": "json", "keys": ["port"]}}, None),
        ("- I do not know.", {"format": {"kind": "bullets"}}, 5),
        ("Sorry, I do not know.", {"constraint": {"text": "-", "violated_by": ["Sorry"]}}, 2.5),
        ("I do not know.", {"constraint": {"text": "Be brief."}}, 5),
    ],
)
def test_the_form_of_an_abstention_is_not_the_graders_to_judge(
    tmp_path: Path, answer: str, given: dict[str, Any], expected: float | None, graded: float | None
) -> None:
    asked = probe(**given)
    said: dict[str, Any] = {
        id_: None if id_.startswith("instruction_") else 4 for id_ in ids(asked)
    }
    said["instruction_format"] = graded
    score = grade(tmp_path, record(asked=asked, answer=answer), reply(said, asked))
    silent = (score.metadata or {})["abstained"]
    assert silent is (expected is not None)
    if silent:
        assert values(score)["instruction_following"] == expected
        assert values(score)["knowledge"] == 0


@pytest.mark.parametrize("word", ["stated", "contradicted", "missing"])
def test_a_wrong_value_is_told_and_changes_no_score(tmp_path: Path, word: str) -> None:
    given = record(answer="It uses 3000, see gateway.toml.")
    score = grade(tmp_path, given, reply(5, wrong=word))
    metadata = score.metadata or {}
    assert values(score)["accuracy"] == values(score)["completeness"] == 5
    assert metadata["wrong_values"] == [{"value": "3000", "verdict": word}]
    assert ("superseded or forbidden: 3000" in (score.explanation or "")) == (word == "stated")


def test_language_and_context_are_chosen(tmp_path: Path) -> None:
    grader = MockGrader([reply(3)])
    run(six_dimensions(grader_context="none"), record(language="ja"), tmp_path, grader)
    run(six_dimensions(language="zh"), record(language="ja"), tmp_path, grader)
    japanese, chinese = (texts(request) for request in grader.requests)
    assert "評価基準：" in japanese[0]
    assert len(japanese) == 2
    assert "评分标准：" in chinese[0]
    assert "compacted_context" in chinese[1]


def test_failed_epochs_move_no_mean(tmp_path: Path) -> None:
    grader = MockGrader(lambda text: reply(4 if "good" in text else 1))
    failed = record(state=state_record(status="empty"))
    mute = record(answer=answer_record("", failure="overflow"))
    records = {
        ("a", 1): failed,
        ("a", 2): record(answer="good, 8080"),
        ("a", 3): record(answer="good, 8080"),
        ("b", 1): record(answer="bad, 8080", fixture="two"),
        ("b", 2): mute,
        ("b", 3): record(answer="good, 8080", fixture="two"),
        ("c", 1): failed,
        ("c", 2): failed,
        ("c", 3): mute,
    }
    log = run(six_dimensions(), records, tmp_path, grader, epochs=Epochs(3, "mean"))
    assert log.reductions
    reduced = {item.sample_id: item.value for item in log.reductions[0].samples}
    assert isinstance(reduced["a"], dict)
    assert isinstance(reduced["b"], dict)
    assert reduced["a"]["overall"] == 4
    assert reduced["b"]["knowledge"] == reduced["b"]["overall"] == 2.5
    assert isinstance(reduced["c"], float)
    assert math.isnan(reduced["c"])
    assert metric(log, "overall") == pytest.approx((4 + 2.5) / 2)
    assert log.results
    counts = {s.name: (s.scored_samples, s.unscored_samples) for s in log.results.scores}
    assert counts == dict.fromkeys(DIMENSION_KEYS, (2, 1)) | {"artifact_trail": (0, 3)}


def test_a_record_of_another_version_is_refused() -> None:
    store = Store()
    write_record(store, SampleRecord(**record()))
    store.set("ProbeRecord:record_version", 99)
    with pytest.raises(DataError, match="record_version: is 99"):
        read_record(store)


def test_every_conversation_counts_the_same_however_many_probes_it_has(tmp_path: Path) -> None:
    records = {("a", 1): record(answer="good, 8080", fixture="one")}
    records |= {(name, 1): record(answer="poor, 8080", fixture="two") for name in ("b", "c", "d")}
    grader = MockGrader(lambda request: reply(4 if "good, 8080" in request else 1))
    log = run(six_dimensions(), records, tmp_path, grader)
    assert metric(log, "overall") == pytest.approx((4 + 1) / 2)
