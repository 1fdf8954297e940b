"""Codex' local compaction."""

import anyio
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    Model,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.tool import ToolInfo

from compression_eval.compressors.budget import groups
from compression_eval.compressors.products import CodexCompaction
from compression_eval.compressors.state import State
from compression_eval.compressors.tokens import token_counter
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed
from tests.compressors.conftest import conversation_fixture, model_replying

ASKED = [f"Please do step {turn} with value V{turn}." for turn in (0, 4, 8)]


def said(state: State) -> list[str]:
    return [message.text for message in state.messages[1:]]


def test_user_messages_stay_and_the_summary_comes_last(fixture: Fixture) -> None:
    state, asked = compressed(fixture, "codex", reply=lambda _: "Handed over.")
    assert state.status == "ok", state.failure
    assert {message.role for message in state.messages[1:]} == {"user"}
    assert said(state)[:-1] == ASKED
    assert said(state)[-1].endswith("\n\nHanded over.")
    assert said(state)[-1].startswith("A model before you")
    assert state.regions == ["head", "head", "tail", "tail", "summary"]
    (request,) = asked
    assert len(request) == len(fixture.messages) + 1
    assert "handoff summary" in request[-1].text


def kept_of(users: list[ChatMessageUser], user_tokens: int) -> list[ChatMessage]:
    """The messages before the summary, of user messages and a reply after them."""
    model, _ = model_replying(lambda _: "Handed over.")
    messages: list[ChatMessage] = [*users, ChatMessageAssistant(content="Done.")]
    tools: list[ToolInfo] = []
    strategy = CodexCompaction(user_tokens=user_tokens)
    state, _ = anyio.run(strategy.compact, model, messages, tools)
    return state[:-1]


def test_the_budget_is_filled_from_the_newest_and_the_last_one_is_shortened() -> None:
    counter = token_counter()
    users = [
        ChatMessageUser(content=f"{name} " + "word " * 100 + f"end-{name}", id=name)
        for name in ("a", "b", "c")
    ]
    each = counter.count(users[0].text)
    kept = kept_of(users, each + 60)
    assert [message.id for message in kept] == ["b", "c"]
    assert kept[1] is users[2]
    assert counter.count(kept[0].text) <= 60
    assert kept[0].text.startswith("b word")
    assert kept[0].text.endswith("end-b")
    assert "characters left out" in kept[0].text
    assert [m.id for m in kept_of(users, 3 * each)] == ["a", "b", "c"]
    assert [m.id for m in kept_of(users, each)] == ["c"]
    assert kept_of(users, 0) == []


def narrow(limit: int) -> tuple[Model, list[int]]:
    """A model whose window contains so many messages; the list collects the lengths asked."""
    lengths: list[int] = []

    def output(messages: list[object], *_: object) -> ModelOutput:
        lengths.append(len(messages))
        too_long = len(messages) > limit
        result = ModelOutput.from_content(
            "mockllm/model",
            "" if too_long else "Summary.",
            stop_reason="model_length" if too_long else "stop",
        )
        result.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return result

    return get_model("mockllm/model", custom_outputs=output, memoize=False), lengths


def test_over_the_window_the_oldest_messages_are_left_out() -> None:
    fixture = conversation_fixture(40)
    model, lengths = narrow(30)
    state, _ = compressed(fixture, "codex", model=model)
    assert state.status == "ok", state.failure
    assert lengths[-1] <= 30 < lengths[-2]
    assert len(lengths) <= 1 + len(groups(state.messages)) + len(fixture.messages).bit_length()
    model, lengths = narrow(2)
    state, _ = compressed(fixture, "codex", model=model)
    assert state.status == "error"
    assert "cut off" in state.failure
    assert lengths[-1] == 3
