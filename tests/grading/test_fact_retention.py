import math
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import score
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.scorer import Score

from compression_eval.facts.life import FactFinding, Stage
from compression_eval.facts.records import FactRecord, Region
from compression_eval.grading.scorers import FACT_KEYS, MODEL_KEYS, fact_retention, six_dimensions
from tests.grading.samples import (
    MockGrader,
    answer_record,
    only_score,
    probe,
    record,
    reply,
    run,
    state_record,
    values,
)


def retention(tmp_path: Path, given: dict[str, Any]) -> Score:
    log = run(fact_retention("match"), given, tmp_path)
    return only_score(log, "fact_retention")


def test_shares_of_answer_and_state(tmp_path: Path) -> None:
    score = retention(tmp_path, record(answer="See gateway.toml."))
    assert list(score.as_dict()) == list(FACT_KEYS)
    found = values(score)
    assert all(math.isnan(found.pop(key)) for key in MODEL_KEYS)
    assert found == {"fact_recall": 0.5, "fact_survival": 0.5}
    metadata = score.metadata or {}
    assert (metadata["recall_by"], metadata["survival_by"]) == ("look-up", "look-up")
    facts = {item["fact"]: item for item in (score.metadata or {})["facts"]}
    assert facts["8080"]["stage"] == "unused"
    assert facts["gateway.toml"]["stage"] == "answered_not_found"
    assert facts["8080"]["regions"] == ["summary"]
    assert facts["8080"]["cycles"] == 1
    assert facts["8080"]["age_messages"] == 37
    assert facts["8080"]["age_share"] == 0.925
    explanation = score.explanation or ""
    assert (
        "- **8080** unused: history yes, 37 messages ago (92%); fed to summariser yes; "
        "state yes (summary); answer no\n" in explanation
    )
    assert (
        "Facts by stage: unused 1, answered_not_found 1; by region: summary 1, none 1; "
        "by age: first quarter 2." in explanation
    )


def graded(tmp_path: Path, given: dict[str, Any], said: str) -> Score:
    scorers = [six_dimensions(), fact_retention("match")]
    return only_score(run(scorers, given, tmp_path, MockGrader([said])), "fact_retention")


def test_wrong_values_count_by_the_graders_word(tmp_path: Path) -> None:
    asked = probe(forbidden_facts=["9090"])
    given = record(asked=asked, answer="It moved from 3000 to 8080, never 9090.")
    score = graded(tmp_path, given, reply(4, asked))
    assert values(score)["fact_violations"] == 0
    score = graded(tmp_path, given, reply(4, asked, wrong="stated"))
    assert values(score)["fact_violations"] == 2
    assert (score.metadata or {})["violations"] == ["3000", "9090"]
    assert "superseded or forbidden: 3000, 9090" in (score.explanation or "")


def test_without_such_values_there_are_no_violations_to_count(tmp_path: Path) -> None:
    asked = probe(expected_facts=["8080"])
    score = graded(tmp_path, record(asked=asked), reply(4, asked))
    assert math.isnan(values(score)["fact_violations"])


def test_a_grader_without_a_word_leaves_recall_unknown(tmp_path: Path) -> None:
    score = graded(tmp_path, record(), "no idea")
    assert math.isnan(values(score)["fact_recall"])
    assert (score.metadata or {})["recall_by"] == "grader"


def test_a_failed_answer_leaves_the_survival(tmp_path: Path) -> None:
    given = record(answer=answer_record("", failure="context overflow"))
    score = retention(tmp_path, given)
    assert values(score)["fact_survival"] == 0.5
    assert math.isnan(values(score)["fact_recall"])
    assert math.isnan(values(score)["fact_violations"])
    assert score.reason == "answer_failed: context overflow"


def test_a_state_that_cannot_be_read_has_no_survival(tmp_path: Path) -> None:
    facts = [
        FactRecord(probe_id="port", fact=name, in_history=True) for name in ("8080", "gateway.toml")
    ]
    given = record(state=state_record(readable=False, facts=facts))
    score = retention(tmp_path, given)
    assert math.isnan(values(score)["fact_survival"])
    assert values(score)["fact_recall"] == 1
    assert {item["stage"] for item in (score.metadata or {})["facts"]} == {"answered"}


@pytest.mark.parametrize(
    ("in_history", "fed", "in_state", "regions", "in_answer", "stage"),
    [
        (False, None, False, [], True, "not_in_history"),
        (True, True, True, ["summary"], True, "used"),
        (True, True, True, ["tail"], True, "verbatim"),
        (True, True, True, ["summary"], False, "unused"),
        (True, True, True, ["tail"], None, "survived"),
        (True, True, False, [], True, "answered_not_found"),
        (True, True, False, [], False, "dropped"),
        (True, False, False, [], False, "never_fed"),
        (True, None, False, [], False, "lost"),
        (True, None, None, [], True, "answered"),
    ],
)
def test_the_stage_at_which_a_fact_was_lost(
    in_history: bool,
    fed: bool | None,
    in_state: bool | None,
    regions: list[Region],
    in_answer: bool | None,
    stage: Stage,
) -> None:
    kept = FactRecord(
        probe_id="port",
        fact="8080",
        in_history=in_history,
        fed=fed,
        in_state=in_state,
        regions=regions,
    )
    assert FactFinding(probe().expected_facts[0], kept, in_answer).stage == stage


@pytest.mark.parametrize(
    ("fed", "in_answer", "superseded", "variants", "stage"),
    [
        (True, False, ["3000"], [], "superseded"),
        (True, False, [], ["port 9090"], "distorted"),
        # The earliest stage at which it can be told to be lost is the cause.
        (False, False, ["3000"], ["port 9090"], "never_fed"),
        (True, True, ["3000"], [], "answered_not_found"),
    ],
)
def test_what_stands_in_the_place_of_a_missing_fact(
    fed: bool | None,
    in_answer: bool | None,
    superseded: list[str],
    variants: list[str],
    stage: Stage,
) -> None:
    kept = FactRecord(
        probe_id="port",
        fact="8080",
        in_history=True,
        fed=fed,
        in_state=False,
        superseded_in_state=superseded,
        variants_in_state=variants,
    )
    finding = FactFinding(probe().expected_facts[0], kept, in_answer)
    assert finding.stage == stage
    assert finding.instead == [*superseded, *variants]


def test_the_graders_word_decides_and_the_look_up_is_kept(tmp_path: Path) -> None:
    grader = MockGrader([reply(4, facts=["contradicted", "stated"])])
    made = run(
        [six_dimensions(), fact_retention(state_facts="match")],
        record(answer="Nobody should use 8080, see the gateway's file."),
        tmp_path,
        grader,
    )
    expected = [("8080", True, "contradicted"), ("gateway.toml", False, "stated")]
    assert fact_words(made, "fact_retention") == expected
    found = only_score(made, "fact_retention")
    assert values(found)["fact_recall"] == 0.5
    assert (found.metadata or {})["recall_by"] == "grader"
    again = score(
        read_eval_log(made.location),
        fact_retention(state_facts="match"),
        action="append",
        display="log",
    )
    assert fact_words(again, "fact_retention1") == expected
    assert len(grader.requests) == 1


def fact_words(log: EvalLog, scorer: str) -> list[tuple[str, bool, str | None]]:
    facts = (only_score(log, scorer).metadata or {})["facts"]
    return [(row["fact"], row["in_answer"], row["in_answer_read"]) for row in facts]
