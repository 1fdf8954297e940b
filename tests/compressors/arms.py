"""Run a strategy as a run does."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
from inspect_ai.model import ChatMessage, CompactionStrategy, Model

from compression_eval.compressors.registry import compressor_spec
from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.compressors.state import State
from compression_eval.compressors.strategy import Arguments, Compressor, CompressorSpec
from compression_eval.facts.records import track
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.conversation import conversation, declared_tools
from compression_eval.fixtures.models import Fixture
from tests.compressors.conftest import Reply, model_replying


def spec_of(strategy: CompactionStrategy) -> CompressorSpec:
    """A strategy that has no name, as a run takes it."""
    compressor = Compressor("own", "", Arguments, lambda *_: strategy)
    return CompressorSpec(compressor, Arguments())


def plan_of(
    fixture: Fixture,
    compressor: str | CompactionStrategy | CompressorSpec,
    arguments: Mapping[str, Any] | None = None,
    cuts: tuple[int, ...] = (),
    probes: Sequence[Probe] = (),
    **more: Any,
) -> CompressionPlan:
    """Return what a run would make of a strategy on a fixture, by default at its end."""
    if isinstance(compressor, CompactionStrategy):
        compressor = spec_of(compressor)
    elif isinstance(compressor, str):
        compressor = compressor_spec(compressor, arguments)
    cuts = cuts or (len(fixture.messages),)
    tracked = track(fixture, cuts[-1], probes)
    tools = declared_tools(fixture, cuts[-1])
    return CompressionPlan(fixture, tools, cuts, compressor, tracked, **more)


def compressed(
    fixture: Fixture,
    compressor: str | CompactionStrategy | CompressorSpec,
    arguments: Mapping[str, Any] | None = None,
    reply: Reply = lambda _: "What was done.",
    cuts: tuple[int, ...] = (),
    model: Model | None = None,
    probes: Sequence[Probe] = (),
    **more: Any,
) -> tuple[State, list[list[Any]]]:
    """Return the state, and what the model was asked."""
    scripted, asked = model_replying(reply)
    plan = plan_of(fixture, compressor, arguments, cuts, probes, **more)
    return anyio.run(compress, plan, 0, model or scripted), asked


def session(*turns: tuple[str, str, dict[str, Any], str] | str) -> Fixture:
    """A fixture of user messages (texts) and tool calls (text, tool, arguments, result)."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding agent."}]
    for number, turn in enumerate(turns):
        if isinstance(turn, str):
            messages.append({"role": "user", "content": turn})
            continue
        text, tool, arguments, result = turn
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": tool, "arguments": json.dumps(arguments)},
        }
        messages.append({"role": "assistant", "content": text, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    messages.append({"role": "assistant", "content": "Done for now."})
    return Fixture.model_validate({"name": "session", "messages": messages})


def messages_of(fixture: Fixture) -> list[ChatMessage]:
    """A fixture's messages as strategies get them."""
    return anyio.run(conversation, fixture)
