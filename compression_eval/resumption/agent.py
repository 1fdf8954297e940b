"""The agent: the state and the user's message, tools in a sandbox, and the checks at its end.

`resumption_solver` compresses as the first task does, unpacks the code base of the cut into a
sandbox, and has an agent continue until it ends or reaches a limit. Then the task's checks run as
scripts in that folder, and what failed is recorded for the scorer.
"""

import io
import tarfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import anyio
from inspect_ai.agent import Agent, AgentState, react
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, bash, python, text_editor, tool
from inspect_ai.util import LimitExceededError, sandbox

from compression_eval.compressors.state import State
from compression_eval.errors import one_line
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.continuations import (
    CHECK_SECONDS,
    Check,
    Continuation,
    TaskFile,
    codebase_at,
)
from compression_eval.fixtures.recording import ENVIRONMENT
from compression_eval.inspect_models import EMBEDDED_MODEL, model_under_test, refused
from compression_eval.plans import ProbePlan
from compression_eval.record import write_record
from compression_eval.resumption.scoring import (
    ASK_TOOL,
    CheckResult,
    ResumptionRecord,
    asks,
    history_of,
)
from compression_eval.sharing import SharedStates
from compression_eval.solver import shared_state, state_record

SandboxKind = Literal["docker", "bubblewrap", "local"]
"""Sandboxes by their names in Inspect; ``local`` contains nothing."""
TOOL_SECONDS = 120
MAX_ANSWERED = 3
"""Turns that end with a question and are told to go on; the next one ends the work."""

NO_MODEL = (
    "this task needs a language model that can use tools: the embedded one cannot do the work; "
    "choose one with --model"
)


@dataclass(frozen=True)
class Resumption:
    """One task with the compression that it continues from."""

    plan: ProbePlan
    task: Continuation
    file: TaskFile


class StoppedError(Exception):
    """The work has no score; the text says why in countable words."""


@cache
def text_for_agent(name: str) -> str:
    """Return a text that the agent reads."""
    return (files(__package__) / name).read_text(encoding="utf-8").strip()


def resumption_solver(
    resumptions: Mapping[str, Resumption],
    *,
    compressor: str,
    compressor_args: dict[str, Any],
    cycles: int,
    sandbox_kind: SandboxKind,
    in_run: float | None,
    version: str,
) -> Solver:
    """Return the solver that compresses once per state and has the agent continue from it.

    Args:
        resumptions: What to do for each sample, by its id.
        compressor: Name of the strategy; it is in the log.
        compressor_args: Its effective arguments; they are in the log.
        cycles: How many compressions each state has been through.
        sandbox_kind: Which tools fit the sandbox.
        in_run: The threshold at which the agent compresses on the way; None for never.
        version: The task's version; states of another one are not continued.
    """
    shared, codebases = SharedStates(), _Codebases()

    @solver(name="resume_from_compressed")
    def resume_from_compressed(
        compressor: str, compressor_args: dict[str, Any], cycles: int, in_run: float | None
    ) -> Solver:
        del compressor, compressor_args, cycles  # for the log; the plans were made from the same

        async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
            if str(model_under_test()) == EMBEDDED_MODEL:
                raise RuntimeError(NO_MODEL)
            item = resumptions[str(state.sample_id)]
            job = item.plan.compression
            compressed, computed_here = await shared_state(shared, item.plan, state, version)
            write_record(state.store, state_record(item.plan, compressed, computed_here, {}))
            if compressed.status != "ok":
                return state
            record = state.store_as(ResumptionRecord)
            try:
                record.history = await anyio.to_thread.run_sync(
                    lambda: history_of(job.loaded().messages[: job.cut])
                )
                record.folder = await _prepared(await codebases.get(item))
                strategy = None
                if in_run is not None:
                    strategy = job.spec.build(job.loaded())
                    strategy.threshold = in_run
                first = [*compressed.messages, _said(item.plan.probe, record.folder, sandbox_kind)]
                await _work(state, record, first, _agent(sandbox_kind, strategy))
                record.checked = await _checked(item, compressed)
            except StoppedError as stopped:
                record.stopped = str(stopped)
            except LimitExceededError as limit:
                record.stopped = f"limit: {one_line(limit.message, 100)}"
                raise
            return state

        return solve

    return resume_from_compressed(compressor, compressor_args, cycles, in_run)


class _Codebases:
    """The code bases, each packed when it is first needed."""

    def __init__(self) -> None:
        self._packed: dict[tuple[Path, int, str | None], bytes] = {}
        self._lock = anyio.Lock()

    async def get(self, item: Resumption) -> bytes:
        job = item.plan.compression
        async with self._lock:
            key = (item.file.path, job.cut, item.file.content.codebase_of(item.task))
            if key not in self._packed:
                self._packed[key] = await anyio.to_thread.run_sync(self._pack, item)
            return self._packed[key]

    @staticmethod
    def _pack(item: Resumption) -> bytes:
        job = item.plan.compression
        content = io.BytesIO()
        with codebase_at(item.file, item.task, job.loaded()) as workspace:
            config = workspace.project / ".git" / "config"
            if config.is_file():
                # Whoever commits in a sandbox has no name there otherwise.
                identity = "[user]\n\tname = agent\n\temail = agent@example.com\n"
                config.write_text(config.read_text(encoding="utf-8") + identity, encoding="utf-8")
            with tarfile.open(fileobj=content, mode="w:gz") as archive:
                archive.add(workspace.project, ".")
        return content.getvalue()


