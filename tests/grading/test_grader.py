import logging
import math
from pathlib import Path

import anyio
import pytest
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput
from inspect_ai.scorer import Score
from inspect_ai.util import LimitExceededError, token_limit

import compression_eval._registry  # noqa: F401  (makes embedded/… known)
from compression_eval.fixtures.models import Language
from compression_eval.grading.panel import grade
from compression_eval.grading.request import GradingRequest, grading_request
from compression_eval.grading.rubric import load_rubric
from compression_eval.grading.scorers import six_dimensions
from tests.grading.samples import (
    LANGUAGES,
    MockGrader,
    context,
    ids,
    metric,
    only_score,
    output,
    probe,
    record,
    reply,
    run,
    state_record,
    values,
    weighted,
)

BAD = "Five out of five!"


def grade_once(tmp_path: Path, grader: MockGrader, language: Language = "en") -> Score:
    log = run(six_dimensions(language=language), record(), tmp_path, grader)
    return only_score(log)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_unusable_reply_is_sent_back_with_what_was_wrong(
    tmp_path: Path, language: Language
) -> None:
    missing = reply(dict.fromkeys(ids()[:-1], 3))
    grader = MockGrader([missing, reply(2)])
    assert values(grade_once(tmp_path, grader, language))["overall"] == 2
    assert len(grader.requests) == 2
    first, second = grader.requests
    assert [message.text for message in second[: len(first)]] == [m.text for m in first]
    echo, correction = second[len(first) :]
    assert isinstance(echo, ChatMessageAssistant)
    assert echo.text == missing
    assert isinstance(correction, ChatMessageUser)
    wanted = load_rubric(language).corrections.missing.replace("{detail}", ids()[-1])
    assert wanted in correction.text
    assert ", ".join(ids()) in correction.text


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (BAD, "grader_failed: not_json"),
        ("", "grader_failed: empty"),
        (output(BAD, "content_filter"), "grader_failed: refusal"),
        (output(reply(4)[:40], "max_tokens"), "grader_failed: truncated"),
        (
            ValueError("no such deployment\nat line 3"),
            "grader_failed: error: ValueError: no such deployment",
        ),
    ],
)
def test_after_three_calls_the_sample_is_unscored(
    tmp_path: Path, said: str | ModelOutput | Exception, reason: str
) -> None:
    grader = MockGrader([said])
    score = grade_once(tmp_path, grader)
    assert score.reason == reason
    assert score.value != score.value  # NaN: unscored, not zero
    assert len(grader.requests) == 3
    assert score.metadata is not None
    assert score.metadata["attempts"] == 3
    assert score.metadata["aggregateScore"] is None


def test_a_criterion_that_cannot_apply_is_not_graded(tmp_path: Path) -> None:
    scores = dict.fromkeys(ids(), 4) | {"accuracy_factual": 1}
    given = {**scores, "instruction_format": None}
    log = run(six_dimensions(), record(), tmp_path, MockGrader([reply(given)]))
    score = only_score(log)
    assert math.isnan(values(score)["instruction_following"])
    assert values(score)["accuracy"] == pytest.approx(weighted(scores, "accuracy"))
    metadata = score.metadata or {}
    assert metadata["ungraded"] == ["instruction_format"]
    (left,) = (r for r in metadata["criterionResults"] if r["score"] is None)
    assert left["reasoning"] == "because instruction_format"
    assert f"Without a score: 1 of {len(ids())} criteria (instruction_format)." in (
        score.explanation or ""
    )
    name = "compression_eval/ungraded_criteria_count"
    assert metric(log, "knowledge", name) == 1


def test_a_criterion_that_always_applies_is_asked_for_again(tmp_path: Path) -> None:
    grader = MockGrader([reply(dict.fromkeys(ids()) | {"instruction_format": 5}), reply(2)])
    score = grade_once(tmp_path, grader)
    assert "accuracy_factual" in grader.requests[1][-1].text
    assert values(score)["knowledge"] == 2


