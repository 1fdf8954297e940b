"""States of recorded compactions: ids that fit each other, whatever was kept or made anew."""

from compression_eval.conversations.building import build
from compression_eval.conversations.drafts import Compaction, Conversation, Draft, DraftCall
from compression_eval.fixtures.models import NO_RESULT, Message


def calling(*ids: str, text: str = "") -> Draft:
    return Draft("assistant", [text], [DraftCall(one, "bash", "{}") for one in ids])


def result(identifier: str, text: str = "done") -> Draft:
    return Draft("tool", [text], call_id=identifier)


def state_of(history: list[Draft], state: list[Draft]) -> list[int | Message]:
    conversation = Conversation("test", "test", drafts=history)
    conversation.compactions.append(Compaction(after=history[-1], state=state))
    (compaction,) = build(conversation).fixture.recorded_compactions
    assert compaction.state is not None
    return compaction.state


def ids(state: list[int | Message]) -> list[list[str] | str | int | None]:
    return [
        item if isinstance(item, int) else [c.id for c in item.calls] or item.tool_call_id
        for item in state
    ]


def test_a_turn_made_anew_takes_its_results_with_it() -> None:
    first, second = result("c1"), result("c2")
    history = [Draft("user", ["go"]), calling("c1", "c2"), first, second]
    state = state_of(history, [calling("c1", "c2", text="summary, then"), first, second])
    assert ids(state) == [["c1", "c2"], "c1", "c2"]


def test_a_changed_result_of_a_kept_turn_answers_its_call() -> None:
    turn, other = calling("c1", "c2"), result("c2")
    history = [Draft("user", ["go"]), turn, result("c1"), other]
    state = state_of(history, [turn, result("c1", "cleared"), other])
    assert ids(state) == [1, "c1", 3]


def test_ids_that_a_file_repeats_do_not_mix_in_a_state() -> None:
    turns = [calling("c1"), calling("c1")]
    history = [Draft("user", ["go"]), turns[0], result("c1"), turns[1], result("c1")]
    state = state_of(history, [calling("c1"), result("c1"), turns[1], result("c1", "cleared")])
    assert ids(state) == [["c1"], "c1", 3, "c1-2"]
    twice = [calling("c1"), result("c1"), calling("c1"), result("c1")]
    assert ids(state_of(history, twice)) == [["c1"], "c1", ["c1-2"], "c1-2"]


def test_a_kept_call_without_a_result_keeps_what_stands_for_it() -> None:
    turn = calling("c1")
    history = [Draft("user", ["go"]), turn, Draft("assistant", ["on"])]
    assert state_of(history, [turn]) == [1, 2]
    assert build_text(history) == NO_RESULT


def build_text(history: list[Draft]) -> str:
    conversation = Conversation("test", "test", drafts=history)
    return build(conversation).fixture.messages[2].text
