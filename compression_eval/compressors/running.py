"""Run a chain of forced compressions and record the outcome of each.

`compress` goes through the cuts of a plan: each history is the last state with the messages up to
the next cut. `_attempt` calls the strategy and turns what it raises into a failure with a status.
At the end the facts are looked up in every stage, and each message of the state gets its region.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

import anyio
from inspect_ai.event import InfoEvent, ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageBase,
    CompactionResult,
    CompactionStrategy,
    Model,
    ModelUsage,
)
from inspect_ai.tool import ToolInfo
from inspect_ai.util import LimitExceededError

from compression_eval.compressors.budget import CUT_KEY, split_system
from compression_eval.compressors.errors import CompressionError, description, is_outage
from compression_eval.compressors.state import CycleRecord, State
from compression_eval.compressors.strategy import CompressorSpec
from compression_eval.compressors.tokens import is_opaque, token_counter
from compression_eval.compressors.validity import DEFAULT_MIN_REMOVED, state_problem, suspicions
from compression_eval.compressors.vendors import VendorCall, vendor_call
from compression_eval.facts.records import Region, fact_records
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.conversation import conversation, decoded_text, message_text
from compression_eval.fixtures.loading import StoredFixture
from compression_eval.fixtures.models import Fixture
from compression_eval.inspect_models import NO_CHOICES, split_reply, stop_reason
from compression_eval.text.printable import blank


@dataclass(eq=False)
class CompressionPlan:
    """What to compress, where and how; the same for every replicate."""

    fixture: Fixture | StoredFixture
    tools: Sequence[ToolInfo]
    cuts: tuple[int, ...]
    """Compression points, rising; probes are asked at the last."""
    spec: CompressorSpec
    tracked: Sequence[Probe]
    """The probes with their evidence in the history, from `track`."""
    min_removed: float = DEFAULT_MIN_REMOVED
    """Share of the tokens, without the system prompt, that each compression must remove."""
    fed_facts: dict[bytes, list[bool]] = field(default_factory=dict)
    """Which facts texts that summarisers were given hold; see `fact_records`."""
    _history: list[ChatMessage] | None = None

    def loaded(self) -> Fixture:
        """Return the fixture, read again if it is not kept in memory.

        Raises:
            DataError: It can no longer be read, or has changed.
        """
        return self.fixture if isinstance(self.fixture, Fixture) else self.fixture.load()

    async def history(self, fixture: Fixture | None = None) -> list[ChatMessage]:
        """Return the conversation before the last cut, of a fixture that is loaded already.

        It is converted once for all replicates, if the fixture is kept in memory.
        """
        if self._history is not None:
            return list(self._history)
        history = (await conversation(fixture or self.loaded()))[: self.cut]
        if isinstance(self.fixture, Fixture):
            self._history = history
        return list(history)

    @property
    def cut(self) -> int:
        """The cut at which probes are asked."""
        return self.cuts[-1]


async def compress(plan: CompressionPlan, replicate: int, model: Model) -> State:
    """Compress a conversation, once per cut of the chain, and return the state.

    A failure of the strategy becomes a state with that status and without messages. Limits,
    cancellation and outages (see `is_outage`) propagate. ``replicate`` is the number of this fresh
    compression in the run; the model is for strategies that call one.
    """
    counter = token_counter()
    fixture = plan.loaded()
    strategy = plan.spec.build(fixture)
    original = await plan.history(fixture)
    del fixture  # free the memory while waiting for models
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
    earlier: list[str] = []
    previous = 0
    try:
        for cut in plan.cuts:
            before = [*messages, *original[previous:cut]]
            if previous:
                earlier.append("\n".join(map(decoded_text, messages)))
            previous = cut
            attempt = await _attempt(strategy, model, before, plan.tools)
            replies.extend(attempt.replies)
            if attempt.fed is not None:
                fed = [*(fed or []), *attempt.fed]
            result = attempt.result
            messages = _with_system(before, result.input) if result else []
            thought = _remove_thinking(messages, before, attempt.thoughts)
            cycle = CycleRecord(
                cut=cut,
                applied=result.applied if result else type(strategy).__name__,
                fallback_reason=result.fallback_reason if result else None,
                tokens_before=counter.messages(before),
                tokens_after=counter.messages(messages),
                messages_before=len(before),
                messages_after=len(messages),
                model_calls=attempt.calls,
                input_tokens=attempt.input_tokens,
                output_tokens=attempt.output_tokens,
                seconds=attempt.seconds,
            )
            state.cycles.append(cycle)
            if attempt.failure:
                raise attempt.failure
            if thought and all(map(blank, attempt.replies)):
                raise CompressionError("empty", "the summarising model said nothing but thought")
            if plan.spec.compressor.kind.exempt:
                continue
            if cycle.fallback_reason is not None:
                reason = f"{cycle.applied} was used instead: {cycle.fallback_reason}"
                raise CompressionError("fallback", reason)
            if problem := state_problem(before, messages, plan.min_removed):
                raise CompressionError(*problem)
    except CompressionError as error:
        messages = []
        state.status, state.failure = error.status, error.reason
    state.messages = messages
    state.readable = not any(is_opaque(message) for message in messages)
    state.regions = regions(original, messages)
    state.state_tokens = counter.messages(messages)
    # Long texts are processed in a thread, so that they do not block other samples.
    state.facts = await anyio.to_thread.run_sync(
        partial(
            fact_records,
            plan.tracked,
            cuts=plan.cuts,
            fed=fed,
            state=messages,
            regions=state.regions,
            readable=state.readable and state.status == "ok",
            earlier=earlier,
            seen=plan.fed_facts,
        )
    )
    if state.status == "ok":
        budget = getattr(plan.spec.arguments, "summary_tokens", None)
        state.suspect = await anyio.to_thread.run_sync(
            suspicions, replies, state.facts, budget, counter.count
        )
    return state


@dataclass
class _Attempt:
    """One compression: its result or failure, and its cost."""

    result: CompactionResult | None = None
    failure: CompressionError | None = None
    seconds: float = 0.0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    fed: list[str] | None = None
    """The material given to models; None if none was called."""
    replies: list[str] = field(default_factory=list)
    """What the models said, without their thinking."""
    thoughts: list[str] = field(default_factory=list)
    """Thinking that no server has split off what they said."""


async def _attempt(
    strategy: CompactionStrategy,
    model: Model,
    messages: list[ChatMessage],
    tools: Sequence[ToolInfo],
) -> _Attempt:
    attempt = _Attempt()
    first_event = len(transcript().events)
    started = time.monotonic()
    try:
        attempt.result = _of_messages(
            await strategy.compact_outcome(model, list(messages), list(tools))
        )
    except (LimitExceededError, KeyboardInterrupt, GeneratorExit):
        raise
    except CompressionError as error:
        attempt.failure = error
    except NotImplementedError as error:
        attempt.failure = CompressionError("unsupported", description(error))
    except anyio.get_cancelled_exc_class() as error:
        # Unless the sample is being cancelled, the strategy raised it.
        if anyio.current_effective_deadline() == -math.inf:
            raise
        reason = f"{description(error)}: the strategy cancelled itself"
        attempt.failure = CompressionError("aborted", reason)
    except BaseException as error:  # anything else is the strategy's failure, even SystemExit
        if is_outage(error, model):
            raise
        model_events = [e for e in transcript().events[first_event:] if isinstance(e, ModelEvent)]
        empty = isinstance(error, IndexError) and model_events and model_events[-1].output.empty
        attempt.failure = CompressionError("error", NO_CHOICES if empty else description(error))
    attempt.seconds = time.monotonic() - started
    for event in transcript().events[first_event:]:
        if isinstance(event, ModelEvent):
            # A call that failed or exceeded the window has fed the model nothing. System messages
            # contain the strategy's instructions, whose words could match facts, or the agent's own
            # system prompt, which stays in every state.
            read = not event.error and stop_reason(event.output) != "model_length"
            fed: Sequence[ChatMessage] = event.input if read else ()
            fed = [message for message in fed if message.role != "system"]
            reply = split_reply(event.output)
            attempt.replies.append(reply.said)
            attempt.thoughts += map(str.strip, reply.thoughts)
            usage: ModelUsage | VendorCall | None = event.output.usage
        elif isinstance(event, InfoEvent) and (call := vendor_call(event)):
            fed, usage = messages[: call.fed_messages], call
        else:
            continue
        attempt.calls += 1
        attempt.fed = [*(attempt.fed or []), *map(decoded_text, fed)]
        attempt.input_tokens += usage.input_tokens if usage else 0
        attempt.output_tokens += usage.output_tokens if usage else 0
    return attempt


def _of_messages(result: CompactionResult) -> CompactionResult:
    """Return a result, which of a user's strategy may be anything, if it contains messages."""
    for index, message in enumerate(result.input):
        if not isinstance(message, ChatMessageBase):
            kind = type(message).__name__
            raise CompressionError(
                "error", f"message {index} of the result is no ChatMessage but {kind}"
            )
    return result