def test_without_a_score_for_what_is_known_the_sample_is_unscored(tmp_path: Path) -> None:
    given = dict.fromkeys(ids(mode="all")) | {"instruction_format": 5}
    grader = MockGrader([reply(given)])
    log = run(six_dimensions(criteria="all"), record(), tmp_path, grader)
    score = only_score(log)
    assert score.reason == "grader_failed: no criterion of knowledge has a value"
    assert math.isnan(float(score.as_float()))
    assert len(grader.requests) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_unusable_facts_are_asked_for_again(tmp_path: Path, language: Language) -> None:
    grader = MockGrader([reply(3, facts=["stated"]), reply(2, facts=["missing", "contradicted"])])
    score = grade_once(tmp_path, grader, language)
    assert len(grader.requests) == 2
    correction = grader.requests[1][-1].text
    said = load_rubric(language).corrections.facts
    assert said.replace("{detail}", "missing: f2").replace("{facts}", "f1, f2, w1") in correction
    assert values(score)["overall"] == 2
    metadata = score.metadata or {}
    assert metadata["facts"] == [
        {"fact": "8080", "verdict": "missing"},
        {"fact": "gateway.toml", "verdict": "contradicted"},
    ]
    assert metadata["facts_failure"] == ""
    assert "1 missing, 1 contradicted" in (score.explanation or "")


def test_a_grading_counts_though_its_facts_never_can_be_used(tmp_path: Path) -> None:
    grader = MockGrader([reply(3, facts=["stated"]), reply(2, facts=["unsure"] * 2), BAD])
    score = grade_once(tmp_path, grader)
    assert len(grader.requests) == 3
    assert values(score)["overall"] == 2
    metadata = score.metadata or {}
    assert [row["verdict"] for row in metadata["facts"]] == [None, None]
    assert metadata["facts_failure"] == "facts: entry 1 has another shape"
    assert metadata["attempts"] == 3
    assert "facts cannot be used: facts: entry 1" in (score.explanation or "")


@pytest.mark.parametrize(
    "said",
    [
        output(reply(3), "max_tokens"),
        output(f"It claims {reply(5)}.\n{reply(0)[:60]}", "model_length"),
        f"<think>A draft: {reply(5)} but wait",
        f"It claims {reply(5)}; I ignore that.\n{reply(0)}",
    ],
    ids=["at the limit", "cut off", "a draft", "two"],
)
def test_what_may_not_be_the_graders_own_is_asked_for_again(
    tmp_path: Path, said: str | ModelOutput
) -> None:
    grader = MockGrader([said, f"<think>{reply(5)}</think>{reply(2)}"])
    assert values(grade_once(tmp_path, grader))["overall"] == 2
    assert len(grader.requests) == 2
    score = grade_once(tmp_path, MockGrader([said]))
    assert (score.reason or "").startswith("grader_failed: ")
    assert score.value != score.value


def test_a_provider_that_refuses_the_schema_is_asked_without(tmp_path: Path) -> None:
    grader = MockGrader([ValueError("response_format is not supported"), reply(3)])
    assert values(grade_once(tmp_path, grader))["overall"] == 3
    assert [config.response_schema is None for config in grader.configs] == [False, True]
    assert len(grader.requests[0]) == len(grader.requests[1])


def request() -> GradingRequest:
    rubric = load_rubric("en")
    return grading_request(
        rubric=rubric,
        criteria=rubric.criteria_for(probe()),
        probe=probe(),
        answer="8080",
        state=state_record(),
        context=context(),
    )


def test_a_limit_of_inspect_is_no_failure_of_the_grader() -> None:
    mock = MockGrader([BAD])

    async def limited() -> None:
        with token_limit(15):
            await grade(request(), mock.model, "mockllm/other")

    with pytest.raises(LimitExceededError):
        anyio.run(limited)
    assert len(mock.requests) == 1


def test_self_grading_is_marked_and_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answerer = MockGrader([reply(4)], name="mockllm/answerer")
    with caplog.at_level(logging.WARNING):
        log = run(
            six_dimensions(),
            {("a", 1): record(), ("b", 1): record()},
            tmp_path,
            model=answerer.model,
        )
    assert log.samples
    for sample in log.samples:
        assert sample.scores is not None
        assert (sample.scores["six_dimensions"].metadata or {})["self_graded"] is True
        assert "judging its own answer" in (sample.scores["six_dimensions"].explanation or "")
    warnings = [r for r in caplog.records if "grades its own answers" in r.getMessage()]
    assert len(warnings) == 1
    assert "mockllm/answerer" in warnings[0].getMessage()
