"""Carry out a chain of forced compressions and record how each of them went."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessage, CompactionResult, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo
from inspect_ai.util import LimitExceededError

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.facts import TrackedFact, fact_records
from compression_eval.compressors.regions import regions
from compression_eval.compressors.spec import CompressorSpec
from compression_eval.compressors.state import CycleRecord, State, StateStatus
from compression_eval.compressors.tokens import message_text, token_counter
from compression_eval.compressors.validity import structural_problem
from compression_eval.fixtures.conversation import conversation
from compression_eval.fixtures.models import Fixture


@dataclass(eq=False)
class CompressionPlan:
    """What is to be compressed, where and how; the same for every replicate."""

    fixture: Fixture
    tools: Sequence[ToolInfo]
    cuts: tuple[int, ...]
    """Compression points, rising; the last is the one that probes are put at."""
    spec: CompressorSpec
    tracked: Sequence[TrackedFact]
    _history: list[ChatMessage] | None = None

    async def history(self) -> list[ChatMessage]:
        """Return the conversation before the last cut; converted once for all replicates."""
        if self._history is None:
            self._history = (await conversation(self.fixture))[: self.cut]
        return list(self._history)

    @property
    def cut(self) -> int:
        """The cut that probes are put at."""
        return self.cuts[-1]


@dataclass
class _Calls:
    """What the model calls of one compression added up to."""

    count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    texts: list[str] | None = None


async def compress(plan: CompressionPlan, replicate: int, model: Model) -> State:
    """Compress a conversation once (or once per cut of a chain) and return the state.

    A failure of the strategy is returned as a state with that status and without messages; limits
    and cancellation are passed on.

    Args:
        plan: What to compress.
        replicate: Which fresh compression of the run this is.
        model: The model that a summarising strategy calls.
    """
    counter = token_counter()
    strategy = plan.spec.build()
    original = await plan.history()
    state = State(
        state_id=uuid4().hex,
        fixture=plan.fixture.name,
        cut=plan.cut,
        replicate=replicate,
        token_counter=counter.name,
        original_tokens=counter.messages(original),
    )
    messages: list[ChatMessage] = []
    fed: list[str] | None = None
    previous = 0
    try:
        for cut in plan.cuts:
            messages = [*messages, *original[previous:cut]]
            previous = cut
            result, calls, seconds = await _one_compression(strategy, model, messages, plan.tools)
            if calls.texts is not None:
                fed = [*(fed or []), *calls.texts]
            after = _with_system(messages, result.input)
            cycle = CycleRecord(
                cut=cut,
                applied=result.applied,
                fallback_reason=result.fallback_reason,
                tokens_before=counter.messages(messages),
                tokens_after=counter.messages(after),
                messages_before=len(messages),
                messages_after=len(after),
                model_calls=calls.count,
                input_tokens=calls.input_tokens,
                output_tokens=calls.output_tokens,
                seconds=seconds,
            )
            state.cycles.append(cycle)
            _check(plan.spec, messages, after, cycle)
            messages = after
    except CompressionError as error:
        messages = []
        state.status, state.failure = error.status, error.reason
    state.messages = messages
    state.regions = regions(original, messages)
    state.state_tokens = counter.messages(messages)
    state.facts = fact_records(
        plan.tracked,
        cuts=plan.cuts,
        fed=fed,
        state=messages,
        regions=state.regions,
        readable=state.readable and state.status == "ok",
    )
    return state


async def _one_compression(
    strategy: CompactionStrategy,
    model: Model,
    messages: list[ChatMessage],
    tools: Sequence[ToolInfo],
) -> tuple[CompactionResult, _Calls, float]:
    first_event = len(transcript().events)
    started = time.monotonic()
    try:
        result = await strategy.compact_outcome(model, list(messages), list(tools))
    except (CompressionError, LimitExceededError):
        raise
    except NotImplementedError as error:
        raise CompressionError("unsupported", _describe(error)) from error
    except Exception as error:  # whatever a strategy raises is its failure
        raise CompressionError("error", _describe(error)) from error
    return result, _calls_since(first_event), time.monotonic() - started


def _describe(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:500]}" if text else type(error).__name__


def _calls_since(first_event: int) -> _Calls:
    """Add up the model calls of this sample since an event; their inputs are what was fed."""
    calls = _Calls()
    for event in transcript().events[first_event:]:
        if not isinstance(event, ModelEvent):
            continue
        calls.count += 1
        calls.texts = [*(calls.texts or []), *(_decoded(message) for message in event.input)]
        if usage := event.output.usage:
            calls.input_tokens += usage.input_tokens
            calls.output_tokens += usage.output_tokens
    return calls


def _decoded(message: ChatMessage) -> str:
    """Return a message's text, with the escapes undone that JSON lines put into it."""
    return message_text(message).replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')


def _with_system(before: Sequence[ChatMessage], after: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Put back system messages that a strategy left out, as Inspect's own orchestrator does."""
    kept = {message.id for message in after}
    leading = []
    for message in before:
        if message.role != "system":
            break
        if message.id not in kept:
            leading.append(message)
    return [*leading, *after]


def _check(
    spec: CompressorSpec,
    before: Sequence[ChatMessage],
    after: Sequence[ChatMessage],
    cycle: CycleRecord,
) -> None:
    """Raise if the result of one compression is not a state to put probes to."""
    failure: tuple[StateStatus, str] | None = None
    if spec.compressor.exempt:
        return
    if cycle.fallback_reason is not None:
        failure = "fallback", f"{cycle.applied} was used instead: {cycle.fallback_reason}"
    elif all(message.role == "system" for message in after):
        failure = "empty", "nothing but the system prompt is left"
    elif [message_text(m) for m in before] == [message_text(m) for m in after]:
        failure = "not_applied", "the messages came back unchanged"
    elif cycle.tokens_after >= cycle.tokens_before:
        failure = (
            "not_smaller",
            f"{cycle.tokens_before} tokens before, {cycle.tokens_after} after",
        )
    elif problem := structural_problem(after):
        failure = "invalid_structure", problem
    if failure:
        raise CompressionError(*failure)
