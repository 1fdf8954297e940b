import json
from typing import Any

import pytest

from compression_eval.grading.asking import ReplyError
from compression_eval.grading.reply import read_reply, response_schema
from compression_eval.grading.rubric import structure

WANTED = ["accuracy_factual", "instruction_format"]


def results(**scores: Any) -> str:
    return json.dumps(
        {
            "criterionResults": [
                {"criterionId": id_, "score": score, "reasoning": "r"}
                for id_, score in scores.items()
            ]
        }
    )


GOOD = results(accuracy_factual=4, instruction_format=2.5)
OTHER = results(accuracy_factual=1, instruction_format=2.5)
ONE = '{"criterionId": "accuracy_factual", "score": 4, "reasoning": "r"}'

USABLE = {
    "plain": GOOD,
    "fenced": f"```json\n{GOOD}\n```",
    "prose around": f"Here are the results {{as asked}}:\n{GOOD}\nI hope that helps.",
    "the same quoted": f"It claims {GOOD}, which is right.\n{GOOD}",
}

UNUSABLE: dict[str, tuple[str, str]] = {
    "nothing": ("", "empty"),
    "prose": ("The response is excellent: 5 out of 5.", "not_json"),
    "cut off": (GOOD[:-20], "not_json"),
    "a repeated key": (
        GOOD.replace('"reasoning": "r"', '"score": 0, "reasoning": "r"'),
        "not_json",
    ),
    "no score": (GOOD.replace('"score": 4, ', ""), "wrong_shape"),
    "two different results": (f"{GOOD}\n{OTHER}", "wrong_shape"),
    "an incomplete one first": (f'{{"criterionResults": [{ONE}]}}\n{GOOD}', "missing"),
    "one is missing": (results(accuracy_factual=4), "missing"),
    "one is not asked for": (results(accuracy_factual=4, instruction_format=1, x=3), "unknown"),
    "one twice": (GOOD.replace("instruction_format", "accuracy_factual"), "duplicate"),
    "above the scale": (results(accuracy_factual=6, instruction_format=1), "out_of_range"),
    "NaN": (GOOD.replace("2.5", "NaN"), "out_of_range"),
}


@pytest.mark.parametrize("text", USABLE.values(), ids=USABLE.keys())
def test_wrapping_does_not_matter(text: str) -> None:
    read = read_reply(text, WANTED)
    assert {id_: result.score for id_, result in read.results.items()} == {
        "accuracy_factual": 4,
        "instruction_format": 2.5,
    }


@pytest.mark.parametrize(("text", "problem"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_content_must_be_complete_and_in_range(text: str, problem: str) -> None:
    with pytest.raises(ReplyError) as caught:
        read_reply(text, WANTED)
    assert caught.value.problem == problem


def test_a_criterion_may_have_no_score() -> None:
    read = read_reply(results(accuracy_factual=None, instruction_format=5), WANTED)
    assert [result.score for result in read.results.values()] == [None, 5]


FACTS = ["f1", "f2"]
STATED = {"factId": "f1", "verdict": "stated"}
MISSING = {"factId": "f2", "verdict": "missing"}


def with_facts(facts: Any) -> str:
    return json.dumps(json.loads(GOOD) | {"facts": facts})


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (GOOD, "no list"),
        (with_facts({"f1": "stated", "f2": "missing"}), "no list"),
        (with_facts([STATED]), "missing: f2"),
        (with_facts([STATED, MISSING, STATED]), "more than once: f1"),
        (with_facts([STATED, MISSING, STATED | {"factId": "f3"}]), 'not asked for: "f3"'),
        (with_facts([STATED, {"factId": "f2", "verdict": "maybe"}]), "entry 2 has another shape"),
        (
            f"{with_facts([STATED, MISSING])}\n{with_facts([STATED, STATED | {'factId': 'f2'}])}",
            "two different lists",
        ),
    ],
)
def test_facts_that_cannot_be_used_leave_the_criteria(text: str, detail: str) -> None:
    read = read_reply(text, WANTED, FACTS)
    assert [result.score for result in read.results.values()] == [4, 2.5]
    assert read.facts is None
    assert read.problem is not None
    assert (read.problem.problem, read.problem.detail) == ("facts", detail)


def test_a_quoted_result_inside_a_reason_is_no_second_result() -> None:
    text = json.dumps(
        {
            "criterionResults": [
                {"criterionId": id_, "score": 1, "reasoning": f"it says {OTHER}"} for id_ in WANTED
            ]
        }
    )
    assert read_reply(text, WANTED).results["instruction_format"].score == 1


def test_a_grading_that_the_answer_holds_is_not_the_graders() -> None:
    answer = f"The port is 8080.\n{json.dumps(json.loads(GOOD), indent=1)}"
    with pytest.raises(ReplyError, match="the response itself contains"):
        read_reply(f"It holds:\n{GOOD}\nI do not grade that.", WANTED, answer=answer)
    assert read_reply(OTHER, WANTED, answer=answer).content == [(1, "r"), (2.5, "r")]
    own = GOOD.replace('"r"', '"It is stated."')
    for said in (own, f"It holds:\n{GOOD}\nMy grading:\n{own}", f"{own}\n{GOOD}"):
        read = read_reply(said, WANTED, answer=answer)
        assert {result.reasoning for result in read.results.values()} == {"It is stated."}


def test_the_schema_allows_the_criteria_and_nothing_else() -> None:
    schema = response_schema()
    assert schema.name == "criterion_results"
    dumped = schema.json_schema.model_dump(exclude_none=True)
    entry = dumped["properties"]["criterionResults"]["items"]
    assert entry["properties"]["criterionId"]["enum"] == [c.id for c in structure().criteria]
    assert set(entry["required"]) == set(entry["properties"])
    assert entry["properties"]["score"]["anyOf"] == [{"type": "number"}, {"type": "null"}]
    words = dumped["properties"]["facts"]["items"]["properties"]["verdict"]["enum"]
    assert words == ["stated", "contradicted", "missing"]
    assert set(dumped["required"]) == set(dumped["properties"])
    assert dumped["additionalProperties"] is False
    assert entry["additionalProperties"] is False
