"""Anthropic's own compaction: on demand, by its threshold edit, its clearing, and what it costs."""

from typing import Any

import anyio
import pytest
from anthropic.types.beta import BetaUsage
from inspect_ai.event import InfoEvent
from inspect_ai.model import ChatMessageUser

from compression_eval import AnthropicEditCompaction
from compression_eval.compressors.errors import is_outage
from compression_eval.compressors.state import State
from compression_eval.compressors.vendors.anthropic_api import BLOCK, billed, exact_replay
from compression_eval.compressors.vendors.calls import SOURCE, VendorCall, vendor_call
from compression_eval.fixtures.conversation import declared_tools
from compression_eval.fixtures.loading import load_pairs
from compression_eval.record import render_messages
from tests.compressors.conftest import conversation_fixture
from tests.compressors.vendors.anthropic_rules import ON_DEMAND, SUMMARY, size
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


@pytest.mark.parametrize("compressor", [*COMPRESSORS, "anthropic-edit", "anthropic-clear-tools"])
def test_models_of_others_are_unsupported(openai: Service, compressor: str) -> None:
    state = openai.compress(compressor)
    assert state.status == "unsupported"
    assert "Anthropic's own interface" in state.failure
    assert openai.vendor.asked == []


def test_the_trigger_is_checked_before_anything_is_sent() -> None:
    with pytest.raises(ValueError, match="50000"):
        AnthropicEditCompaction(trigger_tokens=49_999)


def test_the_block_is_the_state_and_can_be_read(anthropic: Service) -> None:
    state = anthropic.compress("anthropic-edit", {"instructions": "Keep the codes."})
    assert state.status == "ok", state.failure
    assert [message.role for message in state.messages] == ["system", "assistant"]
    assert state.readable
    assert SUMMARY in render_messages(state.messages)
    assert facts(state) == {"E000": (True, False), "E4401": (False, True)}
    (cycle,) = state.cycles
    assert (cycle.model_calls, cycle.input_tokens, cycle.output_tokens) == (1, 1_000, 40)
    (edit,) = anthropic.vendor.asked[0].body["context_management"]["edits"]
    assert edit == {
        "type": "compact_20260112",
        "trigger": {"type": "input_tokens", "value": 50_000},
        "pause_after_compaction": True,
        "instructions": "Keep the codes.",
    }


def test_inspect_sends_the_block_back_as_the_vendor_wants_it(anthropic: Service) -> None:
    state = anthropic.compress("anthropic-edit")
    messages = [*state.messages, ChatMessageUser(content="Which code?")]
    output = anyio.run(anthropic.model.generate, messages)
    assert "E4401" in output.completion
    assert anthropic.refused == []
    block = anthropic.vendor.asked[-1].body["messages"][0]["content"][0]
    block.pop("cache_control", None)
    assert block == {"type": "compaction", "content": SUMMARY}


