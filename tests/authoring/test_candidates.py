"""Every rule for a generated probe, with a probe that breaks only that; and which are taken."""

from typing import get_args

import pytest

from compression_eval.authoring.check import duplicate, faults
from compression_eval.authoring.generate import choose
from compression_eval.authoring.history import Candidate, History, Third, draft, fact
from compression_eval.fixtures.banks import ExpectedFact, Probe, ProbeType
from tests.authoring import story

LIMIT = fact("row_limit = 600", [10], superseded=["row_limit = 45"])
HASH = fact("4f3c2a1", [17])


@pytest.fixture(scope="module")
def history() -> History:
    return story.history()


def probe(history: History, question: str, *facts: ExpectedFact, answer: str = "") -> Probe:
    answer = answer or ", ".join(item.fact for item in facts)
    return draft(history, "recall", question, facts, answer, "test")


def test_a_sound_probe_has_no_fault(history: History) -> None:
    assert faults(probe(history, "What is the limit of rows?", LIMIT), history) == []


@pytest.mark.parametrize(
    ("question", "item", "fault"),
    [
        ("What?", fact("row_limit = 600", []), "has no evidence; it is in [10]"),
        ("What?", fact("row_limit = 600", [22]), "does not lie before the cut at 22"),
        (
            "What is it?",
            fact("row_limit = 600", [10], ["is"]),
            "facts[0]: the question gives away 'is'",
        ),
        ("Which limit of the row?", fact("row_limit", [10]), "from words of the question"),
        (
            "What?",
            fact("row_limit = 45", [6], superseded=["row_limit = 600"]),
            "first appears after",
        ),
        (
            "What?",
            fact("Good so far", [20]),
            "system prompt): 'Good so far' in message 20",
        ),
        ("Which hash? " * 70, HASH, "1 to 700 characters"),
    ],
)
def test_each_fault_is_named(
    history: History, question: str, item: ExpectedFact, fault: str
) -> None:
    found = faults(probe(history, question, item), history)
    assert fault in " ".join(found)
    assert len(found) <= 2


def test_the_reference_answer_is_held_to_the_facts(history: History) -> None:
    wrong = probe(history, "What is the limit?", LIMIT, answer="First row_limit = 45.")
    assert [fault.partition(": ")[2] for fault in faults(wrong, history)] == [
        "does not contain 'row_limit = 600'",
        "contains the superseded 'row_limit = 45'",
    ]


def test_the_question_is_in_the_language_of_the_session() -> None:
    history = story.history(language="ja")
    (found,) = faults(probe(history, "哈希是什么？", HASH), history)
    assert "language of the conversation" in found


NOTES = "Which hash did the commit about the notes get?"


@pytest.mark.parametrize(
    ("question", "facts", "taken", "taken_facts", "reason"),
    [
        ("Name the commit and the limit.", [LIMIT, HASH], NOTES, [HASH, LIMIT], "facts of another"),
        (NOTES.replace("the notes", "notes"), [HASH], NOTES, [HASH, LIMIT], "nearly the question"),
        (
            "exactly one of ___ and max_words",
            [fact("max_items", [2])],
            "exactly one of max_items and ___",
            [fact("max_words", [2])],
            "of another probe, and the question of another",
        ),
    ],
)
def test_the_same_is_not_asked_twice(
    history: History,
    question: str,
    facts: list[ExpectedFact],
    taken: str,
    taken_facts: list[ExpectedFact],
    reason: str,
) -> None:
    said = duplicate(probe(history, question, *facts), [probe(history, taken, *taken_facts)])
    assert said is not None
    assert reason in said


def test_another_question_is_no_twin(history: History) -> None:
    asked = probe(history, "How did the tests end?", fact("13 passed", [15]))
    assert duplicate(asked, [probe(history, NOTES, HASH, LIMIT)]) is None


def candidate(described: str) -> Candidate:
    """Return a candidate from its name, third, type and template."""
    name, third, kind, template = described.split()
    assert third in get_args(Third)
    types: dict[str, ProbeType] = {kind: kind for kind in get_args(ProbeType)}
    facts = [fact(f"{name}-1", [1])]
    made = draft(story.history(), types[kind], f"What about `{name}`?", facts, "x", "test")
    return Candidate(made, template, third)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "per_type", "chosen", "dropped"),
    [
        pytest.param(
            [*(f"e{n} early recall t" for n in range(3)), "m middle recall t", "l late recall t"],
            1,
            ["e0", "m", "l", "e1"],
            [],
            id="from all over the history, and others fill the places of a type without any",
        ),
        pytest.param(
            ["a early recall x", "b early recall x", "c early recall y"],
            2,
            ["a", "c", "b"],
            [],
            id="templates take turns within a third",
        ),
        pytest.param(
            ["a early recall t", "a late recall t", "b late recall t"],
            2,
            ["a", "b"],
            ["a"],
            id="a twin is dropped",
        ),
    ],
)
def test_which_are_chosen(
    given: list[str], per_type: int, chosen: list[str], dropped: list[str]
) -> None:
    taken, twins = choose([candidate(item) for item in given], per_type)
    names = [item.probe.expected_facts[0].fact.removesuffix("-1") for item in taken]
    assert names == chosen
    assert [item.question for item in twins] == [f"What about `{name}`?" for name in dropped]
    assert all("the facts of another" in item.reasons[0] for item in twins)
