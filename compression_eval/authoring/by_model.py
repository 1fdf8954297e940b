"""Have a model propose probes, mend what fails a check, and drop what can be guessed.

What it is told stands in ``prompts``. A history is shown in one request if that can be done by
shortening what tools returned, else in parts. The model lists what whoever goes on needs and asks
about nothing else. Then it answers the questions from their evidence, without the keys, and as
somebody who has forgotten would: the keys have to find the first answer and not the second. What
fails a check or this trial goes back to the writer. At last it answers all questions without the
conversation: a probe whose facts it guesses tells nothing. A message of the history is JSON on a
line of its own, where nothing in it can end its line, between marks whose code is made from the
whole material, so that no message can contain it.
"""

import hashlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeVar, get_args

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
    BY_MODEL,
    IN_WORKSPACE,
    TYPES,
    Candidate,
    Dropped,
    Harvest,
    duplicate,
    faults,
    warnings,
)
from compression_eval.authoring.history import History
from compression_eval.errors import one_line, shorten
from compression_eval.fixtures.banks import AnswerKey, Probe, ProbeType
from compression_eval.fixtures.models import BROKEN_TEXT, Message, broken_text
from compression_eval.fixtures.tokens import text_counter
from compression_eval.grading.asking import list_schema, object_schema, objects_with
from compression_eval.inspect_models import cut_off, refused, said
from compression_eval.text.matching import Text
from compression_eval.text.printable import one_line_json

logger = logging.getLogger(__name__)

REPAIRS = 2
"""How often a model is asked to mend what it proposed."""

CHUNK_TOKENS = 60_000
"""Tokens of history in one request, by default."""

NeedKind = Literal["request", "constraint", "rejection", "state", "reason", "dead_end"]

_TOOL_TEXTS = (4_000, 1_500, 500)
"""Characters of a tool's result, and of the arguments of a call, that are shown; the first with
which a history fits into one request. Evidence further inside is not asked for: most of it is
what the workspace shows."""

_MAX_TEXT = 12_000
"""The same for what the user and the agent wrote."""

_MAX_BETWEEN = 1_500
"""The same for what the user wrote after the part that is shown."""

_STEP = 600
"""Of a long message of the evidence three times as many characters are shown."""

_MAX_ECHO = 80_000
_MAX_CANDIDATES = 60
_MAX_REASON = 300
_MAX_QUESTION_SHOWN = 100
_MAX_ANSWER = 300
_MAX_DETAILS = 5
_MAX_KEY = 80
_TEXT = JSONSchema(type="string")
_TEXTS = JSONSchema(type="array", items=_TEXT)
_NUMBER = JSONSchema(type="integer")
ModelT = TypeVar("ModelT", bound=BaseModel)
_PLACE = re.compile(r"\{(\w+)\}")


class ReplyError(ValueError):
    """A reply without anything that can be read; the text is fit to be told to the model."""


class Need(BaseModel):
    """Something that whoever goes on has to know, as a model gives it."""

    id: str = Field(min_length=1)
    kind: NeedKind
    what: str = Field(min_length=1)


class ProposedFact(BaseModel):
    """A fact as a model gives it."""

    fact: str = Field(min_length=1, max_length=_MAX_KEY)
    any_of: list[str] = Field(default_factory=list, max_length=20)
    superseded: list[str] = Field(default_factory=list, max_length=20)
    evidence: list[int] = Field(min_length=1, max_length=50)


class Proposal(BaseModel):
    """A probe as a model gives it."""

    need: str
    type: ProbeType
    shown_by: Literal["conversation", "workspace"]
    question: str = Field(min_length=1)
    facts: list[ProposedFact] = Field(min_length=1, max_length=2)
    reference_answer: str = Field(min_length=1)
    other_answers: list[str] = Field(min_length=2, max_length=5)
    reasons: list[str] = Field(default_factory=list, max_length=20)
    open_tasks: list[str] = Field(default_factory=list, max_length=20)

    def probe(self, history: History, origin: str) -> Probe:
        """Return the proposal as a probe of a history."""
        keys = {
            "decision": {"reasons": _filled(self.reasons)},
            "continuation": {"open_tasks": _filled(self.open_tasks)},
        }
        lists = {name: texts for name, texts in keys.get(self.type, {}).items() if texts}
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
        return draft(history, self.type, question, facts, answer, origin, key)


