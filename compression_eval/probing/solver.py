"""Put each probe to the model, from the compressed state alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessageUser,
    ContentText,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import span

from compression_eval.compressors.errors import NO_CHOICES, refused
from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.compressors.state import State
from compression_eval.compressors.vendors.anthropic_api import exact_replay
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Language
from compression_eval.grading.markdown import escaped
from compression_eval.offline.registration import model_under_test
from compression_eval.probing.artifact_history import files_for
from compression_eval.probing.overview import state_overview
from compression_eval.probing.prefix import prefix_first
from compression_eval.probing.prompts import question_preamble
from compression_eval.probing.record import (
    AnswerRecord,
    AskedProbe,
    SampleRecord,
    StateRecord,
    write_record,
)
from compression_eval.probing.sharing import InterruptedStateError, SharedStates


@dataclass(frozen=True)
class ProbePlan:
    """One probe with the compression it is about."""

    probe: Probe
    language: Language
    compression: CompressionPlan
    digests: Mapping[str, str]
    asked: tuple[AskedProbe, ...] = ()
    """All probes that are put to the same state, this one among them."""


def probe_solver(
    plans: Mapping[str, ProbePlan],
    *,
    compressor: str,
    compressor_args: dict[str, Any],
    cycles: int,
    answers: int,
    version: str,
) -> Solver:
    """Return the solver that compresses once per state and asks each probe.

    Args:
        plans: What to do for each sample, by sample id.
        compressor: Name of the strategy; it stands in the log.
        compressor_args: Its effective arguments; they stand in the log.
        cycles: How many compressions each state has been through.
        answers: How many epochs share a state.
        version: The task's version; states of another one are not gone on with.
    """
    shared = SharedStates()

    @solver(name="answer_from_compressed")
    def answer_from_compressed(
        compressor: str, compressor_args: dict[str, Any], cycles: int, answers: int
    ) -> Solver:
        # The arguments are for the log; the plans were made from the same ones.
        del compressor, compressor_args, cycles

        async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
            plan = plans[str(state.sample_id)]
            replicate = (state.epoch - 1) // answers
            here = f"{state.sample_id}, epoch {state.epoch}"
            compressed, computed_here = await _shared_state(shared, plan, replicate, version, here)
            record = _record(plan, compressed, computed_here)
            write_record(state.store, record)
            if compressed.status == "ok":
                record.answer = await _ask(state, plan, compressed)
                write_record(state.store, record)
            return state

        return solve

    return answer_from_compressed(compressor, compressor_args, cycles, answers)


async def _shared_state(
    shared: SharedStates, plan: ProbePlan, replicate: int, version: str, here: str
) -> tuple[State, bool]:
    job = plan.compression

    async def compute() -> State:
        model = get_model(role="compressor", default=model_under_test())
        async with span(name="compression", type="compression"):
            state = await compress(job, replicate, model)
            state.computed_by = here
            transcript().info(state_overview(state), source="compression")
        return state

    key = f"{version}\n{job.fixture.name}\n{job.cuts}\n{replicate}"
    try:
        return await shared.get(key, compute)
    except InterruptedStateError as error:
        failed = State(
            state_id=f"interrupted-{replicate}",
            fixture=job.fixture.name,
            cut=job.cut,
            replicate=replicate,
            status="aborted",
            failure=str(error),
        )
        return failed, False


def _record(plan: ProbePlan, compressed: State, computed_here: bool) -> SampleRecord:
    """Return everything a scorer needs, but for the answer."""
    if not computed_here:
        transcript().info(
            f"State `{compressed.state_id}` was computed by another sample of this run, whose "
            f"transcript shows how: **{escaped(compressed.computed_by or 'unknown')}**",
            source="compression",
        )
    shared_fields = set(StateRecord.model_fields) & set(State.model_fields) - {"facts"}
    return SampleRecord(
        fixture=compressed.fixture,
        cut=compressed.cut,
        replicate=compressed.replicate,
        language=plan.language,
        probe=plan.probe,
        digests=dict(plan.digests),
        files=files_for(plan.probe, plan.compression),
        state=StateRecord(
            **{name: getattr(compressed, name) for name in shared_fields},
            computed_here=computed_here,
            message_count=len(compressed.messages),
            facts=[fact for fact in compressed.facts if fact.probe_id == plan.probe.id],
            asked=list(plan.asked),
        ),
    )


async def _ask(state: TaskState, plan: ProbePlan, compressed: State) -> AnswerRecord:
    model = model_under_test()
    # The preamble is the same for every probe, so a provider can cache everything up to its end.
    question = ChatMessageUser(
        id=f"question-{plan.probe.id}",
        content=[
            ContentText(text=question_preamble() + "\n\n", cache_breakpoint=True),
            ContentText(text=plan.probe.question),
        ],
    )
    state.messages = [*compressed.messages, question]
    async with (
        prefix_first(f"answer:{compressed.state_id}", model),
        exact_replay(model, state.messages) as answering,
    ):
        # "none" makes Inspect leave the tools out, except where a provider demands that tools
        # which the history calls are declared.
        output = await answering.generate(
            state.messages, tools=list(plan.compression.tools), tool_choice="none"
        )
    state.output = output
    if not output.empty:
        state.messages.append(output.message)
    return _answer(output, model)


def _answer(output: ModelOutput, model: Model) -> AnswerRecord:
    failure = ""
    if output.empty:
        return AnswerRecord(model=str(model), failure=output.error or NO_CHOICES)
    if output.stop_reason == "model_length":
        failure = "the state and question do not fit the model's context window"
    elif refused(output):
        failure = "the model refused to answer"
    elif output.error:
        failure = output.error
    return AnswerRecord(
        text=output.completion,
        model=str(model),
        stop_reason=output.stop_reason,
        tool_calls=[call.function for call in (output.message.tool_calls or [])],
        failure=failure,
    )
