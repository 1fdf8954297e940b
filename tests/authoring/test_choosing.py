"""Which candidates are taken."""

from compression_eval.authoring.candidates import Candidate, draft, fact
from compression_eval.authoring.choosing import choose
from compression_eval.authoring.history import Third
from compression_eval.fixtures.banks import ProbeType
from tests.authoring import story

HISTORY = story.history()


def candidate(
    name: str, third: Third, kind: ProbeType = "recall", template: str = "t"
) -> Candidate:
    probe = draft(HISTORY, kind, f"What about `{name}`?", [fact(f"{name}-1", [1])], "x", "test")
    return Candidate(probe, template, third)


def names(chosen: list[Candidate]) -> list[str]:
    return [item.probe.expected_facts[0].fact.removesuffix("-1") for item in chosen]


def test_probes_are_taken_from_all_over_the_history() -> None:
    given = [candidate(f"e{n}", "early") for n in range(5)]
    given += [candidate("m", "middle"), candidate("l", "late")]
    assert names(choose(given, 3)[0]) == ["e0", "m", "l"]
    assert names(choose(given, 4)[0]) == ["e0", "m", "l", "e1"]


def test_types_share_out_the_thirds() -> None:
    both: list[Candidate] = []
    for kind in ("recall", "artifact"):
        both += [candidate(f"{kind}-e", "early", kind), candidate(f"{kind}-l", "late", kind)]
    assert names(choose(both, 1)[0]) == ["recall-e", "artifact-l"]


def test_templates_take_turns_within_a_third() -> None:
    given = [
        candidate("a", "early", template="x"),
        candidate("b", "early", template="x"),
        candidate("c", "early", template="y"),
    ]
    assert names(choose(given, 2)[0]) == ["a", "c"]


def test_a_type_with_few_candidates_comes_before_one_with_many() -> None:
    many = [candidate("a", "early"), candidate("b", "early"), candidate("c", "early")]
    few = candidate("a", "early", "continuation")
    chosen, dropped = choose([*many, few], 2)
    assert [item.probe.type for item in chosen] == ["recall", "recall", "continuation"]
    assert names(chosen) == ["b", "c", "a"]
    assert len(dropped) == 1


def test_a_twin_is_dropped_and_the_next_taken() -> None:
    twin = candidate("a", "late")
    chosen, dropped = choose([candidate("a", "early"), twin, candidate("b", "late")], 2)
    assert names(chosen) == ["a", "b"]
    assert [item.reasons[0].partition(":")[0] for item in dropped] == [
        "asks for the facts of another probe"
    ]


def test_others_fill_the_places_of_a_type_that_has_too_few() -> None:
    given = [candidate(f"e{n}", "early") for n in range(9)]
    given.append(candidate("a", "early", "artifact"))
    assert len(choose(given, 2)[0]) == 3
    chosen, _ = choose(given, 2, fill=True)
    assert [item.probe.type for item in chosen] == ["recall"] * 7 + ["artifact"]