def test_a_long_fixture_is_compressed_over_two_cycles(anthropic: Service) -> None:
    (pair,) = load_pairs(["401-debug"])
    length = len(pair.fixture.messages)
    half = next(n for n in range(length // 2, length) if pair.fixture.messages[n].role == "user")
    state = anthropic.compress("anthropic-edit", cuts=(half, length), fixture=pair.fixture)
    assert state.status == "ok", state.failure
    anthropic.compress("anthropic-edit", fixture=pair.fixture)
    _, second, whole = anthropic.vendor.asked
    assert second.body["messages"][0]["content"][0]["type"] == "compaction"
    assert size(second.body) < size(whole.body)
    assert anthropic.refused == []


def test_not_fired_and_failed_are_told_apart(anthropic: Service) -> None:
    anthropic.rules.tokens = 49_999
    state = anthropic.compress("anthropic-edit")
    assert state.status == "not_applied"
    assert "below the trigger of 50000" in state.failure
    anthropic.rules.tokens = 60_000
    anthropic.rules.block = {"content": None}
    state = anthropic.compress("anthropic-edit")
    assert state.status == "empty"
    assert "its summary failed" in state.failure
    anthropic.rules.block = None
    state = anthropic.compress("anthropic-edit")
    assert state.status == "empty"
    assert "without a summary" in state.failure


def test_a_block_that_inspect_would_not_send_back_whole_is_unsupported(anthropic: Service) -> None:
    anthropic.rules.block = {"content": SUMMARY, "signature": "sig", "encrypted_content": "x"}
    state = anthropic.compress("anthropic-edit")
    assert state.status == "unsupported"
    assert "encrypted_content, signature" in state.failure


def test_models_without_it_are_unsupported(anthropic: Service) -> None:
    text = "This model does not support context management."
    anthropic.rules.failed = Failed(400, "invalid_request_error", text)
    state = anthropic.compress("anthropic-edit")
    assert (state.status, text in state.failure) == ("unsupported", True)


def test_the_conversation_never_ends_with_the_agent(anthropic: Service) -> None:
    assert conversation_fixture().messages[-1].role == "assistant"
    anthropic.compress("anthropic-edit")
    assert anthropic.vendor.asked[0].body["messages"][-1]["role"] == "user"


def results(state: Any) -> list[str]:
    return [message.text for message in state.messages if message.role == "tool"]


def test_what_the_server_clears_is_cleared_in_the_state(anthropic: Service) -> None:
    state = anthropic.compress("anthropic-clear-tools", {"keep": 4})
    assert state.status == "ok", state.failure
    texts = results(state)
    assert ["code E" in text for text in texts] == [False] * 8 + [True] * 4
    assert facts(state)["E000"] == (True, False)
    (edit,) = anthropic.vendor.asked[0].body["context_management"]["edits"]
    assert edit["keep"] == {"type": "tool_uses", "value": 4}
    assert anthropic.vendor.asked[0].body["max_tokens"] == 1
    assert state.cycles[0].input_tokens == 200


def test_a_second_compression_clears_what_has_become_old(anthropic: Service) -> None:
    cuts = (13, len(conversation_fixture().messages))
    state = anthropic.compress("anthropic-clear-tools", cuts=cuts)
    assert state.status == "ok", state.failure
    assert ["code E" in text for text in results(state)] == [False] * 9 + [True] * 3


@pytest.mark.parametrize(
    ("arguments", "miscounts", "status", "reason"),
    [
        ({"trigger": "input_tokens", "trigger_value": 100_000}, 0, "not_applied", "did not fire"),
        ({"keep": 50}, 0, "not_applied", "did not fire"),
        ({"exclude_tools": ["bash"]}, 0, "not_applied", "did not fire"),
        ({}, 1, "error", "cannot be reproduced"),
    ],
)
def test_no_clearing_and_other_counts_are_failures(
    anthropic: Service, arguments: dict[str, Any], miscounts: int, status: str, reason: str
) -> None:
    anthropic.rules.miscounts = miscounts
    state = anthropic.compress("anthropic-clear-tools", arguments)
    assert (state.status, state.messages) == (status, [])
    assert reason in state.failure


def entry(kind: str, read: int, written: int) -> dict[str, Any]:
    cached = {"cache_creation_input_tokens": 1, "cache_read_input_tokens": 2}
    model = {"model": "claude-sonnet-4-6"} if kind == "fallback_message" else {}
    return {"type": kind, "input_tokens": read, "output_tokens": written, **cached, **model}


@pytest.mark.parametrize(
    ("iterations", "expected"),
    [
        (None, (10, 4)),
        ([], (10, 4)),
        ([entry("compaction", 900, 40)], (903, 40)),
        ([entry("compaction", 900, 40), entry("message", 50, 6)], (956, 46)),
        ([entry("message", 900, 40), entry("fallback_message", 10, 4)], (10, 4)),
    ],
)
def test_iterations_are_summed_unless_a_fallback_answered(
    iterations: list[dict[str, Any]] | None, expected: tuple[int, int]
) -> None:
    usage = {"input_tokens": 10, "output_tokens": 4, "iterations": iterations}
    assert billed(BetaUsage.model_validate(usage)) == expected


def test_only_our_own_events_are_calls() -> None:
    call = VendorCall(
        endpoint="POST /x", model="a/b", fed_messages=3, input_tokens=5, output_tokens=2
    )
    data = call.model_dump(mode="json")
    assert vendor_call(InfoEvent(source=SOURCE, data=data)) == call
    assert vendor_call(InfoEvent(source="compression", data=data)) is None
    assert vendor_call(InfoEvent(source=SOURCE, data={"endpoint": "POST /x"})) is None
