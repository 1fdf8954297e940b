"""Compress once for each state, then put each probe to the model, from that state alone.

`probe_solver` closes over the plans, because a conversation must not be in the log of each sample.
`shared_state` compresses or waits for the sample that does. `_ask` puts the question; everything a
scorer needs is written to the sample's store.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessageUser,
    ContentText,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import span

from compression_eval.compressors.running import compress
from compression_eval.compressors.state import State, StateOutcome
from compression_eval.fetching.answering import FetchLimits, answer_with_tools
from compression_eval.fetching.sources import SharedSources
from compression_eval.file_ops.naming import history_files
from compression_eval.inspect_models import model_under_test
from compression_eval.plans import ProbePlan, question_preamble
from compression_eval.record import (
    AnswerRecord,
    SampleRecord,
    StateRecord,
    render_messages,
    write_record,
)
from compression_eval.sharing import SharedStates, prefix_first
from compression_eval.text.markdown import escaped


def probe_solver(
    plans: Mapping[str, ProbePlan],
    *,
    compressor: str,
    compressor_args: dict[str, Any],
    cycles: int,
    answers: int,
    version: str,
    refetch: FetchLimits | None = None,
) -> Solver:
    """Return the solver that compresses once per state and asks each probe.

    Args:
        plans: What to do for each sample, by sample id.
        compressor: Name of the strategy; it is in the log.
        compressor_args: Its effective arguments; they are in the log.
        cycles: How many compressions each state has been through.
        answers: How many epochs share a state.
        version: The task's version; states of another one are not continued.
        refetch: How much the model may fetch for a second answer; None if it gives none.
    """
    # A sample means nothing without its plan, which contains whole conversations and so cannot be
    # in the sample: whatever is there, or an argument of a registered solver, is written to the
    # log. Hence the samples name their plans by id, this function closes over those, and the solver
    # that Inspect registers is the inner one, whose arguments are such as a log can hold.
    shared, sources = SharedStates(), SharedSources()
    histories: dict[tuple[str, int], dict[str, str]] = {}

    def files_for(plan: ProbePlan) -> dict[str, str]:
        """Look once per compression: reading a long history takes longer than asking a probe."""
        if plan.probe.type != "artifact":
            return {}
        job = plan.compression
        history = (job.fixture.name, job.cut)
        if history not in histories:
            histories[history] = history_files(job.loaded().messages[: job.cut])
        return dict(histories[history])

    @solver(name="answer_from_compressed")
    def answer_from_compressed(
        compressor: str, compressor_args: dict[str, Any], cycles: int, answers: int
    ) -> Solver:
        del compressor, compressor_args, cycles  # for the log; the plans were made from the same

        async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
            plan = plans[str(state.sample_id)]
            compressed, computed_here = await shared_state(shared, plan, state, version, answers)
            record = state_record(plan, compressed, computed_here, files_for(plan))
            write_record(state.store, record)
            if compressed.status == "ok":
                record.answer = await _ask(state, plan, compressed)
                write_record(state.store, record)
            if record.answer and not record.answer.problem and refetch is not None:
                record.refetch = await answer_with_tools(
                    model_under_test(),
                    compressed.messages,
                    compressed.state_id,
                    plan.probe,
                    partial(sources.get, plan.compression),
                    refetch,
                )
                write_record(state.store, record)
            return state

        return solve

    return answer_from_compressed(compressor, compressor_args, cycles, answers)


async def shared_state(
    shared: SharedStates, plan: ProbePlan, sample: TaskState, version: str, answers: int = 1
) -> tuple[State, bool]:
    """Return the state that a plan is about, and whether this sample computed it.

    Args:
        shared: The states of the task.
        plan: What is to be compressed.
        sample: The calling sample.
        version: The task's version.
        answers: How many epochs share a state.
    """
    job = plan.compression
    replicate = (sample.epoch - 1) // answers
    conversation = f"{version}\n{job.fixture.name}\n{job.cuts}"

    async def compute() -> State:
        model = get_model(role="compressor", default=model_under_test())
        async with span(name="compression", type="compression"):
            # Replicates have the same history, so a provider can read it from its cache.
            async with prefix_first(f"compress:{conversation}", model):
                state = await compress(job, replicate, model)
            state.computed_by = f"{sample.sample_id}, epoch {sample.epoch}"
            transcript().info(_overview(state), source="compression")
        return state

    place = (job.fixture.name, job.cut, replicate)
    return await shared.get(f"{conversation}\n{replicate}", compute, place)


def state_record(
    plan: ProbePlan, compressed: State, computed_here: bool, files_named: dict[str, str]
) -> SampleRecord:
    """Return everything a scorer needs, but for the answer."""
    if not computed_here:
        transcript().info(
            f"State `{compressed.state_id}` was computed by another sample of this run, whose "
            f"transcript shows how: **{escaped(compressed.computed_by or 'unknown')}**",
            source="compression",
        )
    outcome = {name: getattr(compressed, name) for name in StateOutcome.model_fields}
    facts = [fact for fact in compressed.facts if fact.probe_id == plan.probe.id]
    return SampleRecord(
        fixture=compressed.fixture,
        cut=compressed.cut,
        replicate=compressed.replicate,
        language=plan.language,
        probe=plan.probe,
        digests=dict(plan.digests),
        files=files_named,
        state=StateRecord(
            **outcome | {"facts": facts},
            computed_here=computed_here,
            message_count=len(compressed.messages),
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
    async with prefix_first(f"answer:{compressed.state_id}", model):
        # "none" makes Inspect leave the tools out, except where a provider demands that tools
        # which the history calls are declared.
        output = await model.generate(
            state.messages, tools=list(plan.compression.tools), tool_choice="none"
        )
    state.output = output
    if not output.empty:
        state.messages.append(output.message)
    return AnswerRecord.of(output, model)


def _overview(state: State) -> str:
    """Return a Markdown account of a compression: how it went, and the state it left."""
    lines = [
        "| cycle | strategy | tokens before | tokens after | messages before | messages after "
        "| model calls | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for number, cycle in enumerate(state.cycles, 1):
        lines.append(
            f"| {number} (cut {cycle.cut}) | {cycle.applied} | {cycle.tokens_before:,} "
            f"| {cycle.tokens_after:,} | {cycle.messages_before} | {cycle.messages_after} "
            f"| {cycle.model_calls} | {cycle.seconds:.2f} |"
        )
    head = f"State `{state.state_id}`"
    if state.status != "ok":
        return "\n".join([f"{head}: **{state.status}**", "", _fenced(state.failure), "", *lines])
    removed = f"{state.tokens_removed:.1%} of {state.original_tokens:,} tokens removed"
    counted = f"{state.state_tokens:,} tokens left, counted by {state.token_counter}"
    body = _fenced(render_messages(state.messages))
    suspect = ["", "**Suspect**", "", _fenced("\n".join(state.suspect))] if state.suspect else []
    return "\n".join(
        [f"{head}: {removed}; {counted}.", *suspect, "", *lines, "", "**The state**", "", body]
    )


def _fenced(text: str) -> str:
    """Return a text as a Markdown code block that nothing in the text can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
