"""An agent on a scripted model that works until its context has to be compressed, and on."""

import json
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.event import CompactionEvent
from inspect_ai.log import EvalLog
from inspect_ai.model import CompactionStrategy, ModelAPI, ModelOutput, ModelUsage, get_model
from inspect_ai.tool import Tool, ToolChoice, ToolInfo, tool

STEPS = 16
THRESHOLD = 1_500
"""Tokens, of about 150 for each step."""

OPERATIONS = json.dumps(
    {"operations": [{"op": "add", "section": "state", "text": "Some steps are done."}]}
)


@tool
def work() -> Tool:
    async def execute(step: int) -> str:
        """Do a step.

        Args:
            step: Number of the step.
        """
        return f"code E{step}00\n" + "detail " * 80

    return execute


def agent_run(strategy: CompactionStrategy, log_dir: Path) -> EvalLog:
    """Run an agent that makes a call of a tool for every step and then submits."""
    done = 0

    def reply(
        messages: list[Any], tools: list[ToolInfo], choice: ToolChoice, config: Any
    ) -> ModelOutput:
        nonlocal done
        name = "mockllm/model"
        if not tools or choice == "none":
            text = OPERATIONS if config.response_schema else "Some steps are done."
            output = ModelOutput.from_content(name, text)
        elif done < STEPS:
            output = ModelOutput.for_tool_call(name, "work", {"step": done})
            done += 1
        else:
            output = ModelOutput.for_tool_call(name, "submit", {"answer": "all done"})
        size = sum(len(message.text) for message in messages) // 4
        output.usage = ModelUsage(input_tokens=size, output_tokens=10, total_tokens=size + 10)
        return output

    task = Task(
        dataset=[Sample(input="Do all the steps.")],
        solver=react(tools=[work()], compaction=strategy),
    )
    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    with pytest.MonkeyPatch.context() as patch:
        # Inspect's own count would download a vocabulary.
        patch.setattr(ModelAPI, "count_text_tokens", _count)
        (log,) = run_eval(task, model=model, log_dir=str(log_dir), display="log", message_limit=100)
    return log


async def _count(_: ModelAPI, text: str) -> int:
    return len(text) // 4


def went_on(log: EvalLog, applied: str) -> bool:
    """Whether the agent was compressed by a strategy of that name and worked to its end."""
    (sample,) = log.samples or []
    compressed = [event for event in sample.events if isinstance(event, CompactionEvent)]
    assert compressed, "the agent never came to its threshold"
    assert all(event.tokens_after <= THRESHOLD for event in compressed if event.tokens_after)
    assert {(event.metadata or {})["strategy"] for event in compressed} == {applied}
    return sample.output.completion.endswith("all done")
