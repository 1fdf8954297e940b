import math
from typing import get_args

import pytest

from compression_eval.fixtures.banks import Probe, ProbeType
from compression_eval.fixtures.models import Language
from compression_eval.grading.rubric import (
    dimension_scores,
    knowledge,
    load_rubric,
    overall,
    structure,
)
from tests.grading.samples import LANGUAGES, probe, weighted

ALWAYS = {
    "accuracy_factual",
    "accuracy_technical",
    "completeness_coverage",
    "completeness_depth",
    "continuity_work_state",
    "instruction_format",
}
BY_TYPE = {
    "recall": {"context_conversation_state"},
    "artifact": {
        "context_artifact_state",
        "artifact_files_created",
        "artifact_files_modified",
        "artifact_key_details",
    },
    "continuation": {
        "context_conversation_state",
        "context_artifact_state",
        "artifact_files_modified",
        "continuity_todo_state",
        "continuity_reasoning",
    },
    "decision": {"context_conversation_state", "continuity_reasoning"},
}
NEEDS = {
    "context_artifact_state": {"files_created", "files_modified", "files_read"},
    "artifact_files_created": {"files_created"},
    "artifact_files_modified": {"files_modified"},
    "continuity_todo_state": {"open_tasks"},
    "continuity_reasoning": {"reasons"},
}
FIELDS = ("files_created", "files_modified", "files_read", "open_tasks", "reasons")
KNOWN = ALWAYS.union(*BY_TYPE.values(), {"instruction_constraints"})
"""The criteria that this test is about; others may be added."""


def chosen_for(asked: Probe) -> set[str]:
    return KNOWN.intersection(item.id for item in load_rubric("en").criteria_for(asked))


INPUT = (
    *("criterionResults", "criterionId", "reasoning", "compacted_context", "ground_truth"),
    *("rubric_criteria", "model_response", "superseded", "must_not_appear"),
)
"""What the instructions speak of: the request and the reply."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_criteria_in_its_own_words(language: Language) -> None:
    rubric = load_rubric(language)
    other = load_rubric("zh" if language != "zh" else "ja")
    shown = rubric.as_text()
    for name, text in rubric.criteria.items():
        assert text.question != other.criteria[name].question
        assert len({text.score_0, text.score_3, text.score_5}) == 3
        assert all(part in shown for part in (name, text.question, text.score_0, text.score_5))
    assert all(word in rubric.grader.instructions for word in INPUT)
    corrections = rubric.corrections
    for name in ("wrong_shape", "missing", "unknown", "duplicate", "out_of_range"):
        assert "{detail}" in getattr(corrections, name)
    assert "{ids}" in corrections.again


@pytest.mark.parametrize("kind", get_args(ProbeType))
def test_criteria_fit_the_type_and_what_the_answer_key_has(kind: ProbeType) -> None:
    full = {name: ["x"] for name in FIELDS}
    chosen = chosen_for(probe(type=kind, answer_key=full))
    assert chosen == ALWAYS | BY_TYPE[kind]
    for name in FIELDS:
        asked = {id_ for id_ in BY_TYPE[kind] if id_ not in NEEDS or name in NEEDS[id_]}
        assert chosen_for(probe(type=kind, answer_key={name: ["x"]})) == ALWAYS | asked
    bound = chosen_for(probe(type=kind, answer_key=full, constraint={"text": "be brief"}))
    assert bound - chosen == {"instruction_constraints"}


def test_a_dimension_is_the_weighted_mean_of_what_was_graded() -> None:
    scores = {
        "accuracy_factual": 5.0,
        "accuracy_technical": 0.0,
        "artifact_files_created": 1.0,
        "artifact_files_modified": math.nan,
        "artifact_key_details": 4.0,
        "instruction_format": 2.0,
    }
    dimensions = dimension_scores(scores)
    trail = {name: scores[name] for name in ("artifact_files_created", "artifact_key_details")}
    assert dimensions["accuracy"] == pytest.approx(accuracy := weighted(scores, "accuracy"))
    assert dimensions["artifact_trail"] == pytest.approx(artifacts := weighted(trail))
    assert dimensions["instruction_following"] == 2.0
    assert math.isnan(dimensions["completeness"])
    assert list(dimensions) == structure().dimensions
    assert overall(dimensions) == pytest.approx((accuracy + artifacts + 2.0) / 3)
    assert knowledge(dimensions) == pytest.approx((accuracy + artifacts) / 2)


def test_form_alone_is_no_knowledge_and_nothing_graded_has_no_overall() -> None:
    dimensions = dimension_scores({"instruction_format": 5.0})
    assert overall(dimensions) == 5
    assert math.isnan(knowledge(dimensions))
    assert math.isnan(overall(dimension_scores({})))
    assert math.isnan(overall(dimension_scores({"accuracy_factual": math.nan})))
