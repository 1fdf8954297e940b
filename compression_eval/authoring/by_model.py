"""Have a model propose probes, check each, and have it mend what can be mended.

What it is told stands in ``prompts``. All requests about one part of a history begin alike and
differ only in their last lines, so that a provider's prompt cache serves three of four. A message
of the history is JSON on a line of its own, where nothing in it can end its line, between marks
whose code is made from the whole material, so that no message can contain it.
"""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import anyio
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentText,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    ResponseSchema,
)
from inspect_ai.util import JSONSchema
from pydantic import BaseModel, Field, ValidationError

from compression_eval.authoring.asking import draft, fact, wording
from compression_eval.authoring.candidates import (
    TYPES,
    Candidate,
    Dropped,
    Harvest,
    duplicate,
    faults,
    warnings,
)
from compression_eval.authoring.history import THIRDS, History
from compression_eval.fixtures.banks import AnswerKey, Probe, ProbeType
from compression_eval.fixtures.models import BROKEN_TEXT, broken_text
from compression_eval.grading.asking import list_schema, object_schema, objects_with
from compression_eval.inspect_models import refused, stop_reason
from compression_eval.sharing import prefix_first
from compression_eval.text.printable import one_line_json

logger = logging.getLogger(__name__)

REPAIRS = 2
"""How often a model is asked to mend what it proposed."""

CHUNK_TOKENS = 60_000
"""Tokens of history in one request, by default."""

_CUT_OFF = ("max_tokens", "model_length")
_MAX_ECHO = 40_000
_MAX_CANDIDATES = 60
_MAX_REASON = 300
_MAX_QUESTION_SHOWN = 100
_MAX_TEXT = 12_000
"""Characters of one message that are shown; evidence further inside is not asked for."""
_PLACE = re.compile(r"\{(\w+)\}")


class ReplyError(ValueError):
    """A reply without anything that can be read; the text is fit to be told to the model."""


class ProposedFact(BaseModel):
    """A fact as a model gives it."""

    fact: str = Field(min_length=1)
    any_of: list[str] = Field(default_factory=list, max_length=20)
    superseded: list[str] = Field(default_factory=list, max_length=20)
    evidence: list[int] = Field(min_length=1, max_length=50)


class Proposal(BaseModel):
    """A probe as a model gives it."""

    question: str = Field(min_length=1)
    facts: list[ProposedFact] = Field(min_length=1, max_length=20)
    reference_answer: str = Field(min_length=1)
    reasons: list[str] = Field(default_factory=list, max_length=20)
    open_tasks: list[str] = Field(default_factory=list, max_length=20)

    def probe(self, history: History, kind: ProbeType, origin: str) -> Probe:
        """Return the proposal as a probe of a history."""
        keys = {
            "decision": {"reasons": _filled(self.reasons)},
            "continuation": {"open_tasks": _filled(self.open_tasks)},
        }
        lists = {name: texts for name, texts in keys.get(kind, {}).items() if texts}
        key = AnswerKey.model_validate(lists) if lists else None
        facts = [
            fact(
                item.fact.strip() or item.fact,
                item.evidence,
                _filled(item.any_of),
                _filled(item.superseded),
            )
            for item in self.facts
        ]
        question, answer = self.question.strip() or "?", self.reference_answer.strip()
        return draft(history, kind, question, facts, answer, origin, key)


def _filled(values: Sequence[str]) -> list[str]:
    return [value.strip() for value in values if value.strip()]


@dataclass
class Usage:
    """What the calls to a model took."""

    calls: int = 0
    total: ModelUsage = field(default_factory=ModelUsage)


@dataclass(frozen=True)
class _Request:
    """One request for candidates of one type from one part of a history."""

    kind: ProbeType
    messages: tuple[ChatMessage, ...]
    prefix_key: str
    """Equal for requests that begin alike."""