def _with_system(before: Sequence[ChatMessage], after: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Restore system messages that a strategy dropped, as Inspect's own orchestrator does."""
    kept = {message.id for message in after}
    system, _ = split_system(before)
    return [*(message for message in system if message.id not in kept), *after]


def _remove_thinking(
    messages: list[ChatMessage], before: Sequence[ChatMessage], thoughts: Sequence[str]
) -> bool:
    """Take a summarising model's thinking out of new messages; return whether there was any.

    Our strategies read replies without it. Inspect's and a user's take a reply as it comes, which
    contains no thinking where the server splits it off.
    """
    kept = {message.id for message in before}
    removed = False
    for index, message in enumerate(messages):
        found = [each for each in thoughts if message.id not in kept and each in message.text]
        if found:
            text = message.text
            for each in found:
                text = text.replace(each, "")
            messages[index] = message.model_copy()
            messages[index].text = text
            removed = True
    return removed


def regions(original: Sequence[ChatMessage], state: Sequence[ChatMessage]) -> list[Region]:
    """Return the region of each message of a state.

    A message counts as kept if it occurs verbatim in the original history, or did before it was cut
    to fit a budget. Kept messages are the head until the first omission, and the tail after it.
    """
    by_id = {message.id: (index, message) for index, message in enumerate(original)}
    result: list[Region] = []
    in_head = True
    for position, message in enumerate(state):
        index, source = by_id.get(message.id, (-1, None))
        kept = source is not None and _kept(source, message)
        in_head = in_head and kept and index == position
        result.append("head" if in_head else "tail" if kept else "summary")
    return result


def _kept(source: ChatMessage, message: ChatMessage) -> bool:
    # Only our own cutting sets the mark: a fixture's messages have no metadata.
    if CUT_KEY in (message.metadata or {}):
        return True
    before, after = message_text(source), message_text(message)
    # Hermes appends a note to the system prompt, which still counts as kept.
    return after == before or (message.role == "system" and after.startswith(before))
