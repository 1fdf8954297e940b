"""The recorded agent's own compaction as an arm: its state, from the fixture alone."""

from typing import Any

import pytest

from compression_eval.compressors.state import State
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed
from tests.fixtures.building import (
    assistant,
    fixture_data,
    plain_messages,
    user,
)

SUMMARY = user("Summary: the limit is 45 now; changelog still to be written.")
PROBE = Probe.model_validate(
    {
        "id": "p",
        "type": "recall",
        "question": "?",
        "expected_facts": [
            {"fact": "45", "evidence": [5]},
            {"fact": "test_limits", "evidence": [8]},
            {"fact": "at import", "evidence": [4]},
        ],
    }
)


def fixture(*compactions: dict[str, Any], **fields: Any) -> Fixture:
    more = [user("Go on."), assistant("I write the changelog.")]
    return Fixture.model_validate(
        fixture_data(
            messages=[*plain_messages(), *more], recorded_compactions=list(compactions), **fields
        )
    )


def run(
    what: Fixture, *cuts: int, name: str = "recorded", **arguments: Any
) -> tuple[State, list[list[Any]]]:
    return compressed(what, name, arguments, cuts=cuts, probes=[PROBE], min_removed=0.0)


def ids(state: State) -> list[str | None]:
    return [message.id for message in state.messages]


def test_kept_and_made_messages_are_told_apart() -> None:
    what = fixture({"cut": 9, "state": [SUMMARY, 6, 7, 8]})
    state, asked = run(what, 9)
    assert (state.status, state.failure) == ("ok", "")
    assert ids(state) == ["m0", "recorded-9-0", "m6", "m7", "m8"]
    assert state.regions == ["head", "summary", "tail", "tail", "tail"]
    assert state.messages[1].text == SUMMARY["content"]
    assert asked == []
    assert [cycle.model_calls for cycle in state.cycles] == [0]
    found = {record.fact: (record.in_state, record.regions) for record in state.facts}
    assert found == {
        "45": (True, ["summary"]),
        "test_limits": (True, ["tail"]),
        "at import": (False, []),
    }


def test_only_a_summary_is_known() -> None:
    state, _ = run(fixture({"cut": 9, "summary": "The limit is 45."}), 9)
    assert state.status == "ok"
    assert state.regions == ["head", "summary"]
    assert state.messages[1].text.endswith("The limit is 45.")
    empty, _ = run(fixture({"cut": 9, "summary": "The limit is 45.", "state": []}), 9)
    assert empty.messages[1].text == state.messages[1].text


def test_the_state_is_the_recorded_one_in_every_cycle_of_a_chain() -> None:
    first = {"cut": 6, "state": [user("First."), 5]}
    second = {"cut": 9, "state": [1, user("Second."), 8]}
    state, _ = run(fixture(first, second, cuts=[6, 9]), 6, 9)
    assert state.status == "ok", state.failure
    assert ids(state) == ["m0", "m1", "recorded-9-1", "m8"]
    assert [cycle.messages_after for cycle in state.cycles] == [3, 4]
    assert state.cycles[1].messages_before == 6


@pytest.mark.parametrize(
    ("compaction", "reason"),
    [
        ({"cut": 9, "kind": "opaque"}, "encrypted"),
        ({"cut": 9, "kind": "opaque", "state": [1, 8]}, "encrypted"),
        ({"cut": 9, "kind": "clear"}, "does not hold what its compaction left"),
        ({"cut": 6, "summary": "x"}, "no compaction was recorded where this history ends"),
    ],
)
def test_what_cannot_be_known_is_a_failure(compaction: dict[str, Any], reason: str) -> None:
    state, _ = run(fixture(compaction), 9)
    assert state.status == "unsupported"
    assert reason in state.failure
    assert state.messages == []
