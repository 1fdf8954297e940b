"""Carry out a chain of forced compressions and record how each of them went."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

import anyio
from inspect_ai.event import InfoEvent, ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessage, CompactionResult, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo
from inspect_ai.util import LimitExceededError

from compression_eval.compressors.budget import CUT_KEY
from compression_eval.compressors.errors import (
    NO_CHOICES,
    CompressionError,
    is_outage,
    stop_reason,
)
from compression_eval.compressors.spec import CompressorSpec
from compression_eval.compressors.state import CycleRecord, State, StateStatus
from compression_eval.compressors.tokens import is_opaque, token_counter
from compression_eval.compressors.validity import (
    DEFAULT_MIN_REMOVED,
    size_problem,
    structural_problem,
    suspicions,
)
from compression_eval.compressors.vendors.calls import vendor_call
from compression_eval.facts.markers import ValueMarkers
from compression_eval.facts.records import Region, fact_records
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.conversation import conversation
from compression_eval.fixtures.loading import StoredFixture
from compression_eval.fixtures.message_text import decoded_text, message_text
from compression_eval.fixtures.models import Fixture


@dataclass(eq=False)
class CompressionPlan:
    """What is to be compressed, where and how; the same for every replicate."""

    fixture: Fixture | StoredFixture
    tools: Sequence[ToolInfo]
    cuts: tuple[int, ...]
    """Compression points, rising; the last is the one that probes are put at."""
    spec: CompressorSpec
    tracked: Sequence[Probe]
    """The probes with their evidence in the history, as `track` finds it."""
    markers: ValueMarkers | None = None
    """Signs by which a superseded value is named as one, to find the others in the state."""
    min_removed: float = DEFAULT_MIN_REMOVED
    """Share of the tokens beside the system prompt that each compression must remove."""
    _history: list[ChatMessage] | None = None

    def loaded(self) -> Fixture:
        """Return the fixture, read again if it is not kept in memory.

        Raises:
            DataError: It cannot be read any more, or has changed.
        """
        return self.fixture if isinstance(self.fixture, Fixture) else self.fixture.load()

    async def history(self, fixture: Fixture | None = None) -> list[ChatMessage]:
        """Return the conversation before the last cut.

        It is converted once for all replicates, unless the fixture is not kept in memory either.

        Args:
            fixture: What `loaded` returned, if that was called already.
        """
        if self._history is not None:
            return list(self._history)
        history = (await conversation(fixture or self.loaded()))[: self.cut]
        if isinstance(self.fixture, Fixture):
            self._history = history
        return list(history)

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
    replies: list[str] = field(default_factory=list)


async def compress(plan: CompressionPlan, replicate: int, model: Model) -> State:
    """Compress a conversation once (or once per cut of a chain) and return the state.

    A failure of the strategy is returned as a state with that status and without messages. Limits,
    cancellation, and what stands between us and a vendor (see `is_outage`) are passed on.

    Args:
        plan: What to compress.
        replicate: Which fresh compression of the run this is.
        model: The model that a summarising strategy calls.
    """
    counter = token_counter()
    fixture = plan.loaded()
    strategy = plan.spec.build(fixture)
    original = await plan.history(fixture)
    del fixture  # where it is not kept in memory, it need not stay while models are waited for
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
    replies: list[str] = []
    previous = 0
    try:
        for cut in plan.cuts:
            messages = [*messages, *original[previous:cut]]
            previous = cut
            attempt = await _one_compression(strategy, model, messages, plan.tools)
            replies.extend(attempt.calls.replies)
            if attempt.calls.texts is not None:
                fed = [*(fed or []), *attempt.calls.texts]
            after = _with_system(messages, attempt.result.input) if attempt.result else []
            cycle = _cycle(cut, messages, after, attempt)
            state.cycles.append(cycle)
            if attempt.failure:
                raise attempt.failure
            _check(plan, messages, after, cycle)
            messages = after
    except CompressionError as error:
        messages = []
        state.status, state.failure = error.status, error.reason
    state.messages = messages
    state.readable = not any(is_opaque(message) for message in messages)
    state.regions = regions(original, messages)
    state.state_tokens = counter.messages(messages)
    # Long texts are read in a thread, so that they do not hold up what else is under way.
    state.facts = await anyio.to_thread.run_sync(
        partial(
            fact_records,
            plan.tracked,
            cuts=plan.cuts,
            fed=fed,
            state=messages,
            regions=state.regions,
            readable=state.readable and state.status == "ok",
            markers=plan.markers,
        )
    )
    if state.status == "ok":
        budget = getattr(plan.spec.arguments, "summary_tokens", None)
        state.suspect = await anyio.to_thread.run_sync(
            suspicions, replies, original, state.facts, budget, counter.count
        )
    return state


@dataclass
class _Attempt:
    """One compression: its result or its failure, and what it cost either way."""

    applied: str
    calls: _Calls
    seconds: float
    result: CompactionResult | None = None
    failure: CompressionError | None = None


async def _one_compression(
    strategy: CompactionStrategy,
    model: Model,
    messages: list[ChatMessage],
    tools: Sequence[ToolInfo],
) -> _Attempt:
    first_event = len(transcript().events)
    started = time.monotonic()
    result = failure = None
    try:
        result = await strategy.compact_outcome(model, list(messages), list(tools))
    except (LimitExceededError, KeyboardInterrupt, GeneratorExit):
        raise
    except CompressionError as error:
        failure = error
    except NotImplementedError as error:
        failure = CompressionError("unsupported", _describe(error))
    except anyio.get_cancelled_exc_class() as error:
        # Unless somebody cancels the sample, it is the strategy that raised it.
        if anyio.current_effective_deadline() == -math.inf:
            raise
        failure = CompressionError("aborted", f"{_describe(error)}: the strategy cancelled itself")
    except BaseException as error:  # whatever else a strategy raises is its failure, even an exit
        if is_outage(error, model):
            raise
        empty = isinstance(error, IndexError) and _reply_was_empty(first_event)
        failure = CompressionError("error", NO_CHOICES if empty else _describe(error))
    return _Attempt(
        applied=result.applied if result else type(strategy).__name__,
        calls=_calls_since(first_event, messages),
        seconds=time.monotonic() - started,
        result=result,
        failure=failure,
    )


def _cycle(
    cut: int, before: Sequence[ChatMessage], after: Sequence[ChatMessage], attempt: _Attempt
) -> CycleRecord:
    """Return the record of a compression; one that failed leaves nothing, but has its costs."""
    counter = token_counter()
    return CycleRecord(
        cut=cut,
        applied=attempt.applied,
        fallback_reason=attempt.result.fallback_reason if attempt.result else None,
        tokens_before=counter.messages(before),
        tokens_after=counter.messages(after),
        messages_before=len(before),
        messages_after=len(after),
        model_calls=attempt.calls.count,
        input_tokens=attempt.calls.input_tokens,
        output_tokens=attempt.calls.output_tokens,
        seconds=attempt.seconds,
    )


def _reply_was_empty(first_event: int) -> bool:
    """Return whether the newest model call since an event gave no choices at all."""
    calls = [event for event in transcript().events[first_event:] if isinstance(event, ModelEvent)]
    return bool(calls) and calls[-1].output.empty


def _describe(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:500]}" if text else type(error).__name__


def _calls_since(first_event: int, messages: Sequence[ChatMessage]) -> _Calls:
    """Add up the model calls of this sample since an event; their inputs are what was fed.

    Args:
        first_event: Position of the first event to look at.
        messages: What was to be compressed; a vendor's own call is fed the first so many of them.
    """
    calls = _Calls()
    for event in transcript().events[first_event:]:
        if isinstance(event, ModelEvent):
            calls.count += 1
            # A call that was over the window or failed has told the model nothing.
            read = not event.error and stop_reason(event.output) != "model_length"
            calls.texts = [*(calls.texts or []), *(_material(event.input) if read else ())]
            calls.replies.append(event.output.completion)
            if usage := event.output.usage:
                calls.input_tokens += usage.input_tokens
                calls.output_tokens += usage.output_tokens
        elif isinstance(event, InfoEvent) and (made := vendor_call(event)):
            calls.count += 1
            fed = messages[: made.fed_messages]
            calls.texts = [*(calls.texts or []), *(decoded_text(m) for m in fed)]
            calls.input_tokens += made.input_tokens
            calls.output_tokens += made.output_tokens
    return calls


def _material(call: Sequence[ChatMessage]) -> Iterator[str]:
    """Yield what a summarising call was given to summarise.

    System messages are left out: they hold the strategy's instructions, whose words would pass
    for facts, or the agent's own system prompt, which stays in every state.
    """
    return (decoded_text(message) for message in call if message.role != "system")


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
    plan: CompressionPlan,
    before: Sequence[ChatMessage],
    after: Sequence[ChatMessage],
    cycle: CycleRecord,
) -> None:
    """Raise if the result of one compression is not a state to put probes to."""
    failure: tuple[StateStatus, str] | None = None
    if plan.spec.compressor.exempt:
        return
    if cycle.fallback_reason is not None:
        failure = "fallback", f"{cycle.applied} was used instead: {cycle.fallback_reason}"
    elif all(message.role == "system" for message in after):
        failure = "empty", "nothing but the system prompt is left"
    elif [message_text(m) for m in before] == [message_text(m) for m in after]:
        failure = "not_applied", "the messages came back unchanged"
    elif problem := size_problem(before, after, plan.min_removed):
        failure = "not_smaller", problem
    elif problem := structural_problem(after, before):
        failure = "invalid_structure", problem
    if failure:
        raise CompressionError(*failure)


def regions(original: Sequence[ChatMessage], state: Sequence[ChatMessage]) -> list[Region]:
    """Return the region of each message of a state.

    A message counts as kept if it stands in the original history word for word, or did until it
    was cut to fit a budget. Kept messages are the head as long as nothing has been left out before
    them, and the tail after that.

    Args:
        original: The whole history before the cut.
        state: What the compression left.
    """
    by_id = {message.id: (index, message) for index, message in enumerate(original)}
    result: list[Region] = []
    expected = 0
    for message in state:
        index, source = by_id.get(message.id, (-1, None))
        if source is None or not _kept(source, message):
            result.append("summary")
            expected = -1
        elif index == expected:
            result.append("head")
            expected += 1
        else:
            result.append("tail")
            expected = -1
    return result


def _kept(source: ChatMessage, message: ChatMessage) -> bool:
    # The mark can only come from our own cutting: a fixture's messages have no metadata.
    if CUT_KEY in (message.metadata or {}):
        return True
    before, after = message_text(source), message_text(message)
    # Hermes ends the system prompt with a note, and it is the system prompt all the same.
    return after == before or (message.role == "system" and after.startswith(before))
