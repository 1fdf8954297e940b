"""Every rule for a generated probe, with a probe that breaks only that; and which are taken."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from compression_eval.authoring.check import duplicate, faults, tells_by_spelling, warnings
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
        ("What?", fact("row_limit = 600", []), "has no evidence; it stands in [10]"),
        ("What?", fact("row_limit = 601", [10]), "it stands nowhere before the cut"),
        ("What?", fact("row_limit = 600", [22]), "does not lie before the cut at 22"),
        ("What?", fact("45", [6]), "too short"),
        ("What is it?", fact("row_limit = 600", [10], ["is"]), "gives away 'is' (facts[0].any_of)"),
        ("Which limit of the row?", fact("row_limit", [10]), "from words of the question"),
        ("Which file?", fact("tests", [8]), "from convention"),
        ("What?", fact("x" * 301, [6]), "cannot be looked up"),
        ("What?", fact("row_limit = 600", [10], superseded=["limit = 77"]), "nowhere before"),
        ("What?", fact("row_limit = 45", [6], superseded=["row_limit = 600"]), "first stands"),
        ("What?", fact("row_limit = 600", [10], superseded=["row_limit = 600"]), "cannot be told"),
        (
            "What?",
            fact("Good so far", [20]),
            "system prompt): 'Good so far' in message 20",
        ),
        ("Which hash? " * 70, HASH, "1 to 700 characters"),
        ("Which \x1b[31mhash?", HASH, "control characters"),
    ],
)
def test_each_fault_is_named(
    history: History, question: str, item: ExpectedFact, fault: str
) -> None:
    found = faults(probe(history, question, item), history)
    assert len(found) == 1
    assert fault in found[0]


def test_the_reference_answer_is_held_to_the_facts(history: History) -> None:
    wrong = probe(history, "What is the limit?", LIMIT, answer="First row_limit = 45.")
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
    (found,) = faults(probe(history, question, HASH), history)
    assert "language of the conversation" in found


def test_a_later_other_value_is_a_warning(history: History) -> None:
    found = warnings(probe(history, "What?", fact("row_limit = 45", [6])), history)
    assert found == ["message 10 says 'row_limit 600' after 'row_limit = 45'"]


NOTES = "Which hash did the commit about the notes get?"


@pytest.mark.parametrize(
    ("question", "facts", "taken", "taken_facts", "reason"),
    [
        ("Name the commit and the limit.", [LIMIT, HASH], NOTES, [HASH, LIMIT], "facts of another"),
        (NOTES.replace("the notes", "notes"), [HASH], NOTES, [HASH, LIMIT], "nearly the question"),
        ("How did the tests end?", [fact("13 passed", [15])], NOTES, [HASH, LIMIT], None),
        ("Which limit holds?", [LIMIT], NOTES, [HASH, LIMIT], None),
        (
            "In which file is `parse_rows` defined?",
            [fact("importer/rows.py", [2])],
            "In which file is `test_rows` defined?",
            [fact("tests/x.py", [2])],
            None,
        ),
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
    reason: str | None,
) -> None:
    said = duplicate(probe(history, question, *facts), [probe(history, taken, *taken_facts)])
    assert (said is None) if reason is None else (said is not None and reason in said)


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
            ["re early recall t", "rl late recall t", "ae early artifact t", "al late artifact t"],
            1,
            ["re", "rl", "al", "ae"],
            [],
            id="types share out the thirds",
        ),
        pytest.param(
            ["a early recall x", "b early recall x", "c early recall y"],
            2,
            ["a", "c", "b"],
            [],
            id="templates take turns within a third",
        ),
        pytest.param(
            [*(f"{name} early recall t" for name in "abc"), "a early continuation t"],
            2,
            ["b", "c", "a"],
            ["a"],
            id="the scarce come first",
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


def test_what_the_workspace_tells_is_taken_last() -> None:
    described = ["a early recall t", "b early recall t", "c early artifact t"]
    described += ["d early continuation t", "e early decision t"]
    first, *others = map(candidate, described)
    taken, _ = choose([replace(first, workspace=True), *others], 1)
    assert [item.probe.expected_facts[0].fact for item in taken] == ["b-1", "c-1", "d-1", "e-1"]


@pytest.mark.parametrize(
    "form", ["90%", "--no-verify", "src/queue", "E4021", "maxRetries", "a.b", ".env", "f()", "x=y"]
)
def test_names_and_values_tell_by_spelling(form: str) -> None:
    assert tells_by_spelling(form)


@pytest.mark.parametrize(
    "form", ["persist", "no choice", "Break.", "read-only", "用户拒绝了", "(it)"]
)
def test_plain_words_do_not(form: str) -> None:
    assert not tells_by_spelling(form)
