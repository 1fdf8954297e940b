"""The vendors' own compaction: what is kept, how it is counted, and how it fails."""

import json
from typing import Any

import anyio
import pytest
from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model

from compression_eval.compressors.errors import is_outage
from compression_eval.compressors.state import State
from compression_eval.compressors.tokens import OPAQUE_TOKENS, is_opaque
from compression_eval.record import render_messages
from tests.compressors.conftest import conversation_fixture
from tests.compressors.vendors.anthropic_rules import SUMMARY
from tests.compressors.vendors.conftest import GPT, Service, facts
from tests.compressors.vendors.openai_rules import ITEM_TOKENS
from tests.e2e.vendors.anthropic_wire import blocks
from tests.e2e.vendors.wire import Broken, Failed

EDIT, TEXT, ITEM = "anthropic-edit", "anthropic-text-projection", "openai-compact"
BOTH = pytest.mark.parametrize("compressor", [EDIT, TEXT])
CUTS = (13, len(conversation_fixture().messages))


def answered(service: Service, state: State) -> dict[str, Any]:
    """Return the request that puts a question to a state; the reply must be the vendor's."""
    messages = [*state.messages, ChatMessageUser(content="Which code?")]
    output = anyio.run(service.model.generate, messages)
    assert "E4401" in output.completion
    assert service.refused == []
    return service.vendor.asked[-1].body


def test_openai_leaves_user_messages_and_an_item_that_is_counted_and_not_read(
    openai: Service,
) -> None:
    state = openai.compress(ITEM)
    assert state.status == "ok", state.failure
    assert [message.role for message in state.messages] == ["system", *["user"] * 4]
    assert state.regions == ["head", "head", "tail", "tail", "summary"]
    assert [is_opaque(message) for message in state.messages] == [False] * 4 + [True]
    assert (state.messages[-1].metadata or {})[OPAQUE_TOKENS] == ITEM_TOKENS
    (cycle,) = state.cycles
    assert (cycle.model_calls, cycle.input_tokens, cycle.output_tokens) == (1, 400, ITEM_TOKENS)
    assert state.readable is False
    assert facts(state) == {"E000": (True, None), "E4401": (False, None)}
    openai.rules.output_tokens = 7
    assert state.state_tokens - openai.compress(ITEM).state_tokens == ITEM_TOKENS - 7


def test_openais_items_go_back_whole_to_the_model_and_to_a_later_compression(
    openai: Service,
) -> None:
    state = openai.compress(ITEM, cuts=CUTS)
    assert state.status == "ok", state.failure
    second = openai.vendor.asked[-1].body["input"]
    assert [item["type"] for item in second].count("compaction") == 1
    assert sum(is_opaque(message) for message in state.messages) == 1
    answered(openai, state)


@BOTH
def test_anthropics_summary_is_readable_and_its_cost_recorded(
    anthropic: Service, compressor: str
) -> None:
    state = anthropic.compress(compressor, {"instructions": "Keep {codes}."})
    assert state.status == "ok", state.failure
    assert anthropic.refused == []
    assert state.readable
    assert SUMMARY in render_messages(state.messages)
    assert facts(state) == {"E000": (True, False), "E4401": (False, True)}
    (cycle,) = state.cycles
    assert cycle.model_calls == 1
    assert cycle.output_tokens >= 40
    (asked,) = anthropic.vendor.asked
    (edit,) = asked.body["context_management"]["edits"]
    assert edit["instructions"] == "Keep {codes}."
    assert sum(part.kind == "result" for part in asked.parts) == 12
    assert asked.body["messages"][-1]["role"] == "user", "newer models refuse a prefill"


def test_anthropics_block_goes_back_and_its_text_alone_does_not(anthropic: Service) -> None:
    def kinds(body: dict[str, Any]) -> list[str]:
        return [block["type"] for message in body["messages"] for block in blocks(message)]

    assert "compaction" in kinds(answered(anthropic, anthropic.compress(EDIT)))
    assert "compaction" not in kinds(answered(anthropic, anthropic.compress(TEXT)))


@BOTH
def test_a_later_compression_covers_anthropics_earlier_summary(
    anthropic: Service, compressor: str
) -> None:
    state = anthropic.compress(f"{compressor}+artifacts", cuts=CUTS)
    assert state.status == "ok", state.failure
    first, second = anthropic.vendor.asked
    assert "E000" in first.text
    assert "E000" not in second.text
    assert "Files of this session" not in json.dumps(second.body)
    assert anthropic.refused == []


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"tokens": 49_999}, "not_applied", "below 50,000 tokens"),
        ({"content": None}, "empty", "failed to compact"),
        (
            {"failed": Failed(400, "invalid_request_error", "does not support compaction")},
            "unsupported",
            "does not support",
        ),
        ({"failed": Failed(404, "not_found_error", "x")}, "error", "NotFoundError"),
    ],
)
def test_each_failure_of_anthropic_has_its_own_reason(
    anthropic: Service, change: dict[str, Any], status: str, reason: str
) -> None:
    """These also fail where Inspect words its errors otherwise, by which they are told apart."""
    for name, value in change.items():
        setattr(anthropic.rules, name, value)
    state = anthropic.compress(EDIT)
    assert (state.status, state.messages) == (status, [])
    assert reason in state.failure


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"items": 0}, "error", "ResponseCompactionItem"),
        ({"content": ""}, "empty", "no content"),
        ({"output_tokens": 100_000}, "not_smaller", "removed"),
        ({"window": 100}, "error", "exceeds the context window"),
        ({"failed": Failed(404, "invalid_request_error", "x")}, "unsupported", "not available"),
    ],
)
def test_each_failure_of_openai_has_its_own_reason(
    openai: Service, change: dict[str, Any], status: str, reason: str
) -> None:
    for name, value in change.items():
        setattr(openai.rules, name, value)
    state = openai.compress(ITEM)
    assert (state.status, state.messages) == (status, [])
    assert reason in state.failure


@pytest.mark.parametrize("compressor", [ITEM, EDIT])
@pytest.mark.parametrize(
    "reply",
    [
        Failed(529, "overloaded_error", "overloaded"),
        Broken("<html>Log in</html>", "text/html"),
        Broken('{"id": "x'),
    ],
    ids=["overloaded", "a page", "half of the JSON"],
)
def test_an_outage_is_no_failure_of_the_strategy(
    openai: Service, anthropic: Service, compressor: str, reply: Failed | Broken
) -> None:
    service = openai if compressor == ITEM else anthropic
    service.rules.failed = reply
    service.model.config.max_retries = 0
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of several kinds
        service.compress(compressor)
    assert is_outage(caught.value, service.model)


def test_models_of_others_are_unsupported(openai: Service, anthropic: Service) -> None:
    for service, compressor in ((openai, EDIT), (openai, TEXT), (anthropic, ITEM)):
        state = service.compress(compressor)
        assert (state.status, "is not a model of" in state.failure) == ("unsupported", True)
        assert service.vendor.asked == []
    openai.model = get_model(
        f"openai/{GPT}",
        config=GenerateConfig(),
        base_url=f"{openai.address}/v1",
        api_key="not-a-key",
        responses_api=False,
        memoize=False,
    )
    state = openai.compress(ITEM)
    assert state.status == "unsupported"
    assert "Responses API" in state.failure
