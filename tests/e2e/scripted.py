"""Models that reply by a function and remember every call, known to Inspect as ``scripted/NAME``.

They are looked up by name, so they also work in a retried run and in another process, where an
object handed to ``eval()`` would be lost.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
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
from tenacity import wait_none

ANSWERS, GRADES, COMPRESSES = "answers", "grades", "compresses"


@dataclass(frozen=True)
class Call:
    """One request as the provider gets it."""

    model: str
    messages: list[ChatMessage]
    tools: list[ToolInfo]
    tool_choice: ToolChoice
    config: GenerateConfig
    number: int
    """Which call to this model it is, from 0."""

    @property
    def text(self) -> str:
        """The text of all messages, one after another."""
        return "\n".join(message.text for message in self.messages)

    @property
    def last(self) -> str:
        """The text of the last message."""
        return self.messages[-1].text


Reply = Callable[[Call], str | ModelOutput]


@dataclass
class Script:
    """What one model says, and what it was asked so far."""

    reply: Reply
    calls: list[Call] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    """The largest number of calls that were under way at the same moment."""
    seconds: float = 0.0
    """How long a call takes."""


Scripts = dict[str, Script]

SCRIPTS: Scripts = {}


def output(text: str, stop_reason: Any = "stop") -> ModelOutput:
    """Return a reply that says how many tokens it used, as every provider's does."""
    result = ModelOutput.from_content("scripted", text, stop_reason)
    result.usage = ModelUsage(input_tokens=20, output_tokens=5, total_tokens=25)
    return result


class ScriptedModel(ModelAPI):
    """Replies by the script that is registered under its name."""

    def should_retry(self, ex: Exception) -> bool:
        """Try again where nothing answers, as providers do."""
        return isinstance(ex, ConnectionError)

    def retry_wait(self) -> wait_none:
        """Do not wait."""
        return wait_none()

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Look the reply up."""
        script = SCRIPTS[self.model_name]
        call = Call(
            self.model_name, list(input), list(tools), tool_choice, config, len(script.calls)
        )
        script.calls.append(call)
        script.running += 1
        script.most_running = max(script.most_running, script.running)
        try:
            await anyio.sleep(script.seconds)
            reply = script.reply(call)
        finally:
            script.running -= 1
        return reply if isinstance(reply, ModelOutput) else output(reply)


@modelapi(name="scripted")
def scripted() -> type[ModelAPI]:
    """Return the provider."""
    return ScriptedModel


def proper_answer(call: Call) -> str:
    """Answer from the question alone."""
    return f"In reply to {call.last.splitlines()[-1]!r}: the code was E4401 in auth/session.py."


def criteria_in(text: str) -> list[str]:
    """Return the ids that a grading request asks for."""
    for line in text.splitlines():
        if line.startswith("{") and "rubric_criteria" in line:
            ids: list[str] = json.loads(line)["rubric_criteria"]
            return ids
    raise AssertionError("this is no grading request")


def facts_in(text: str) -> list[str]:
    """Return the ids of the facts and wrong values that a grading request asks about."""
    for line in text.splitlines():
        if line.startswith("{") and "rubric_criteria" in line:
            truth = json.loads(line)["ground_truth"]
            listed = [*truth["expected_facts"], *truth.get("wrong_values", ())]
            return [each["id"] for each in listed]
    raise AssertionError("this is no grading request")


def grading(ids: list[str], facts: list[str], score: float = 4) -> str:
    """Return a grader's reply with the same score and the same word everywhere."""
    results = [{"criterionId": id_, "score": score, "reasoning": "Because."} for id_ in ids]
    return json.dumps({"criterionResults": results, "facts": fact_words(facts)})


def fact_words(facts: list[str], word: str = "stated") -> list[dict[str, str]]:
    """Return what a grader says of the facts; no wrong value is in the answer."""
    return [{"factId": id_, "verdict": word if id_.startswith("f") else "missing"} for id_ in facts]


def is_reading(call: Call) -> bool:
    """Return whether a grader is asked which facts a state contains."""
    schema = call.config.response_schema
    return schema is not None and schema.name == "state_facts"


def reading(call: Call) -> str:
    """Say that a state of `small.conversation` contains the first fact and no other."""
    facts = [
        fact["factId"]
        for question in json.loads(call.last.splitlines()[-1])["facts_to_find"]
        for fact in question["expected_facts"]
    ]
    stated = {"word": "stated", "quotes": ["You are a coding agent."]}
    absent = {"word": "absent", "quotes": []}
    found = [{"factId": id_, **(absent if place else stated)} for place, id_ in enumerate(facts)]
    return json.dumps({"factFindings": found})


def proper_grading(call: Call) -> str:
    """Grade whatever is asked for, or read a state."""
    if is_reading(call):
        return reading(call)
    return grading(criteria_in(call.text), facts_in(call.text))


def operations(text: str) -> str:
    """Return a reply for the anchored strategy that adds one entry."""
    return json.dumps({"operations": [{"op": "add", "section": "state", "text": text}]})


def proper_compression(call: Call) -> str:
    """Summarise, in the form that the strategy asks for; no two calls say the same."""
    text = f"The login failed with E4401 (written by call {call.number})."
    return operations(text) if call.config.response_schema else text


def proper_scripts() -> Scripts:
    """Return one script per role, all of them well behaved."""
    return {
        ANSWERS: Script(proper_answer),
        GRADES: Script(proper_grading),
        COMPRESSES: Script(proper_compression),
    }
