"""The embedded model as Inspect gives it out, and small conversations to ask it about."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ResponseSchema,
    get_model,
)
from inspect_ai.tool import ToolCall
from inspect_ai.util import JSONSchema

import compression_eval._registry  # noqa: F401 - registers the provider

Ask = Callable[..., str]
Grade = Callable[..., dict[str, dict[str, Any]]]


def generate(messages: list[ChatMessage], schema: str = "") -> ModelOutput:
    """Run one request through Inspect's public entry point."""
    config = GenerateConfig()
    if schema:
        config.response_schema = ResponseSchema(name=schema, json_schema=JSONSchema(type="object"))
    model = get_model("embedded/lexical")
    return asyncio.run(model.generate(messages, config=config))


def call(id_: str, name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id=id_, function=name, arguments=arguments)


@pytest.fixture
def ask() -> Ask:
    """Put a question to the model about some messages; returns the answer's text."""

    def run(history: list[ChatMessage], question: str) -> str:
        return generate([*history, ChatMessageUser(content=question)]).completion

    return run


@pytest.fixture
def session() -> list[ChatMessage]:
    """A short working session with a constraint, a changed value, an edit and a failing test."""
    return [
        ChatMessageSystem(content="You are a coding agent."),
        ChatMessageUser(
            content="The importer drops rows. Never touch anything under vendor/. "
            "Set the retry limit to 30."
        ),
        ChatMessageAssistant(
            content="I'll look at the importer first.",
            tool_calls=[call("1", "read_file", path="importer/rows.py")],
        ),
        ChatMessageTool(
            content="def load_rows(path):\n    return [r for r in read(path) if r.strip_nul()]",
            tool_call_id="1",
        ),
        ChatMessageAssistant(
            content="The filter drops rows because strip_nul returns an empty string for NUL "
            "padding, so I keep the row and strip later.",
            tool_calls=[
                call(
                    "2",
                    "edit_file",
                    path="importer/rows.py",
                    old="return [r",
                    new="def keep_padded(row):\n    return row.rstrip(b'\\0')",
                )
            ],
        ),
        ChatMessageTool(content="edited importer/rows.py", tool_call_id="2"),
        ChatMessageAssistant(
            content="Running the tests.",
            tool_calls=[call("3", "bash", command="python -m unittest tests.test_rows")],
        ),
        ChatMessageTool(
            content="FAIL: test_padding\nAssertionError: 117 != 121\n"
            "Ran 9 tests\nFAILED (failures=1)",
            tool_call_id="3",
        ),
        ChatMessageAssistant(
            content="Fixed the offset.",
            tool_calls=[call("4", "bash", command="python -m unittest tests.test_rows")],
        ),
        ChatMessageTool(content="Ran 9 tests\nOK", tool_call_id="4"),
        ChatMessageUser(content="Set the retry limit to 45. Then document the exit codes."),
        ChatMessageAssistant(
            content="Next I will document the exit codes in docs/exit.md.",
            tool_calls=[call("5", "write_file", path="docs/exit.md", content="# Exit codes\n")],
        ),
        ChatMessageTool(content="wrote docs/exit.md", tool_call_id="5"),
    ]


@pytest.fixture
def grade() -> Grade:
    """Grade an answer; keyword arguments are fields of the ground truth."""

    def run(
        response: str, criteria: list[str], facts: list[Any], **truth: Any
    ) -> dict[str, dict[str, Any]]:
        expected = [
            {"fact": f, "also_accepted": [], "superseded": []} if isinstance(f, str) else f
            for f in facts
        ]
        request = {
            "probe_question": "What is known?",
            "ground_truth": {"expected_facts": expected, "must_not_appear": [], **truth},
            "rubric_criteria": criteria,
            "model_response": response,
        }
        context = json.dumps({"compacted_context": "something kept"})
        messages: list[ChatMessage] = [
            ChatMessageSystem(content="Grade by the rubric."),
            ChatMessageUser(content=f"{context}\n{json.dumps(request, ensure_ascii=False)}"),
        ]
        reply = json.loads(generate(messages, "criterion_results").completion)
        return {result["criterionId"]: result for result in reply["criterionResults"]}

    return run
