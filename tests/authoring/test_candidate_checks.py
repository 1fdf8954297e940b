"""Every rule for a generated probe, with a probe that breaks only that."""

from typing import Any

import pytest

from compression_eval.authoring.candidate_checks import duplicate, faults, warnings
from compression_eval.authoring.candidates import draft, fact
from compression_eval.authoring.history import History
from compression_eval.fixtures.banks import ExpectedFact, Probe
from tests.authoring import story


@pytest.fixture(scope="module")
def history() -> History:
    return story.history()


def probe(history: History, question: str, *facts: ExpectedFact, answer: str = "") -> Probe:
    answer = answer or ", ".join(item.fact for item in facts)
    return draft(history, "recall", question, facts, answer, "test")


def test_a_sound_probe_has_no_fault(history: History) -> None:
    item = fact("row_limit = 600", [10], superseded=["row_limit = 45"])
    assert faults(probe(history, "What is the limit of rows?", item), history) == []


@pytest.mark.parametrize(
    ("item", "fault"),
    [
        (fact("row_limit = 600", []), "has no evidence; it stands in [10]"),
        (fact("row_limit = 600", [8]), "is not in its evidence messages [8]; it stands in [10]"),
        (fact("row_limit = 601", [10]), "it stands nowhere before the cut"),
        (fact("row_limit = 600", [22]), "does not lie before the cut at 22"),
        (fact("row_limit = 600", [-1]), "does not lie before the cut at 22"),
        (fact("45", [6]), "too short"),
        (fact("4f3c2a1\n", [17]), "cannot be looked up"),
        (fact("x" * 301, [6]), "cannot be looked up"),
        (fact("row_limit = 600", [10], superseded=["row_limit = 77"]), "nowhere before the cut"),
        (fact("row_limit = 45", [6], superseded=["row_limit = 600"]), "first stands after"),
        (
            fact("row_limit = 600", [10], superseded=["row_limit = 600"]),
            "cannot be told from the current value",
        ),
        (fact("Good so far", [20]), "kept verbatim (messages 20 to 21"),
    ],
)
def test_each_fault_of_a_fact_is_named(history: History, item: ExpectedFact, fault: str) -> None:
    found = faults(probe(history, "What is it?", item), history)
    assert len(found) == 1
    assert fault in found[0]


@pytest.mark.parametrize(
    ("question", "fault"),
    [
        ("Is it 4f3c2a1?", "gives away '4f3c2a1'"),
        ("Which hash? " * 70, "1 to 700 characters"),
        ("Which \x1b[31mhash?", "control characters"),
    ],
)
def test_each_fault_of_a_question_is_named(history: History, question: str, fault: str) -> None:
    found = faults(probe(history, question, fact("4f3c2a1", [17])), history)
    assert len(found) == 1
    assert fault in found[0]


def test_the_reference_answer_is_held_to_the_facts(history: History) -> None:
    item = fact("row_limit = 600", [10], superseded=["row_limit = 45"])
    wrong = probe(history, "What is the limit?", item, answer="First row_limit = 45.")
    assert [fault.partition(": ")[2] for fault in faults(wrong, history)] == [
        "the reference answer contains the superseded 'row_limit = 45'",
        "does not contain 'row_limit = 600'",
    ]


def test_a_base_name_of_two_files_cannot_stand_for_one() -> None:
    messages = story.messages()
    messages[6]["content"] = "Not exporter/rows.py, mind."
    history = story.history(messages=messages)
    item = fact("importer/rows.py", [2], ["rows.py"])
    (found,) = faults(probe(history, "Which file?", item), history)
    assert "also the name of another file" in found


@pytest.mark.parametrize(("language", "question"), [("zh", "Which hash?"), ("ja", "哈希是什么？")])
def test_the_question_is_in_the_language_of_the_session(language: Any, question: str) -> None:
    history = story.history(language=language)
    (found,) = faults(probe(history, question, fact("4f3c2a1", [17])), history)
    assert "language of the conversation" in found


def test_a_later_other_value_is_a_warning(history: History) -> None:
    found = warnings(probe(history, "What?", fact("row_limit = 45", [6])), history)
    assert found == ["message 10 says 'row_limit 600' after 'row_limit = 45'"]


def test_the_same_is_not_asked_twice(history: History) -> None:
    hash_, limit = fact("4f3c2a1", [17]), fact("row_limit = 600", [10])
    first = probe(history, "Which hash did the commit about the notes get?", hash_, limit)
    other = fact("13 passed", [15])
    cases = [
        (probe(history, "Name the commit and the limit.", limit, hash_), "facts of another probe"),
        (
            probe(history, "Which hash did the commit about notes get?", hash_),
            "nearly the question",
        ),
        (probe(history, "How did the tests end?", other), None),
        (probe(history, "Which limit holds?", limit), None),
    ]
    for case, reason in cases:
        said = duplicate(case, [first])
        assert (said is None) if reason is None else (said is not None and reason in said)


def test_questions_about_other_things_are_no_duplicates_however_alike(history: History) -> None:
    one = probe(history, "In which file is `parse_rows` defined?", fact("importer/rows.py", [2]))
    two = probe(history, "In which file is `test_rows` defined?", fact("tests/x.py", [2]))
    assert duplicate(one, [two]) is None


def test_two_gaps_in_one_line_are_not_both_asked(history: History) -> None:
    one = probe(history, "exactly one of ___ and max_words", fact("max_items", [2]))
    two = probe(history, "exactly one of max_items and ___", fact("max_words", [2]))
    said = duplicate(one, [two])
    assert said is not None
    assert "give each other away" in said
