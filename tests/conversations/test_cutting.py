"""Where imported conversations are cut."""

import pytest

from compression_eval.conversations.cutting import cut_rules, find_cuts
from compression_eval.errors import DataError
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.tokens import text_counter
from tests.fixtures.building import fixture_data


def fixture(*compactions: tuple[int, str]) -> Fixture:
    recorded = [{"cut": cut, "kind": kind} for cut, kind in compactions]
    return Fixture.model_validate(fixture_data(recorded_compactions=recorded))


def cuts(what: Fixture, *values: str) -> list[int]:
    return find_cuts(what, cut_rules(values)).cuts


def notes(what: Fixture, *values: str) -> list[str]:
    return find_cuts(what, cut_rules(values)).notes


def test_auto_is_where_the_agent_compacted_and_else_the_end() -> None:
    assert cuts(fixture()) == cuts(fixture(), "auto") == [9]
    assert cuts(fixture((6, "summary"), (4, "opaque"), (8, "clear"))) == [4, 6]
    assert cuts(fixture((4, "clear"))) == [9]


def test_messages_are_moved_back_to_a_boundary() -> None:
    assert cuts(fixture(), "3") == [2]
    assert notes(fixture(), "3") == ["cut 3: moved back to the boundary at 2"]
    assert (cuts(fixture(), "5"), notes(fixture(), "5")) == ([5], [])
    assert cuts(fixture(), "9") == cuts(fixture(), "end") == [9]
    assert cuts(fixture(), "10") == []
    assert notes(fixture(), "10") == ["cut 10: the conversation is shorter"]
    assert cuts(fixture(), "1") == []
    assert notes(fixture(), "1") == ["cut 1: nothing can be cut so early"]


def test_shares() -> None:
    sizes = [len(message.searchable()) + 1 for message in fixture().messages]
    assert cuts(fixture(), "0.999") == [8]
    assert cuts(fixture(), "0.5") == [4]
    assert sum(sizes[:4]) <= sum(sizes) / 2 < sum(sizes[:5])


def test_tokens() -> None:
    sizes = [text_counter().count(m.searchable()) + 4 for m in fixture().messages]
    upto = [sum(sizes[:count]) for count in range(10)]
    assert cuts(fixture(), f"tokens:{upto[5]}") == [5]
    assert cuts(fixture(), f"tokens:{upto[5] - 1}") == [4]
    assert cuts(fixture(), f"tokens:{upto[3]}") == [2]
    assert cuts(fixture(), f"tokens:{upto[9]}") == [9]
    assert cuts(fixture(), f"tokens:{upto[9] + 1}") == []
    assert "shorter" in notes(fixture(), f"tokens:{upto[9] + 1}")[0]


def test_several_rise_and_stand_once() -> None:
    assert cuts(fixture((6, "summary")), "end", "4,6", "auto") == [4, 6, 9]


def test_a_system_prompt_alone_is_never_cut_off() -> None:
    messages = [
        {"role": "system", "content": "x"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "y"},
    ]
    what = Fixture.model_validate({"name": "a", "messages": messages})
    assert (cuts(what, "2"), cuts(what, "3")) == ([], [3])


@pytest.mark.parametrize(
    "value", ["", "x", "0", "1.5", "-3", "1.0", "0.0", "tokens:", "tokens:0", "4,", "½", "٤", "1e3"]
)
def test_what_is_no_cut(value: str) -> None:
    with pytest.raises(DataError, match=r"--cut: .*; expected auto, end, "):
        cut_rules([value])
