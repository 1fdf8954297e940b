"""Anthropic's compaction on demand, with its signed block and as text."""

from typing import Any

import anyio
import pytest
from inspect_ai.model import ChatMessageUser

from compression_eval.compressors.errors import is_outage
from compression_eval.compressors.state import State
from compression_eval.compressors.vendors.anthropic_api import BLOCK, exact_replay
from compression_eval.fixtures.conversation import declared_tools
from tests.compressors.conftest import conversation_fixture
from tests.compressors.vendors.anthropic_rules import ON_DEMAND, SUMMARY
from tests.compressors.vendors.conftest import Service, facts
from tests.e2e.vendors.anthropic_wire import blocks
from tests.e2e.vendors.wire import Failed

COMPRESSORS = (NATIVE, PROJECTION) = ("anthropic-native", "anthropic-text-projection")
QUESTION = ChatMessageUser(content="Which code?")
BOTH = pytest.mark.parametrize("compressor", COMPRESSORS)


def answer(service: Service, state: State) -> str:
    fixture = conversation_fixture()
    tools = declared_tools(fixture, len(fixture.messages))

    async def ask() -> str:
        messages = [*state.messages, QUESTION]
        async with exact_replay(service.model, messages) as model:
            return (await model.generate(messages, tools=tools, tool_choice="none")).completion

    return anyio.run(ask)


@BOTH
def test_the_summary_is_readable_and_its_cost_is_that_of_the_iterations(
    anthropic: Service, compressor: str
) -> None:
    state = anthropic.compress(compressor)
    assert state.status == "ok", state.failure
    assert anthropic.refused == []
    assert state.readable
    assert [message.role for message in state.messages] == ["system", "user"]
    assert state.messages[-1].text.endswith(SUMMARY)
    (cycle,) = state.cycles
    assert (cycle.model_calls, cycle.input_tokens, cycle.output_tokens) == (1, 1_000, 40)
    assert facts(state) == {"E000": (True, False), "E4401": (False, True)}


@BOTH
def test_the_request_is_the_whole_conversation_with_its_tools(
    anthropic: Service, compressor: str
) -> None:
    anthropic.compress(compressor, {"instructions": "Keep {codes}."})
    (asked,) = anthropic.vendor.asked
    assert asked.body["compaction"] == {"type": "summarize", "instructions": "Keep {codes}."}
    assert [tool["name"] for tool in asked.body["tools"]] == ["bash"]
    assert sum(part.kind == "result" for part in asked.parts) == 12
    assert asked.body["system"] == [{"type": "text", "text": "You are a coding agent."}]


@BOTH
def test_a_tail_is_not_sent_but_kept(anthropic: Service, compressor: str) -> None:
    state = anthropic.compress(compressor, {"tail_tokens": 200})
    assert state.status == "ok", state.failure
    assert state.regions.count("tail") == len(state.messages) - 2 > 0
    assert "step 11" not in anthropic.vendor.asked[0].text
    assert "E4401" in answer(anthropic, state)
    assert anthropic.refused == []


def test_the_signed_block_goes_back_first_alone_and_unchanged(anthropic: Service) -> None:
    state = anthropic.compress(NATIVE)
    assert "E4401" in answer(anthropic, state)
    asked = anthropic.vendor.asked[-1]
    first, last = asked.body["messages"]
    block = {"type": "compaction", "content": SUMMARY, "signature": "sig-0"}
    assert first == {"role": "assistant", "content": [block]}
    assert last["content"][0]["text"] == QUESTION.text
    assert "context_management" not in asked.body
    assert ON_DEMAND in {k.lower(): v for k, v in asked.headers.items()}["anthropic-beta"]


def test_the_projection_holds_nothing_that_only_the_vendor_reads(anthropic: Service) -> None:
    state = anthropic.compress(PROJECTION)
    assert all(BLOCK not in (message.metadata or {}) for message in state.messages)
    assert "E4401" in answer(anthropic, state)
    asked = anthropic.vendor.asked[-1]
    assert "anthropic-beta" not in {name.lower() for name in asked.headers}
    assert "compaction" not in {b["type"] for m in asked.body["messages"] for b in blocks(m)}


@BOTH
def test_a_later_compression_covers_the_earlier_summary(
    anthropic: Service, compressor: str
) -> None:
    state = anthropic.compress(compressor, cuts=(13, len(conversation_fixture().messages)))
    assert state.status == "ok", state.failure
    first, second = anthropic.vendor.asked
    assert "E000" in first.text
    assert "E000" not in second.text
    found = [b for m in second.body["messages"] for b in blocks(m) if b["type"] == "compaction"]
    assert [block["signature"] for block in found] == (["sig-0"] if compressor is NATIVE else [])
    assert anthropic.refused == []


@BOTH
@pytest.mark.parametrize(
    ("stop_reason", "status", "reason"),
    [
        ("end_turn", "empty", "without a summary"),
        ("tool_use", "empty", "without a summary"),
        ("refusal", "aborted", "refused"),
        ("max_tokens", "error", "cut off"),
        ("model_context_window_exceeded", "error", "does not fit the model's window"),
    ],
)
def test_success_without_content_is_a_failure(
    anthropic: Service, compressor: str, stop_reason: str, status: str, reason: str
) -> None:
    anthropic.rules.block = None
    anthropic.rules.stop_reason = stop_reason
    state = anthropic.compress(compressor)
    assert (state.status, state.messages) == (status, [])
    assert reason in state.failure


def test_a_missing_signature_fails_only_what_needs_it(anthropic: Service) -> None:
    anthropic.rules.signs = False
    state = anthropic.compress(NATIVE)
    assert state.status == "error"
    assert "without its signature" in state.failure
    assert anthropic.compress(PROJECTION).status == "ok"


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"blocks": 2}, "error", "2 compaction blocks"),
        ({"block": {"content": " "}}, "empty", "no content"),
        ({"failed": Failed(404, "not_found_error", "x")}, "unsupported", "no such endpoint"),
        ({"failed": Failed(405, "invalid_request_error", "x")}, "unsupported", "no such endpoint"),
        (
            {"failed": Failed(400, "invalid_request_error", "prompt is too long: 210000 tokens")},
            "error",
            "does not fit the model's window",
        ),
        (
            {"failed": Failed(400, "invalid_request_error", "compaction: Extra inputs are not ok")},
            "unsupported",
            "Extra inputs",
        ),
    ],
)
def test_each_failure_has_its_own_reason(
    anthropic: Service, change: dict[str, Any], status: str, reason: str
) -> None:
    for name, value in change.items():
        setattr(anthropic.rules, name, value)
    anthropic.model.config.max_retries = 1
    state = anthropic.compress(NATIVE)
    assert (state.status, state.messages) == (status, [])
    assert reason in state.failure


def test_an_overload_is_no_failure_of_the_strategy(anthropic: Service) -> None:
    anthropic.rules.failed = Failed(529, "overloaded_error", "compaction_unavailable")
    anthropic.model.config.max_retries = 1
    with pytest.raises(Exception, match="compaction_unavailable") as caught:
        anthropic.compress(NATIVE)
    assert is_outage(caught.value, anthropic.model)


def test_models_of_others_are_unsupported(openai: Service) -> None:
    for compressor in COMPRESSORS:
        state = openai.compress(compressor)
        assert state.status == "unsupported"
        assert "Anthropic's own interface" in state.failure
    assert openai.vendor.asked == []