def _filled(values: Sequence[str]) -> list[str]:
    return [value.strip() for value in values if value.strip()]


@dataclass
class Usage:
    """What the calls to a model took."""

    calls: int = 0
    total: ModelUsage = field(default_factory=ModelUsage)


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

        Half as many again as are needed are asked for, since some are dropped.
        """
        parts, tool_text = _parts(history, self.chunk_tokens)
        count = max(1, -(-3 * self.per_type // (2 * len(parts))))
        harvests = [Harvest() for _ in parts]
        done = 0

        async def write(number: int) -> None:
            nonlocal done
            request = _request(history, parts[number], count, tool_text)
            written = _Written(history, f"{BY_MODEL}{self.model}", harvests[number])

            async def take(output: ModelOutput) -> str:
                written.take(output)
                await self._try(written)
                return written.correction()

            written.give_up(await self._ask(request, _writing_schema(), take))
            done += 1
            self.progress(f"cut {history.cut}: {done} of {len(parts)} requests answered")

        async with anyio.create_task_group() as group:
            for number in range(len(parts)):
                group.start_soon(write, number)
        result = Harvest()
        for harvest in harvests:
            result.add(harvest)
        if result.candidates:
            await self._drop_guessed(history, result)
        return result

    async def _try(self, written: "_Written") -> None:
        """Have new questions answered from their evidence, and take back what does not fit."""
        new = {item.probe.question: item.probe for item in written.fresh.values()}
        asked = {text: probe for text, probe in new.items() if text not in written.answers}
        shown = [
            {"question": text, "evidence": _evidence(written.history, probe)}
            for text, probe in asked.items()
        ]
        entries, failure = await self._answers("informed", shown, answer=_TEXT, forgotten=_TEXT)
        for number, question in enumerate(asked, 1):
            entry = entries.get(number, {})
            answer, wrong = entry.get("answer"), entry.get("forgotten")
            if isinstance(answer, str) and isinstance(wrong, str) and answer.strip():
                written.answers[question] = answer, wrong
        if left := sum(question not in written.answers for question in asked):
            why = failure or "they were left out of the reply"
            written.harvest.notes.append(f"{left} not tried on an answer from the evidence: {why}")
        missed = written.take_back()
        cut = written.history.cut
        if asked and not failure:
            self.progress(f"cut {cut}: {missed} of {len(new)} do not fit an answer from evidence")

    async def _answers(
        self, name: str, questions: Sequence[dict[str, Any]], **fields: JSONSchema
    ) -> tuple[dict[int, dict[str, Any]], str]:
        """Have questions answered in one call.

        Args:
            name: The prompt that says how.
            questions: What is shown of each; they are numbered from 1.
            fields: What is wanted for each.

        Returns:
            The replies by number, which may lack some or a field; and why there are none.
        """
        found: dict[int, dict[str, Any]] = {}

        async def take(output: ModelOutput) -> str:
            for item in _replies(output, "answers")[0]["answers"]:
                if isinstance(item, dict) and isinstance(number := item.get("number"), int):
                    found[number] = item
            return ""

        if not questions:
            return found, ""
        lines = [one_line_json({"number": at, **item}) for at, item in enumerate(questions, 1)]
        system = ChatMessageSystem(content=_prompt(name))
        form = object_schema(answers=list_schema(number=_NUMBER, **fields))
        failure = await self._ask(
            (system, ChatMessageUser(content="\n".join(lines))),
            ResponseSchema(name=name, json_schema=form, strict=True),
            take,
        )
        return found, failure

    async def _drop_guessed(self, history: History, harvest: Harvest) -> None:
        """Have all questions answered without the conversation, and drop what is guessed."""
        questions = [{"question": item.probe.question} for item in harvest.candidates]
        entries, failure = await self._answers("blind", questions, guesses=_TEXTS)
        kept: list[Candidate] = []
        left = 0
        for number, item in enumerate(harvest.candidates, 1):
            guesses = entries.get(number, {}).get("guesses")
            if not isinstance(guesses, list):
                left += 1
                kept.append(item)
                continue
            right = (
                guess
                for guess in (Text(guess) for guess in guesses if isinstance(guess, str))
                if all(guess.has_any(each.forms) for each in item.probe.expected_facts)
            )
            if (guess := next(right, None)) is None:
                kept.append(item)
                continue
            reason = f"guessed without the conversation: {shorten(guess.source)}"
            harvest.dropped.append(Dropped.of(item.probe, [reason]))
        if left:
            why = failure or "they were left out of the reply"
            harvest.notes.append(f"{left} not answered without the conversation: {why}")
        if failure:
            return
        guessed = len(harvest.candidates) - len(kept)
        self.progress(
            f"cut {history.cut}: {guessed} of {len(questions)} guessed without the conversation"
        )
        harvest.candidates = kept

    async def _ask(
        self,
        request: Sequence[ChatMessage],
        schema: ResponseSchema,
        take: Callable[[ModelOutput], Awaitable[str]],
    ) -> str:
        """Ask once, and again for what cannot be used, at most `REPAIRS` times.

        Args:
            request: The messages; a correction comes after them.
            schema: For providers that can hold a model to one.
            take: Keeps what a reply says, and returns what to tell the model about the rest;
                raises `ReplyError` if nothing can be read.

        Returns:
            Why the last reply could not be read; empty if it could.
        """
        self.requests += 1
        messages, failure = list(request), ""
        config = GenerateConfig(response_schema=schema)
        for _ in range(1 + REPAIRS):
            try:
                output = await self.model.generate(messages, config=config)
            except Exception as error:
                # The schema may be what the provider refuses; the reply can be read without.
                logger.info("%s: %s: %s", self.model, type(error).__name__, error)
                failure = f"the call failed: {type(error).__name__}: {error}"[:_MAX_REASON]
                self.failure, config = failure, GenerateConfig()
                continue
            self.usage.calls += 1
            if output.usage:
                self.usage.total = self.usage.total + output.usage
            try:
                wrong, failure = await take(output), ""
            except ReplyError as error:
                failure = str(error)
                wrong = _prompt("unreadable", fault=failure)
            if not wrong:
                break
            text = said(output).strip()[:_MAX_ECHO]
            echo = [ChatMessageAssistant(content=text)] if text else []
            messages = [*request, *echo, ChatMessageUser(content=wrong)]
        return failure


@dataclass
class _Written:
    """What a model's replies to one request give."""

    history: History
    origin: str
    harvest: Harvest
    needs: dict[str, Need] = field(default_factory=dict)
    pending: dict[int, Dropped] | None = None
    """Candidates of the latest reply that are to be mended; None before a reply was read."""
    fresh: dict[int, Candidate] = field(default_factory=dict)
    """Those of it that were taken."""
    answers: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By question, an answer from the evidence, and one of somebody who has forgotten."""
    most_shown: int = 0
    """How many may be such as the workspace tells: a quarter of those in the first reply."""

    def take(self, output: ModelOutput) -> None:
        """Take what is fit of a reply."""
        replies = _replies(output, "candidates")
        listed = replies[0]["candidates"][:_MAX_CANDIDATES]
        for reply in replies:
            needs = reply.get("needs")
            for item in needs if isinstance(needs, list) else ():
                if isinstance(need := _validated(Need, item), Need):
                    self.needs[need.id] = need
        # A repair that leaves some out leaves them as they were.
        if self.pending is None:
            self.most_shown = len(listed) // 4
        self.harvest.dropped.extend([*(self.pending or {}).values()][len(listed) :])
        self.pending, self.fresh = {}, {}
        for number, item in enumerate(listed, 1):
            taken = self._take(_validated(Proposal, item))
            if isinstance(taken, Dropped):
                self.pending[number] = taken
            else:
                self.fresh[number] = taken
                self.harvest.candidates.append(taken)

    def take_back(self) -> int:
        """Take back what does not fit the answers to its question, and return how many."""
        taken_back: dict[int, Dropped] = {}
        for number, item in self.fresh.items():
            answers = self.answers.get(item.probe.question)
            if answers and (wrong := _misfit(item.probe, *answers)):
                taken_back[number] = Dropped.of(item.probe, [wrong])
                self.harvest.candidates.remove(item)
        self.pending = dict(sorted({**(self.pending or {}), **taken_back}.items()))
        return len(taken_back)

    def correction(self) -> str:
        """Return what the model is told about the candidates that are to be mended."""
        told = [
            f"{number}. {item.question[:_MAX_QUESTION_SHOWN]!r}: {'; '.join(item.reasons)}"
            for number, item in (self.pending or {}).items()
        ]
        return _prompt("correction", fault="\n".join(told)) if told else ""

    def give_up(self, failure: str) -> None:
        """Drop what was not mended; all of it if no reply could be read."""
        if self.pending is None:
            self.pending = {1: Dropped("", self.origin, "", (failure or "no answer",))}
        elif failure:
            self.pending = {
                number: replace(item, reasons=(*item.reasons, failure))
                for number, item in self.pending.items()
            }
        self.harvest.dropped.extend(self.pending.values())

    def _take(self, proposal: "Proposal | str") -> "Candidate | Dropped":
        """Return a candidate if it is fit; else what is wrong."""
        if isinstance(proposal, str):
            return Dropped("", self.origin, "", (proposal,))
        probe = proposal.probe(self.history, self.origin)
        need = self.needs.get(proposal.need)
        wrong = faults(probe, self.history)
        if need is None:
            wrong.append(f"need: {shorten(proposal.need)} is not among your needs")
        for number, answer in enumerate(map(Text, proposal.other_answers)):
            wrong.extend(
                f"other_answers[{number}]: no form of {shorten(item.fact)} stands in "
                f"{shorten(answer.source)}: give a shorter fact, or add such wordings to any_of"
                for item in probe.expected_facts
                if not answer.has_any(item.forms)
            )
        if proposal.type == "continuation":
            wrong.extend(
                f"{shorten(item.fact)} stands in results of tools only: what is open is what "
                "somebody said"
                for item in probe.expected_facts
                if not self._said(item.forms)
            )
        taken = [candidate.probe for candidate in self.harvest.candidates]
        if twin := duplicate(probe, taken):
            wrong.append(twin)
        workspace = proposal.shown_by == "workspace"
        shown = sum(candidate.workspace for candidate in self.harvest.candidates)
        if workspace and shown >= self.most_shown:
            wrong.append(IN_WORKSPACE)
        if wrong or need is None:
            return Dropped.of(probe, wrong)
        doubts = warnings(probe, self.history)
        candidate = Candidate.of(probe, self.history, f"model:{need.kind}", doubts)
        return replace(candidate, need=need.what, workspace=workspace)

    def _said(self, forms: Sequence[str]) -> bool:
        """Return whether the user or the agent states one of the forms, in text or in a call."""
        among = (at for at, each in enumerate(self.history.messages) if each.role != "tool")
        return any(True for _ in self.history.stating(forms, among))


def _misfit(probe: Probe, answer: str, wrong: str) -> str:
    """Return why the keys of a probe do not tell a right answer from a wrong one; else nothing."""
    right, forgotten = Text(answer), Text(wrong)
    facts = probe.expected_facts
    found = [
        f"no form of {shorten(item.fact)} stands in the right answer"
        for item in facts
        if not right.has_any(item.forms)
    ]
    if all(forgotten.has_any(item.forms) for item in facts):
        forms = (form for item in facts for form in item.forms if forgotten.has(form))
        found.append(f"the wrong answer has {', '.join(map(shorten, forms))}")
    if not found:
        return ""
    told, guessed = (repr(one_line(text, _MAX_ANSWER)) for text in (answer, wrong))
    return (
        f"{'; '.join(found)}: a colleague who read the evidence answered {told}, and somebody who "
        f"has forgotten would say {guessed}"
    )


def _evidence(history: History, probe: Probe) -> list[dict[str, str]]:
    """Return what the first and the last message with each fact say around it.

    Windows begin at steps, so that the fact has no fixed place in them.
    """
    shown: dict[str, dict[str, str]] = {}
    for item in probe.expected_facts:
        for index in (item.evidence[0], item.evidence[-1]):
            text = history.texts[index]
            source = text.source
            found = (
                re.search(rf"(?<!\w){re.escape(form)}(?!\w)", source, re.IGNORECASE)
                for form in item.forms
            )
            if match := next(filter(None, found), None):
                at = match.start()
            else:  # in another spelling
                source, at, _ = next(text.places(item.forms), (source, 0, 0))
            start = max(0, at - at % _STEP - _STEP) if len(source) > 3 * _STEP else 0
            part = source[start : start + 3 * _STEP]
            shown[part] = {"role": history.messages[index].role, "text": part}
    return list(shown.values())


def _replies(output: ModelOutput, key: str) -> list[dict[str, Any]]:
    """Return the JSON objects in a reply that have a key; the first has a list under it.

    Raises:
        ReplyError: There is no such object.
    """
    if output.error:
        raise ReplyError(f"the model failed: {output.error}")
    if refused(output):
        raise ReplyError("it is a refusal")
    text = said(output)
    replies = list(objects_with(text, key))
    if replies and isinstance(replies[0][key], list):
        return replies
    if cut_off(output):
        raise ReplyError("it was cut off before its end; write less")
    if not text.strip():
        raise ReplyError("it is empty")
    if not replies:
        raise ReplyError(f"it holds no JSON object with a key `{key}`")
    raise ReplyError(f"`{key}` is not a list")


def _validated(model: type[ModelT], item: object) -> ModelT | str:
    """Return a part of a reply; what is wrong with it if it is malformed."""
    if (place := broken_text(item)) is not None:
        return f"{place.lstrip('.')}: {BROKEN_TEXT}"
    try:
        return model.model_validate(item)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
        return "; ".join(
            f"{'.'.join(map(str, detail['loc'])) or 'the candidate'}: {detail['msg']}"
            for detail in details[:_MAX_DETAILS]
        )


def _writing_schema() -> ResponseSchema:
    """Return the form of a reply with probes; the same for all."""
    text, texts = _TEXT, _TEXTS
    numbers = JSONSchema(type="array", items=_NUMBER)

    def one_of(names: Sequence[str]) -> JSONSchema:
        return JSONSchema(type="string", enum=list(names))

    schema = object_schema(
        needs=list_schema(id=text, kind=one_of(get_args(NeedKind)), what=text),
        candidates=list_schema(
            need=text,
            type=one_of(TYPES),
            shown_by=one_of(("conversation", "workspace")),
            question=text,
            facts=list_schema(fact=text, any_of=texts, superseded=texts, evidence=numbers),
            reference_answer=text,
            other_answers=texts,
            reasons=texts,
            open_tasks=texts,
        ),
    )
    return ResponseSchema(name="probe_candidates", json_schema=schema, strict=True)


def _parts(history: History, budget: int) -> tuple[list[range], int]:
    """Return the parts that a history is shown in, and how much of what tools returned.

    A reader of a part cannot see what came of things later, so as much is shortened as is needed
    to show all at once.
    """
    count = text_counter().count
    for tool_text in _TOOL_TEXTS:
        sizes = [0] * history.cut
        for index in history.compressed:
            sizes[index] = count(_line(history, index, tool_text))
        if sum(sizes) <= budget:
            break
    return replace(history, sizes=sizes).chunks(budget), tool_text


def _request(history: History, part: range, count: int, tool_text: int) -> list[ChatMessage]:
    """Build a request for some probes of each type about a part of the messages."""
    shown = "\n".join(_line(history, index, tool_text) for index in part)
    after = "\n".join(
        [
            *(
                _line(history, index, tool_text, _MAX_BETWEEN)
                for index in range(part.stop, history.tail_start)
                if history.messages[index].typed.strip()
            ),
            *(_line(history, index, tool_text) for index in range(history.tail_start, history.cut)),
        ]
    )
    code = hashlib.sha256(f"{shown}\n{after}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    material = _prompt(
        "material",
        range=f"{part.start} to {part.stop - 1}",
        code=code,
        history=shown,
        after=after,
        kept_from=str(history.tail_start),
        count=str(count),
        language=wording("language_name", history.language),
    )
    return [
        ChatMessageSystem(content=_prompt("instructions")),
        ChatMessageUser(content=[ContentText(text=material, cache_breakpoint=True)]),
    ]


def _line(history: History, index: int, tool_text: int, text: int = _MAX_TEXT) -> str:
    """Return a message as JSON on one line."""
    message: Message = history.messages[index]
    longest = tool_text if message.role == "tool" else text
    shown: dict[str, Any] = {
        "index": index,
        "role": message.role,
        "text": _clipped(message.text, longest),
    }
    for call in message.calls:
        arguments: Any = call.function.parsed()
        written = json.dumps(arguments, ensure_ascii=False)
        if len(written) > tool_text:
            arguments = _clipped(written, tool_text)
        shown.setdefault("calls", []).append({"name": call.function.name, "arguments": arguments})
    return one_line_json(shown)


def _clipped(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} [… {len(text) - 2 * half} characters …] {text[-half:]}"


def _prompt(name: str, **values: str) -> str:
    """Return a prompt with values in their places, all at once: no value is read as a place."""
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), _template(name))


@cache
def _template(name: str) -> str:
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()
