"""The strategies taken from products on the shipped conversations: what applies, how it ends."""

from importlib.util import find_spec
from typing import Any

import pytest

from compression_eval.compressors.registry import COMPRESSORS
from compression_eval.compressors.state import State
from compression_eval.compressors.validity import structural_problem
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.cuts import chain
from compression_eval.fixtures.loading import load_pairs
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed

NAMES = ("pr-triage", "401-debug")
PRODUCTS = ("claude-code", "clear-tools", "codex", "langchain", "masking", "openhands", "pi")
SCALED: dict[str, dict[str, Any]] = {
    "pi": {"keep_recent_tokens": 1_500},
    "masking": {"keep": 3},
    "langchain": {"keep": ["tokens", 1_500]},
}
"""Arguments with which every strategy applies to every third of a shipped conversation."""


@pytest.fixture(scope="module")
def pairs() -> dict[str, tuple[Fixture, ProbeBank]]:
    return {name: (pair.fixture, pair.bank) for name in NAMES for pair in load_pairs([name], None)}


def run(
    pairs: dict[str, tuple[Fixture, ProbeBank]],
    name: str,
    fixture: str,
    arguments: dict[str, Any],
    cycles: int,
) -> State:
    if name == "langchain" and find_spec("langchain") is None:
        pytest.skip("langchain is not installed")
    conversation, bank = pairs[fixture]
    cuts = chain(conversation, len(conversation.messages), cycles)
    state, _ = compressed(conversation, name, arguments, cuts=cuts, probes=bank.probes)
    return state


@pytest.mark.parametrize("fixture", NAMES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_published_defaults(
    pairs: dict[str, tuple[Fixture, ProbeBank]], name: str, fixture: str
) -> None:
    state = run(pairs, name, fixture, {}, 1)
    if name == "pi" and fixture == "pr-triage":
        assert state.status == "not_applied"
        return
    assert state.status == "ok", state.failure
    assert structural_problem(state.messages) is None
    verbatim = sum(1 for record in state.facts if set(record.regions) & {"head", "tail"})
    assert (verbatim > 0) is (name != "claude-code")
    # LangChain's default shows its model 4,000 tokens: of the long conversation not one fact.
    shown = COMPRESSORS[name].calls_model and (name, fixture) != ("langchain", "401-debug")
    assert any(record.fed for record in state.facts) is shown


@pytest.mark.parametrize("fixture", ["401-debug"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_three_cycles(pairs: dict[str, tuple[Fixture, ProbeBank]], name: str, fixture: str) -> None:
    state = run(pairs, name, fixture, SCALED.get(name, {}), 3)
    assert state.status == "ok", state.failure
    assert [cycle.tokens_after < cycle.tokens_before for cycle in state.cycles] == [True] * 3
    assert structural_problem(state.messages) is None
    keys = [key for message in state.messages for key in message.metadata or {}]
    own = f"compression_eval_{name.replace('-', '_')}"
    assert keys.count(own) == COMPRESSORS[name].calls_model
