"""Which expected facts an answer states: denials, and values under the keys of others."""

import time
from pathlib import Path

import pytest

from compression_eval.facts.stated import stated_facts
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Language
from compression_eval.grading.rubric import value_markers
from compression_eval.grading.scorers import fact_retention
from tests.grading.samples import only_score, probe, record, run, values

EN = value_markers("en")

DENIED: list[tuple[Language, str]] = [
    ("en", "It is not 8080."),
    ("en", "It listens on 9000, not on 8080."),
    ("en", "9000 rather than 8080"),
    ("en", "It is 9000, up from 8080."),
    ("en", "The port was moved from 8080 to 9000."),
    ("en", "8080 -> 9000"),
    ("en", "8080 was ruled out, it is 9000."),
    ("en", "It was 8080 at first."),
    ("en", "The gateway never listened on port 8080."),
    ("en", "It never starts with 8080."),
    ("en", "It was on 8080 until March and is on 9000 now."),
    ("en", "8080 had been considered, but 9000 won."),
    ("en", "8080 is a duplicate of 9000."),
    ("zh", "端口不再是 8080。"),
    ("zh", "8080 改为 9000。"),
    ("ja", "8080ではなく9000です。"),
]

STATED: list[tuple[Language, str]] = [
    ("en", "It is 8080."),
    ("en", "Not 9000 but 8080."),
    ("en", "It is not 9000: 8080."),
    ("en", "It is not only 8080."),
    ("en", "The port went from 3000 to 8080."),
    ("en", "3000 -> 8080"),
    ("en", "It was 8080 at first, and 8080 it is again."),
    ("en", "The path went from 8080 over 8081 and on."),
    ("en", "Never change 8080."),
    ("en", "It never exceeds 8080."),
    ("en", "It never failed because it listens on 8080."),
    ("en", "It listens on 8080 until the deploy ends."),
    ("en", "8080 is a port that is now free."),
    ("zh", "端口由 3000 改为 8080。"),
    ("ja", "3000ではなく8080です。"),
]


@pytest.mark.parametrize(("language", "answer"), DENIED + STATED)
def test_a_denied_fact_is_not_stated(language: Language, answer: str) -> None:
    stated = (language, answer) in STATED
    assert stated_facts(probe(), answer, value_markers(language)) == [stated, False]


@pytest.mark.parametrize(
    "asked",
    [
        probe(question="Which port was ruled out?"),
        probe(reference_answer="It was 8080 at first."),
        probe(expected_facts=[{"fact": "8080", "any_of": ["not 8080"]}]),
        probe(type="continuation"),
    ],
)
def test_what_is_asked_for_may_be_denied(asked: Probe) -> None:
    assert stated_facts(asked, "It is not 8080.", EN)[0]


TABLE = "| job | start | end |\n|---|---|---|\n| a | 07:00 | 08:00 |\n| b | 09:00 | 10:00 |"


@pytest.mark.parametrize(
    ("reference", "fact", "answer", "stated"),
    [
        ('{"x": 1, "y": 2}', "2", '{"x": 2, "y": 1}', False),
        ('{"x": 1, "y": 2}', "2", '```json\n{"y": 2, "x": 5}\n```', True),
        ('{"x": 1, "y": 2}', "2", "y is 2", True),
        ('{"x": 1, "y": 2}', "2", '{"other": 2}', True),
        ('{"x": 1, "y": 2}', "2", '{"x": 2, "y": ', True),
        ('{"in": {"a": 1}, "out": {"a": 2}}', "2", '{"in": {"a": 2}, "out": {"a": 1}}', False),
        ('[{"n": "p", "v": 1}, {"n": "q", "v": 2}]', "2", '[{"n": "p", "v": 2}]', False),
        (TABLE, "09:00", TABLE.replace("09:00", "?").replace("07:00", "09:00"), False),
        (TABLE, "09:00", "| job | end | start |\n|---|---|---|\n| `B` | ? | 9:00 |", True),
        ("x: 1\ny: 2", "2", "- **x**: 2\n- **y**: 1", False),
        ("x: 1\ny: 2", "2", "- y = 2\n- x = 1", True),
    ],
)
def test_values_stand_under_their_keys(
    reference: str, fact: str, answer: str, stated: bool
) -> None:
    asked = probe(expected_facts=[fact], reference_answer=reference)
    assert stated_facts(asked, answer, EN) == [stated]


def test_the_scorer_credits_no_denied_fact(tmp_path: Path) -> None:
    log = run(fact_retention(), record(answer="Not 8080 any more; see gateway.toml."), tmp_path)
    score = only_score(log, "fact_retention")
    assert values(score)["fact_recall"] == 0.5
    facts = {item["fact"]: item["in_answer"] for item in (score.metadata or {})["facts"]}
    assert facts == {"8080": False, "gateway.toml": True}


@pytest.mark.parametrize(
    "piece",
    [
        "not 3, ",
        "not 3 ",
        '{"x":',
        "| a | 3 |\n",
        "a: 3\n",
        "from 3 to ",
        "a/: b, ",
        "never used 3 ",
    ],
)
def test_hostile_answers_take_linear_time(piece: str) -> None:
    asked = probe(expected_facts=["retries=3", "3"], reference_answer='{"x": 3, "y": 4}')
    start = time.process_time()
    stated_facts(asked, piece * (100_000 // len(piece)), EN)
    # Quadratic work would take minutes, linear work takes about a fifth of a second.
    assert time.process_time() - start < 5
