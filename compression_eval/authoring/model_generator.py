"""Have a model propose probes, check each, and have it mend what can be mended."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import anyio
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
)

from compression_eval.authoring.candidate_checks import duplicate, faults, warnings
from compression_eval.authoring.candidates import Candidate, Dropped, Harvest, third_of
from compression_eval.authoring.choosing import TYPES
from compression_eval.authoring.history import History
from compression_eval.authoring.model_reply import (
    Proposal,
    ReplyError,
    read_reply,
    response_schema,
)
from compression_eval.authoring.model_request import (
    ModelRequest,
    correction,
    model_request,
    unreadable,
)
from compression_eval.compressors.refusal import refused, stop_reason
from compression_eval.probing.prefix import prefix_first

logger = logging.getLogger(__name__)

REPAIRS = 2
"""How often a model is asked to mend what it proposed."""

CHUNK_TOKENS = 60_000
"""Tokens of history in one request, by default."""

_CUT_OFF = ("max_tokens", "model_length")
_LONGEST_ECHO = 40_000
_SHOWN_QUESTION = 100
_LONGEST_REASON = 300


@dataclass
class Usage:
    """What the calls to a model took."""

    calls: int = 0
    total: ModelUsage = field(default_factory=ModelUsage)

    def add(self, output: ModelOutput) -> None:
        """Count one call."""
        self.calls += 1
        if output.usage:
            self.total = self.total + output.usage


class ModelGenerator:
    """Proposes probes with a model.

    Args:
        model: The model.
        per_type: How many probes of each type are wanted in the end.
        chunk_tokens: Tokens of history in one request.
        usage: Where the calls are counted.
        progress: Told one line at a time.
    """

    def __init__(
        self,
        model: Model,
        per_type: int,
        chunk_tokens: int,
        usage: Usage,
        progress: Callable[[str], None],
    ) -> None:
        self.model = model
        self.per_type = per_type
        self.chunk_tokens = chunk_tokens
        self.usage = usage
        self.progress = progress
        self.origin = f"model {model}"
        self.requests = 0
        """How many requests were made, repairs aside."""
        self.failure = ""
        """What the latest call that failed said."""

    async def generate(self, history: History) -> Harvest:
        """Return candidates about a history, and what was dropped, in a fixed order of requests.

        Each part of the history is asked about once for each type. Half as many again as are
        needed are asked for, since some are dropped.
        """
        parts = history.chunks(self.chunk_tokens)
        count = max(1, -(-3 * self.per_type // (2 * len(parts))))
        requests = [model_request(history, part, kind, count) for part in parts for kind in TYPES]
        harvests = [Harvest() for _ in requests]
        self.requests += len(requests)
        done = 0

        async def ask(number: int) -> None:
            nonlocal done
            harvests[number] = await self._ask(history, requests[number])
            done += 1
            self.progress(f"cut {history.cut}: {done} of {len(requests)} requests answered")

        async with anyio.create_task_group() as group:
            for number in range(len(requests)):
                group.start_soon(ask, number)
        result = Harvest()
        for harvest in harvests:
            result.add(harvest)
        return result

    async def _ask(self, history: History, request: ModelRequest) -> Harvest:
        """Ask once, and again for what cannot be used, at most `REPAIRS` times."""
        harvest = Harvest()
        messages: list[ChatMessage] = list(request.messages)
        schema: GenerateConfig | None = GenerateConfig(response_schema=response_schema())
        pending: list[Dropped] = [self._lost(request, "no answer")]
        for _ in range(1 + REPAIRS):
            try:
                async with prefix_first(request.prefix_key, self.model):
                    output = await self.model.generate(messages, config=schema or GenerateConfig())
                self.usage.add(output)
                items = _read(output)
            except ReplyError as error:
                pending = _again(pending, str(error))
                messages = [*request.messages, *_echo(output), unreadable(str(error))]
                continue
            except Exception as error:
                # The schema may be what the provider refuses; the reply can be read without.
                logger.info("%s: %s: %s", self.model, type(error).__name__, error)
                self.failure = f"the call failed: {type(error).__name__}: {error}"[:_LONGEST_REASON]
                pending = _again(pending, self.failure)
                schema = None
                continue
            # A repair that leaves some out leaves them as they were.
            harvest.dropped.extend(item for item in pending[len(items) :] if item.question)
            pending, told = self._take(history, request, items, harvest)
            if not pending:
                break
            messages = [*request.messages, *_echo(output), correction(told)]
        harvest.dropped.extend(pending)
        return harvest

    def _take(
        self,
        history: History,
        request: ModelRequest,
        items: Sequence[Proposal | str],
        harvest: Harvest,
    ) -> tuple[list[Dropped], list[str]]:
        """Take the good candidates; return the others, and what the model is told about them."""
        pending: list[Dropped] = []
        told: list[str] = []
        for number, item in enumerate(items, 1):
            if isinstance(item, str):
                question, wrong = "", [item]
            else:
                probe = item.probe(history, request.kind, self.origin)
                question, wrong = probe.question, faults(probe, history)
                twin = duplicate(probe, [taken.probe for taken in harvest.candidates])
                if not wrong and twin:
                    wrong = [twin]
                if not wrong:
                    harvest.candidates.append(
                        Candidate(
                            probe,
                            "model",
                            third_of(probe, history),
                            tuple(warnings(probe, history)),
                        )
                    )
                    continue
            pending.append(Dropped(request.kind, self.origin, question, tuple(wrong)))
            told.append(f"{number}. {question[:_SHOWN_QUESTION]!r}: {'; '.join(wrong)}")
        return pending, told

    def _lost(self, request: ModelRequest, reason: str) -> Dropped:
        return Dropped(request.kind, self.origin, "", (reason,))


def _read(output: ModelOutput) -> list[Proposal | str]:
    """Return what a reply proposes.

    Raises:
        ReplyError: It cannot be read, or was refused.
    """
    if output.error:
        raise ReplyError(f"the model failed: {output.error}")
    if refused(output):
        raise ReplyError("it is a refusal")
    try:
        return read_reply(output.completion)
    except ReplyError as error:
        if stop_reason(output) in _CUT_OFF:
            raise ReplyError("it was cut off before its end; give fewer candidates") from error
        raise


def _echo(output: ModelOutput) -> list[ChatMessage]:
    text = output.completion.strip()
    return [ChatMessageAssistant(content=text[:_LONGEST_ECHO])] if text else []


def _again(pending: list[Dropped], reason: str) -> list[Dropped]:
    """Return what is lost if no better reply comes: with the reason why this one was none."""
    return [
        replace(item, reasons=(*item.reasons, reason) if item.question else (reason,))
        for item in pending
    ]
