"""Anthropic's tool clearing: the server counts, the state shows the same."""

from typing import Any

import pytest

from tests.compressors.conftest import conversation_fixture
from tests.compressors.vendors.conftest import Service, facts


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


def test_models_of_others_are_unsupported(openai: Service) -> None:
    assert openai.compress("anthropic-clear-tools").status == "unsupported"
