import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compression_eval.calibration.answers import (
    AnswerSet,
    CalibrationSet,
    by_key,
    faults,
    load_set,
    load_sets,
    sprung,
    traps,
)
from compression_eval.errors import DataError


@pytest.fixture(scope="module")
def sets() -> list[CalibrationSet]:
    return load_sets()


def test_the_shipped_answers_cover_what_they_are_for(sets: list[CalibrationSet]) -> None:
    items = [(group, item) for group in sets for item in group.answers.answers]
    assert len(items) >= 60
    types = Counter(group.probes[item.probe].type for group, item in items)
    assert set(types) == {"recall", "artifact", "continuation", "decision"}
    assert min(types.values()) >= 10
    languages = Counter(group.language for group, _ in items)
    assert set(languages) == {"en", "zh", "ja"}
    assert min(languages.values()) >= 10
    kinds = Counter(item.kind for _, item in items)
    assert set(kinds) == set(traps().traps)
    assert min(kinds.values()) >= 2


def test_the_worked_example_is_worth_what_the_study_gave(sets: list[CalibrationSet]) -> None:
    (group,) = [group for group in sets if group.answers.fixture == "401-debug"]
    examples = [item for item in group.answers.answers if item.kind == "worked_example"]
    # The study graded a recall probe on artifact details too; we do not, so a set has no such mark.
    details = (4, 2.5, 1.5)
    worth = [
        round(by_key(item.scores | {"artifact_key_details": mark})["overall"], 1)
        for item, mark in zip(examples, details, strict=True)
    ]
    assert worth == [4.8, 3.9, 3.2]


ITEM: dict[str, Any] = {
    "id": "one",
    "probe": "recall-final-settings-json",
    "kind": "perfect",
    "answer": '{"max_connections": 8, "max_idle_s": 90, "checkout_timeout_s": 0.5, '
    '"health_check_interval_s": 30, "attempts": 3}',
    "scores": {"accuracy_factual": 5},
    "why": "All right.",
}


def found(sets: list[CalibrationSet], *items: dict[str, Any]) -> list[str]:
    (group,) = [group for group in sets if group.answers.fixture == "401-debug"]
    answers = AnswerSet.model_validate({"fixture": "401-debug", "context": "c", "answers": items})
    return list(faults(answers, group.probes, "en"))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"probe": "nowhere"}, "there is no probe 'nowhere'"),
        ({"scores": {"taste": 5}}, "scores: not graded on a probe like this: 'taste'"),
        ({"answer": '{"max_connections": 8}'}, "it lacks 'max_idle_s=90'"),
        ({"kind": "abstention"}, "the answer does not abstain"),
        ({"answer": "Nothing of use here.", "kind": "hedged"}, "it contains no expected fact"),
        ({"kind": "constraint_broken"}, "states no constraint"),
    ],
)
def test_an_unsound_answer_is_named(
    sets: list[CalibrationSet], changes: dict[str, Any], expected: str
) -> None:
    assert any(expected in fault for fault in found(sets, ITEM | changes))


def test_an_id_may_be_used_once(sets: list[CalibrationSet]) -> None:
    assert found(sets, ITEM) == []
    assert "'one' is used 2 times" in found(sets, ITEM, ITEM)[0]


def test_files_that_are_no_sets_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text('{"fixture": "401-debug", "context": "c", "answers": []}')
    with pytest.raises(DataError, match=r"set\.json: answers"):
        load_set(path)
    path.write_text(json.dumps({"fixture": "unknown", "context": "c", "answers": [ITEM]}))
    with pytest.raises(DataError, match="fixture: 'unknown' is not a shipped one"):
        load_set(path)
    with pytest.raises(DataError, match="no set or file 'nowhere'"):
        load_sets("nowhere")


def test_a_trap_is_sprung_by_two_points_in_its_direction() -> None:
    right = {"accuracy_factual": 2.0, "accuracy_technical": 3.0}
    assert sprung("stale_value", {"accuracy_factual": 4.0}, right) is True
    assert sprung("stale_value", {"accuracy_factual": 3.9}, right) is False
    assert sprung("stale_value", {"accuracy_factual": 0.0}, right) is False
    assert sprung("hedged", {"accuracy_factual": 0.0}, right) is True
    assert sprung("hedged", {"accuracy_factual": 5.0}, right) is False
    assert sprung("stale_value", {}, right) is None
    assert sprung("worked_example", {"accuracy_factual": 5.0}, right) is None
