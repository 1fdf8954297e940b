"""States of recorded compactions: ids that fit each other, whatever was kept or made anew."""

from compression_eval.conversations.building import build
from compression_eval.conversations.drafts import Compaction, Conversation, Draft, DraftCall
from compression_eval.fixtures.models import Message


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
