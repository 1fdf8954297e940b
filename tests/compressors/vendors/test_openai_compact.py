"""OpenAI's compaction endpoint: what is kept, how it is counted, and how it fails."""

import anyio
import pytest
from inspect_ai.model import GenerateConfig, get_model

from compression_eval.compressors.errors import is_outage
from compression_eval.compressors.tokens import OPAQUE_TOKENS, is_opaque
from tests.compressors.conftest import conversation_fixture
from tests.compressors.vendors.conftest import GPT, Service, facts
from tests.compressors.vendors.openai_rules import ITEM_TOKENS
from tests.e2e.vendors.wire import Broken, Failed


def test_user_messages_and_the_item_are_the_state(openai: Service) -> None:
    state = openai.compress("openai-compact")
    assert state.status == "ok", state.failure
    assert [message.role for message in state.messages] == ["system", *["user"] * 4]
    assert state.regions == ["head", "head", "tail", "tail", "summary"]
    assert [is_opaque(message) for message in state.messages] == [False] * 4 + [True]
    assert openai.refused == []


def test_an_encrypted_item_is_counted_and_not_read(openai: Service) -> None:
    state = openai.compress("openai-compact")
    assert state.readable is False
    assert (state.messages[-1].metadata or {})[OPAQUE_TOKENS] == ITEM_TOKENS
    (cycle,) = state.cycles
    assert (cycle.model_calls, cycle.input_tokens, cycle.output_tokens) == (1, 400, ITEM_TOKENS)
    assert facts(state) == {"E000": (True, None), "E4401": (False, None)}
    smaller = openai
    smaller.rules.output_tokens = 7
    assert state.state_tokens - smaller.compress("openai-compact").state_tokens == ITEM_TOKENS - 7


def test_an_item_without_usage_is_counted_by_the_vendor(openai: Service) -> None:
    openai.rules.output_tokens = 0
    state = openai.compress("openai-compact")
    assert state.status == "ok", state.failure
    assert (state.messages[-1].metadata or {})[OPAQUE_TOKENS] == 51


def test_a_later_compression_starts_from_the_returned_items(openai: Service) -> None:
    state = openai.compress("openai-compact", cuts=(13, len(conversation_fixture().messages)))
    assert state.status == "ok", state.failure
    assert openai.refused == []
    second = openai.vendor.asked[-1].body["input"]
    assert [item["type"] for item in second].count("compaction") == 1
    assert sum(is_opaque(message) for message in state.messages) == 1
    assert len(state.cycles) == 2


def test_the_state_goes_back_whole_and_a_pruned_one_is_refused(openai: Service) -> None:
    state = openai.compress("openai-compact")
    output = anyio.run(openai.model.generate, state.messages)
    assert "E4401" in output.completion
    without_first = [state.messages[0], *state.messages[2:]]
    with pytest.raises(RuntimeError, match="unpruned"):
        anyio.run(openai.model.generate, without_first)
    with pytest.raises(RuntimeError, match="more than one"):
        anyio.run(openai.model.generate, [*state.messages, state.messages[-1]])


@pytest.mark.parametrize("compressor", ["openai-compact", "anthropic-native"])
@pytest.mark.parametrize(
    "reply",
    [Broken("<html>Log in</html>", "text/html"), Broken('{"id": "x'), Broken(""), Broken("[]")],
    ids=["a page", "half of the JSON", "nothing", "another JSON"],
)
def test_what_is_not_from_the_vendor_is_an_outage(
    openai: Service, anthropic: Service, compressor: str, reply: Broken
) -> None:
    service = openai if compressor == "openai-compact" else anthropic
    service.rules.failed = reply
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of several kinds
        service.compress(compressor)
    assert is_outage(caught.value, service.model)


@pytest.mark.parametrize("status", [404, 405])
def test_a_missing_endpoint_is_unsupported(openai: Service, status: int) -> None:
    openai.rules.failed = Failed(status, "invalid_request_error", "no such route")
    state = openai.compress("openai-compact")
    assert (state.status, state.messages) == ("unsupported", [])
    assert "not available" in state.failure


def test_a_conversation_over_the_window_is_told_apart(openai: Service) -> None:
    openai.rules.window = 100
    state = openai.compress("openai-compact")
    assert state.status == "error"
    assert "does not fit the model's window" in state.failure
    openai.rules.window = 1_000_000
    openai.rules.failed = Failed(400, "invalid_request_error", "bad input", "invalid_value")
    state = openai.compress("openai-compact")
    assert state.status == "error"
    assert "refused: HTTP 400: " in state.failure


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"items": 0}, "empty", "no compaction item"),
        ({"content": ""}, "empty", "no content"),
        ({"items": 2}, "error", "2 compaction items"),
        ({"output_tokens": 100_000}, "not_smaller", "removed"),
    ],
)
def test_an_unusable_reply_fails_the_state(
    openai: Service, change: dict[str, object], status: str, reason: str
) -> None:
    for name, value in change.items():
        setattr(openai.rules, name, value)
    state = openai.compress("openai-compact")
    assert (state.status, state.messages) == (status, [])
    assert reason in state.failure


def test_other_models_are_unsupported(openai: Service, anthropic: Service) -> None:
    state = anthropic.compress("openai-compact")
    assert state.status == "unsupported"
    assert "not reached through the openai package" in state.failure
    assert anthropic.vendor.asked == []
    openai.model = get_model(
        f"openai/{GPT}",
        config=GenerateConfig(),
        base_url=f"{openai.address}/v1",
        api_key="not-a-key",
        responses_api=False,
        memoize=False,
    )
    state = openai.compress("openai-compact")
    assert state.status == "unsupported"
    assert "Responses API" in state.failure