@dataclass
class ModelGenerator:
    """Proposes probes with a model."""

    model: Model
    per_type: int
    """How many probes of each type are wanted in the end."""
    chunk_tokens: int
    """Tokens of history in one request."""
    usage: Usage
    """Where the calls are counted."""
    progress: Callable[[str], None]
    """Told one line at a time."""
    requests: int = 0
    """How many requests were made, repairs aside."""
    failure: str = ""
    """What the latest call that failed said."""

    async def generate(self, history: History) -> Harvest:
        """Return candidates about a history, and what was dropped, in a fixed order of requests.

        Each part of the history is asked about once for each type. Half as many again as are
        needed are asked for, since some are dropped.
        """
        parts = history.chunks(self.chunk_tokens)
        count = max(1, -(-3 * self.per_type // (2 * len(parts))))
        requests = [_request(history, part, kind, count) for part in parts for kind in TYPES]
        harvests = [Harvest() for _ in requests]
        self.requests += len(requests)
        done = 0

        async def ask(number: int) -> None:
            nonlocal done
            await self._ask(history, requests[number], harvests[number])
            done += 1
            self.progress(f"cut {history.cut}: {done} of {len(requests)} requests answered")

        async with anyio.create_task_group() as group:
            for number in range(len(requests)):
                group.start_soon(ask, number)
        result = Harvest()
        for harvest in harvests:
            result.add(harvest)
        return result

    async def _ask(self, history: History, request: _Request, harvest: Harvest) -> None:
        """Ask once, and again for what cannot be used, at most `REPAIRS` times."""
        messages = list(request.messages)
        config = GenerateConfig(response_schema=response_schema())
        pending = [Dropped(request.kind, f"model {self.model}", "", ("no answer",))]
        for _ in range(1 + REPAIRS):
            try:
                async with prefix_first(request.prefix_key, self.model):
                    output = await self.model.generate(messages, config=config)
                self.usage.calls += 1
                if output.usage:
                    self.usage.total = self.usage.total + output.usage
                proposals = _proposals(output)
            except ReplyError as error:
                pending = _again(pending, str(error))
                messages = _after(request, output, "unreadable", str(error))
                continue
            except Exception as error:
                # The schema may be what the provider refuses; the reply can be read without.
                logger.info("%s: %s: %s", self.model, type(error).__name__, error)
                self.failure = f"the call failed: {type(error).__name__}: {error}"[:_MAX_REASON]
                pending = _again(pending, self.failure)
                config = GenerateConfig()
                continue
            # A repair that leaves some out leaves them as they were.
            harvest.dropped.extend(item for item in pending[len(proposals) :] if item.question)
            pending = []
            told: list[str] = []
            for number, proposal in enumerate(proposals, 1):
                if wrong := self._take(history, request.kind, proposal, harvest):
                    pending.append(wrong)
                    question = wrong.question[:_MAX_QUESTION_SHOWN]
                    told.append(f"{number}. {question!r}: {'; '.join(wrong.reasons)}")
            if not pending:
                return
            messages = _after(request, output, "correction", "\n".join(told))
        harvest.dropped.extend(pending)

    def _take(
        self, history: History, kind: ProbeType, proposal: Proposal | str, harvest: Harvest
    ) -> Dropped | None:
        """Take a candidate; return it with what is wrong if it is not fit."""
        origin = f"model {self.model}"
        if isinstance(proposal, str):
            return Dropped(kind, origin, "", (proposal,))
        probe = proposal.probe(history, kind, origin)
        wrong = faults(probe, history)
        twin = duplicate(probe, [taken.probe for taken in harvest.candidates])
        if wrong or twin:
            return Dropped.of(probe, wrong or [str(twin)])
        doubts = warnings(probe, history)
        harvest.candidates.append(Candidate.of(probe, history, "model", doubts))
        return None


def _again(pending: list[Dropped], reason: str) -> list[Dropped]:
    """Return what is lost if no better reply comes: with the reason why this one was none."""
    return [
        replace(item, reasons=(*item.reasons, reason) if item.question else (reason,))
        for item in pending
    ]


def _after(request: _Request, output: ModelOutput, name: str, fault: str) -> list[ChatMessage]:
    """Return the next request: the first, the reply, and what is wrong with it."""
    text = output.completion.strip()[:_MAX_ECHO]
    echo = [ChatMessageAssistant(content=text)] if text else []
    return [*request.messages, *echo, ChatMessageUser(content=_prompt(name, fault=fault))]


def _proposals(output: ModelOutput) -> list[Proposal | str]:
    """Return what a reply proposes, in its order; for what is malformed, what is wrong with it."""
    if output.error:
        raise ReplyError(f"the model failed: {output.error}")
    if refused(output):
        raise ReplyError("it is a refusal")
    text = output.completion
    reply = next(objects_with(text, "candidates"), None)
    listed = reply["candidates"] if reply else None
    if isinstance(listed, list):
        return [_proposal(item) for item in listed[:_MAX_CANDIDATES]]
    if stop_reason(output) in _CUT_OFF:
        raise ReplyError("it was cut off before its end; give fewer candidates")
    if not text.strip():
        raise ReplyError("it is empty")
    if reply is None:
        raise ReplyError("it holds no JSON object with a key `candidates`")
    raise ReplyError("`candidates` is not a list")


def _proposal(item: object) -> Proposal | str:
    if (place := broken_text(item)) is not None:
        return f"{place.lstrip('.')}: {BROKEN_TEXT}"
    try:
        return Proposal.model_validate(item)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in detail["loc"]) or "the candidate"
        return f"{where}: {detail['msg']}"


def response_schema() -> ResponseSchema:
    """Return the form of a reply, for providers that can hold a model to one; the same for all."""
    text = JSONSchema(type="string")
    texts = JSONSchema(type="array", items=text)
    numbers = JSONSchema(type="array", items=JSONSchema(type="integer"))
    candidates = list_schema(
        question=text,
        facts=list_schema(fact=text, any_of=texts, superseded=texts, evidence=numbers),
        reference_answer=text,
        reasons=texts,
        open_tasks=texts,
    )
    schema = object_schema(candidates=candidates)
    return ResponseSchema(name="probe_candidates", json_schema=schema, strict=True)


def _request(history: History, part: range, kind: ProbeType, count: int) -> _Request:
    """Build a request for some probes of a type about a part of the messages."""
    shown = _lines(history, part)
    kept = _lines(history, range(history.tail_start, history.cut))
    code = hashlib.sha256(f"{shown}\n{kept}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    span = f"{part.start} to {part.stop - 1}"
    material = _prompt("material", range=span, code=code, history=shown, kept=kept)
    task = _prompt(kind, count=str(count), language=wording("language_name", history.language))
    if thirds := _thirds(history, part):
        task = f"{task}\n{_prompt('thirds', **thirds)}"
    system = ChatMessageSystem(content=_prompt("instructions"))
    user = ChatMessageUser(
        content=[ContentText(text=material, cache_breakpoint=True), ContentText(text=task)]
    )
    return _Request(kind, (system, user), f"generate:{code}")


def _lines(history: History, part: range) -> str:
    """Return messages as JSON, a line each."""
    lines = []
    for index in part:
        message = history.messages[index]
        text = _clipped(message.text)
        line: dict[str, Any] = {"index": index, "role": message.role, "text": text}
        for call in message.calls:
            arguments: Any = call.function.parsed()
            text = json.dumps(arguments, ensure_ascii=False)
            if len(text) > _MAX_TEXT:
                arguments = _clipped(text)
            shown = {"name": call.function.name, "arguments": arguments}
            line.setdefault("calls", []).append(shown)
        lines.append(one_line_json(line))
    return "\n".join(lines)


def _clipped(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    half = _MAX_TEXT // 2
    return f"{text[:half]} [… {len(text) - 2 * half} characters …] {text[-half:]}"


def _thirds(history: History, part: range) -> dict[str, str]:
    """Return the message numbers of beginning, middle and end of a part that is long enough."""
    total = max(sum(history.sizes[index] for index in part), 1)
    spans: dict[str, list[int]] = {third: [] for third in THIRDS}
    passed = 0
    for index in part:
        spans[THIRDS[min(2, 3 * passed // total)]].append(index)
        passed += history.sizes[index]
    if len(part) < 2 * len(THIRDS) or not all(spans.values()):
        return {}
    return {third: f"{indices[0]} to {indices[-1]}" for third, indices in spans.items()}


def _prompt(name: str, **values: str) -> str:
    """Return a prompt with values in their places, all at once: no value is read as a place."""
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), _template(name))


@cache
def _template(name: str) -> str:
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()
