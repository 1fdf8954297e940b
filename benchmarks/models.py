"""Local models for the benchmarks: instant or with a set latency, always the same replies."""

import json
from typing import Any

import anyio
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

CALLS: list[list[ChatMessage]] = []
"""The input of every call so far."""

_OPERATIONS = json.dumps(
    {
        "operations": [
            {"op": "add", "section": "state", "text": f"Entry {number} of the memory."}
            for number in range(40)
        ]
    }
)


@modelapi(name="bench")
class BenchAPI(ModelAPI):
    """Answers, grades and summarises with fixed text; ``bench/<milliseconds>-<milliseconds>``.

    The first number is the latency of an answer or a grading, the second that of a compression.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        del model_args
        call, compression = model_name.split("-")
        self._seconds = {"call": int(call) / 1000, "compression": int(compression) / 1000}

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002
        tools: list[ToolInfo],  # noqa: ARG002
        tool_choice: ToolChoice,  # noqa: ARG002
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the fixed reply after the latency."""
        CALLS.append(input)
        schema = config.response_schema.name if config.response_schema else ""
        kind = "compression" if schema == "anchored_operations" else "call"
        if self._seconds[kind]:
            await anyio.sleep(self._seconds[kind])
        text = "The answer is 42."
        if kind == "compression":
            text = _OPERATIONS
        elif schema == "criterion_results":
            text = _grades(_data(input[-1], '{"probe_question"'))
        elif schema == "state_facts":
            text = _reading(_data(input[-1], '{"facts_to_find"'))
        elif "GRADE" in input[-1].text:
            text = "GRADE: C"
        output = ModelOutput.from_content(f"bench/{self.model_name}", text)
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    def max_connections(self) -> int:
        """Return Inspect's usual number."""
        return 10


def _data(message: ChatMessage, beginning: str) -> Any:
    *_, line = message.text.splitlines()
    return json.loads(line[line.rindex(beginning) :])


def _grades(data: Any) -> str:
    return json.dumps(
        {
            "criterionResults": [
                {"criterionId": identifier, "score": 3, "reasoning": "as always"}
                for identifier in data["rubric_criteria"]
            ],
            "facts": [
                {"factId": fact["id"], "verdict": "stated"}
                for fact in data["ground_truth"]["expected_facts"]
            ],
        }
    )


def _reading(data: Any) -> str:
    ids = [fact["factId"] for probe in data["facts_to_find"] for fact in probe["expected_facts"]]
    findings = [{"factId": identifier, "word": "absent", "quotes": []} for identifier in ids]
    return json.dumps({"factFindings": findings})
