"""Logs of Inspect, made by its own agents and compactions with a scripted model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.agent import Agent, react
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    ChatMessage,
    CompactionStrategy,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    get_model,
    modelapi,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState
from inspect_ai.tool import Tool, ToolChoice, ToolError, ToolInfo, tool

from compression_eval.conversations.building import Built, build
from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file

FORMAT = format_named("inspect")

Script = Callable[[list[ChatMessage], list[ToolInfo]], ModelOutput]
NAME = "replayed/model"


class Scripted(ModelAPI):
    """Answers by a script, and counts tokens without a download."""

    def __init__(self, model_name: str, script: Script, **_: Any) -> None:
        super().__init__(model_name)
        self._script = script

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        return self._script(input, tools)

    async def count_text_tokens(self, text: str) -> int:
        return len(text) // 4

    def collapse_user_messages(self) -> bool:
        return self.model_name == "joining"


@modelapi(name="replayed")
def replayed() -> type[ModelAPI]:
    return Scripted


@tool
def look() -> Tool:
    async def execute(what: str) -> str:
        """Look at something.

        Args:
            what: What to look at.
        """
        if what == "nothing":
            raise ToolError("there is nothing")
        return f"seen {what} " + "x" * 400

    return execute


@scorer(metrics=[mean()])
def judged() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        await get_model().generate("Is that so?")
        return Score(value=1)

    return score


def looks(count: int, things: int | None = None) -> Script:
    """Look so often, each time at another of the things, then submit; summarise when asked."""
    step = 0

    def script(messages: list[ChatMessage], tools: list[ToolInfo]) -> ModelOutput:
        nonlocal step
        if not tools:
            return ModelOutput.from_content(NAME, "<summary>the port is 8080</summary>")
        step += 1
        if step > count:
            return ModelOutput.for_tool_call(NAME, "submit", {"answer": "done"})
        output = ModelOutput.for_tool_call(
            NAME, "look", {"what": f"thing {step % (things or count + 1)}"}, content=f"look {step}"
        )
        output.message.tool_calls[0].id = f"look-{step}"  # type: ignore[index]
        return output

    return script


def agent(compaction: CompactionStrategy | None = None, **more: Any) -> Agent:
    return react(prompt="You look.", tools=[look()], compaction=compaction, **more)


def run(
    folder: Path,
    solver: Agent,
    script: Script,
    *,
    name: str = "plain",
    words: str | list[ChatMessage] = "Look at all.",
    **more: Any,
) -> EvalLog:
    """Run a task of one sample and return its log."""
    model = get_model(f"replayed/{name}", memoize=False, config=GenerateConfig(), script=script)
    task = Task(dataset=[Sample(id="one", input=words)], solver=solver, scorer=judged())
    fixed: dict[str, Any] = {"display": "plain", "log_realtime": False}
    (log,) = inspect_eval(task, model=model, log_dir=str(folder), **fixed, **more)
    assert log.status == "success", log.error and log.error.message
    return log


def path_of(log: EvalLog) -> Path:
    return Path(unquote(urlparse(log.location).path))


def read(path: Path) -> list[Built]:
    return [build(conversation) for conversation in FORMAT.read(source_file(path))]
