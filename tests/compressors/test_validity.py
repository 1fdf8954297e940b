"""The gate before any probe: what counts as smaller, and whether the last request is there."""

import pytest
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    CompactionStrategy,
    Model,
)
from inspect_ai.tool import ToolInfo

from compression_eval.compressors.state import State
from compression_eval.compressors.validity import (
    DEFAULT_MIN_REMOVED,
    size_problem,
    structural_problem,
)
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed
from tests.compressors.conftest import LATE, conversation_fixture

WORD = "word "


def words(count: int, system: int = 0) -> list[ChatMessage]:
    """One user message of some tokens, under a system prompt of some tokens."""
    messages: list[ChatMessage] = [ChatMessageUser(content=WORD * count)]
    return [ChatMessageSystem(content=WORD * system), *messages] if system else messages


@pytest.mark.parametrize(
    ("before", "after", "min_removed", "fits"),
    [
        (words(1_000), words(880), DEFAULT_MIN_REMOVED, True),
        (words(1_000), words(930), DEFAULT_MIN_REMOVED, False),  # the release that removed 7 %
        (words(1_000), words(600), 0.5, False),
        # A long system prompt, which must stay, does not hide what was done to the rest.
        (words(100, system=2_000), words(50, system=2_000), 0.4, True),
    ],
)
def test_what_counts_as_smaller(
    before: list[ChatMessage], after: list[ChatMessage], min_removed: float, fits: bool
) -> None:
    problem = size_problem(before, after, min_removed)
    assert (problem is None) == fits
    if problem:
        assert f"at least {min_removed:.1%} is asked for (min_removed)" in problem


class _Shortening(CompactionStrategy):
    """Cuts each tool result by a share; from the second compression on by another."""

    def __init__(self, first: float, later: float) -> None:
        super().__init__(type="edit", memory=False)
        self.shares = [first, later]

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        share = self.shares.pop(0) if len(self.shares) > 1 else self.shares[0]
        return [self._cut(message, share) for message in messages], None

    @staticmethod
    def _cut(message: ChatMessage, share: float) -> ChatMessage:
        if message.role != "tool":
            return message
        text = message.text
        kept = text[: int(len(text) * (1 - share))] or "-"
        return message.model_copy(update={"content": kept})


def shortened(first: float, later: float, cuts: tuple[int, ...], min_removed: float) -> State:
    strategy = _Shortening(first, later)
    return compressed(conversation_fixture(), strategy, cuts=cuts, min_removed=min_removed)[0]


END = len(conversation_fixture().messages)


def test_a_compression_that_hardly_shrinks_has_failed() -> None:
    state = shortened(0.05, 0.05, (END,), DEFAULT_MIN_REMOVED)
    assert state.status == "not_smaller"
    assert "min_removed" in state.failure
    assert state.messages == []
    assert len(state.cycles) == 1, "how far it got is still told"
    assert shortened(0.05, 0.05, (END,), 0.01).status == "ok"


def test_each_compression_of_a_chain_must_shrink_its_own_input() -> None:
    middle = END // 2 + 1
    assert shortened(0.9, 0.5, (middle, END), DEFAULT_MIN_REMOVED).status == "ok"
    state = shortened(0.9, 0.01, (middle, END), DEFAULT_MIN_REMOVED)
    assert state.status == "not_smaller", "the first compression must not hide the second"
    assert len(state.cycles) == 2


def talk() -> list[ChatMessage]:
    return [
        ChatMessageSystem(content="s", id="m0"),
        ChatMessageUser(content="first", id="m1"),
        ChatMessageAssistant(content="done", id="m2"),
        ChatMessageUser(content="now do  the other\nthing", id="m3"),
        ChatMessageAssistant(content="working", id="m4"),
    ]


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        (talk()[3:], True),
        ([talk()[1], talk()[4]], False),
        ([ChatMessageUser(content="You are asked: now do the other thing.", id="x")], True),
        ([talk()[1], ChatMessageAssistant(content="A summary.", id="x")], True),
        # Cut to fit a budget, it is still the message.
        ([ChatMessageUser(content="now do", id="m3")], True),
    ],
)
def test_the_last_request_is_kept_or_replaced(state: list[ChatMessage], kept: bool) -> None:
    problem = structural_problem([talk()[0], *state], talk())
    if kept:
        assert problem is None
    else:
        assert problem == "the last user message is gone, and nothing was written in its place"


@pytest.mark.parametrize("name", ["masking", "clear-tools", "edit"])
def test_a_late_system_message_of_the_history_is_no_fault_of_who_keeps_it(
    name: str, noted: Fixture
) -> None:
    state, _ = compressed(noted, name)
    assert state.status == "ok", state.failure
    places = {at: m.id for at, m in enumerate(state.messages) if m.role == "system"}
    assert places == {0: "m0", LATE: "m6", LATE + 1: "m7"}