async def _prepared(packed: bytes) -> str:
    """Unpack the code base into the sandbox's folder and return that folder."""
    box = sandbox()
    name = ".codebase.tar.gz"
    unpack = f"tar -xzf {name} --no-same-owner && rm {name} && python3 --version && git --version"
    await _in_sandbox(lambda: box.write_file(name, packed))
    done = await _in_sandbox(lambda: box.exec(["bash", "-c", unpack], timeout=TOOL_SECONDS))
    where = await _in_sandbox(lambda: box.exec(["pwd", "-P"], timeout=TOOL_SECONDS))
    if not (done.success and where.success):
        raise StoppedError(f"sandbox_failed: {one_line(done.stderr or where.stderr, 100)}")
    return str(where.stdout).strip()


async def _in_sandbox(call: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await call()
    except LimitExceededError:
        raise
    except Exception as error:  # each kind of sandbox has errors of its own
        raise StoppedError(f"sandbox_failed: {one_line(str(error), 100) or type(error)}") from error


@tool(name=ASK_TOOL)
def ask_user() -> Tool:
    """Return the tool by which the agent asks the user, who is away."""

    async def execute(question: str) -> str:  # noqa: ARG001
        """Ask the user something.

        Args:
            question: The question.
        """
        return text_for_agent("away.md")

    return execute


def _tools(kind: SandboxKind) -> list[Tool]:
    tools = [bash(TOOL_SECONDS), python(TOOL_SECONDS)]
    # Elsewhere, the editor would install and start a server on this machine.
    return [*tools, *([text_editor(TOOL_SECONDS)] if kind == "docker" else []), ask_user()]


def _agent(kind: SandboxKind, strategy: CompactionStrategy | None) -> Agent:
    answered = 0

    async def go_on(state: AgentState) -> bool | str:
        nonlocal answered
        if state.output.message.tool_calls:
            return True
        if not asks(state.output.message) or answered == MAX_ANSWERED:
            return False
        answered += 1
        return text_for_agent("away.md")

    return react(
        prompt=None, tools=_tools(kind), submit=False, on_continue=go_on, compaction=strategy
    )


def _said(task: Probe, folder: str, kind: SandboxKind) -> ChatMessageUser:
    """Return the user's message with a note on where the agent works now."""
    more = text_for_agent("local.md").format(now=ENVIRONMENT["RECORDING_NOW"])
    note = text_for_agent("note.md").format(
        folder=folder,
        tools="bash, python and text_editor" if kind == "docker" else "bash and python",
        more=f" {more}" if kind == "local" else "",
    )
    return ChatMessageUser(id=f"task-{task.id}", content=f"{task.question}\n\n{note}")


async def _work(
    state: TaskState, record: ResumptionRecord, messages: list[ChatMessage], agent: Agent
) -> None:
    """Let the agent go on until it ends; what it did so far stays when a limit stops it."""
    working = AgentState(messages=messages)
    record.first = len(working.messages)
    first = len(transcript().events)
    try:
        ended = await agent(working)
    finally:
        state.messages, state.output = working.messages, working.output
        record.tokens = sum(
            event.output.usage.total_tokens
            for event in transcript().events[first:]
            if isinstance(event, ModelEvent) and event.output.usage
        )
    if ended.output.stop_reason == "model_length":
        raise StoppedError("context_overflow: the work no longer fits the model's window")
    if refused(ended.output):
        raise StoppedError("refused: the model declined to go on")
    if ended.output.stop_reason == "max_tokens":
        raise StoppedError("cut_off: the last reply reached max_tokens")


async def _checked(item: Resumption, compressed: State) -> list[CheckResult]:
    own = (fact for fact in compressed.facts if fact.probe_id == item.plan.probe.id)
    held = {fact.fact: fact.in_state for fact in own}
    results: list[CheckResult] = []
    for check in item.task.checks:
        results.append(CheckResult(what=check.what, kind="check", failure=await _failure(check)))
    for rule, probe in zip(item.task.constraints, item.file.probes_of(item.task), strict=True):
        looked_up = [held.get(fact.fact) for fact in probe.expected_facts]
        results.append(
            CheckResult(
                what=rule.what,
                kind=rule.kind,
                failure=await _failure(rule),
                probe=probe.id,
                asked=rule.asked,
                in_state=None if None in looked_up else all(looked_up),
            )
        )
    return results


async def _failure(check: Check) -> str:
    command = check.command(CHECK_SECONDS)
    done = await _in_sandbox(
        lambda: sandbox().exec(command, env=ENVIRONMENT, timeout=2 * CHECK_SECONDS)
    )
    if check.not_run(done.returncode):
        raise StoppedError(f"sandbox_failed: {one_line(done.stderr or check.what, 100)}")
    if check.hung(done.returncode):
        raise StoppedError(f"check_hangs: {one_line(check.what, 60)}: after {CHECK_SECONDS} s")
    return check.failure(done.returncode, f"{done.stdout}{done.stderr}")
