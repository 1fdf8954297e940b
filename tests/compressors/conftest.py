"""Small conversations and models for the strategies."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model

from compression_eval.fixtures.models import Fixture

Reply = Callable[[list[Any]], str]


def conversation_fixture(turns: int = 12, name: str = "small") -> Fixture:
    """A fixture with one user message per four turns and a tool call in each."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding agent."}]
    for turn in range(turns):
        if turn % 4 == 0:
            messages.append(
                {"role": "user", "content": f"Please do step {turn} with value V{turn}."}
            )
        call = {
            "id": f"c{turn}",
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": f"run {turn}"})},
        }
        messages.append({"role": "assistant", "content": f"Step {turn}.", "tool_calls": [call]})
        text = f"output line of step {turn}: code E{turn}00\n" + "detail " * 40
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": text})
    messages.append({"role": "assistant", "content": "Done for now."})
    return Fixture.model_validate({"name": name, "messages": messages})


def model_replying(reply: Reply) -> tuple[Model, list[list[Any]]]:
    """A local model that answers by a function; the list collects what it was asked."""
    asked: list[list[Any]] = []

    def output(messages: list[Any], *_: Any) -> ModelOutput:
        asked.append(list(messages))
        result = ModelOutput.from_content("mockllm/model", reply(messages))
        result.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return result

    return get_model("mockllm/model", custom_outputs=output, memoize=False), asked


@pytest.fixture
def fixture() -> Fixture:
    return conversation_fixture()


LATE = 6
"""Where the conversation below has system messages among the others."""


@pytest.fixture
def noted() -> Fixture:
    plain = conversation_fixture(24).model_dump(exclude_none=True)
    note = {"role": "system", "content": "The sandbox is read-only from now on."}
    plain["messages"][LATE:LATE] = [note, {**note, "content": "Code E000 is to be watched."}]
    return Fixture.model_validate(plain)
