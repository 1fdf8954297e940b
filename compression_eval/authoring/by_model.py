"""Have a model propose probes, try them on two readers, and mend or drop what fails.

What models are told is in ``prompts``. A history is shown in one request if that can be done by
shortening what tools returned, else in parts. The model lists what whoever goes on needs and asks
about nothing else. Its keys are names and values, which are looked up in answers, or sentences,
which only a reader can judge. A reader without the conversation guesses at the questions. One with
the conversation answers them and says what is wrong, not needed or guessed; the keys that are
looked up have to find its right answer and not its wrong one. What fails a check or a reader goes
back to the writer.
"""

import itertools
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar, get_args

import anyio
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    ResponseSchema,
)
from inspect_ai.util import JSONSchema
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from compression_eval.authoring.check import BY_MODEL, duplicate, faults, tells_by_spelling
from compression_eval.authoring.history import (
    IN_WORKSPACE,
    TYPES,
    Candidate,
    Dropped,
    Harvest,
    History,
    draft,
    fact,
)
from compression_eval.authoring.material import material_of, parts_of, prompt, request_of
from compression_eval.authoring.mechanical import wording
from compression_eval.errors import one_line, shorten
from compression_eval.fixtures.banks import AnswerKey, ExpectedFact, Probe, ProbeType
from compression_eval.fixtures.models import BROKEN_TEXT, NonEmpty, broken_text
from compression_eval.grading.asking import list_schema, object_schema, objects_with
from compression_eval.inspect_models import cut_off, refused, said
from compression_eval.text.lookup import Text
from compression_eval.text.printable import one_line_json

logger = logging.getLogger(__name__)

REPAIRS = 2
"""How often a model is asked to mend what it proposed."""

TRIES = 2
"""How often readers are asked about what it proposed."""

CHUNK_TOKENS = 60_000
"""Tokens of history in one request, by default."""

NeedKind = Literal["request", "constraint", "rejection", "state", "reason", "dead_end"]

_MAX_ECHO = 80_000
_MAX_CANDIDATES = 60
_MAX_REASON = 300
_MAX_DETAILS = 5
_TEXT = JSONSchema(type="string")
_TEXTS = JSONSchema(type="array", items=_TEXT)
_NUMBER = JSONSchema(type="integer")
ModelT = TypeVar("ModelT", bound=BaseModel)


class ReplyError(ValueError):
    """A reply without anything that can be read; the text is fit to be told to the model."""


def _filled(values: list[str]) -> list[str]:
    return [value.strip() for value in values if value.strip()]


Texts = Annotated[list[str], Field(max_length=20), AfterValidator(_filled)]


class Need(BaseModel):
    """Something that whoever goes on has to know, as a model gives it."""

    id: NonEmpty
    kind: NeedKind
    what: NonEmpty


class ProposedFact(BaseModel):
    """A fact as a model gives it."""

    by: Literal["spelling", "meaning"]
    fact: NonEmpty
    any_of: Texts = []
    superseded: Texts = []
    evidence: list[int] = Field(min_length=1, max_length=50)

    def expected(self) -> ExpectedFact:
        """Return it as a fact of a bank."""
        meant = self.by == "meaning"
        text = self.fact.strip() or self.fact
        found = fact(text, self.evidence, [] if meant else self.any_of, self.superseded)
        return found.model_copy(update={"derived": True}) if meant else found

    def loose(self) -> Iterator[str]:
        """Yield the keys that would be looked up and that a wrong answer may well have, too."""
        looked_up = {"superseded": self.superseded}
        if self.by == "spelling":
            looked_up |= {"fact": [self.fact], "any_of": self.any_of}
        for name, texts in looked_up.items():
            for text in itertools.filterfalse(tells_by_spelling, texts):
                yield (
                    f"{name}: {shorten(text)} is plain words, which wrong answers have too: what "
                    "is looked up holds a digit, a sign as code has it, or a capital inside; say "
                    "anything else in a sentence, by meaning"
                )


class Proposal(BaseModel):
    """A probe as a model gives it."""

    need: str
    type: ProbeType
    question: NonEmpty
    facts: list[ProposedFact] = Field(min_length=1, max_length=2)
    reference_answer: NonEmpty
    reasons: Texts = []
    open_tasks: Texts = []

    def probe(self, history: History, origin: str) -> Probe:
        """Return the proposal as a probe of a history."""
        lists = {
            "decision": {"reasons": self.reasons},
            "continuation": {"open_tasks": self.open_tasks},
        }.get(self.type, {})
        key = AnswerKey.model_validate(lists) if any(lists.values()) else None
        facts = [item.expected() for item in self.facts]
        question, answer = self.question.strip() or "?", self.reference_answer.strip()
        return draft(history, self.type, question, facts, answer, origin, key)


Verdict = Literal["wrong", "ambiguous", "given_away", "guessed", "not_needed", "good"]


class Reading(BaseModel):
    """What a reader of the conversation says of a question."""

    answer: NonEmpty
    """The right one, in its own words."""
    forgotten: str = ""
    """The likeliest wrong one."""
    because: str = ""
    verdict: Verdict
    workspace: bool = False
    """Whether one look at files or git would tell."""


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
        parts, tool_text = parts_of(history, self.chunk_tokens)
        count = max(1, -(-3 * self.per_type // (2 * len(parts))))
        harvests = [Harvest() for _ in parts]
        done = 0

        async def write(number: int) -> None:
            nonlocal done
            material = material_of(history, parts[number], tool_text)
            written = _Written(history, f"{BY_MODEL}{self.model}", harvests[number])

            async def take(output: ModelOutput) -> str:
                again = written.pending is not None
                written.take(output)
                # What checks find is mended before readers are asked, who see all questions.
                if again or not written.pending:
                    await self._try(written, material)
                return written.correction() if written.tries < TRIES else ""

            language = wording("language_name", history.language)
            task = prompt("instructions", count=str(count), language=language)
            failure = await self._ask(request_of(material, task), _writing_schema(), take)
            await self._try(written, material)
            written.give_up(failure)
            done += 1
            self.progress(f"cut {history.cut}: {done} of {len(parts)} requests answered")

        async with anyio.create_task_group() as group:
            for number in range(len(parts)):
                group.start_soon(write, number)
        result = Harvest()
        for harvest in harvests:
            result.add(harvest)
        return result

    async def _try(self, written: "_Written", material: str) -> None:
        """Put what no reader has seen to one without the conversation, and to one with it."""
        new, written.untried = written.untried, []
        if not new:
            return
        written.tries += 1
        asked: list[dict[str, Any]] = [{"question": item.probe.question} for item in new]
        compared = [
            {"question": item.probe.question}
            for item in written.harvest.candidates
            if item not in new
        ]
        entries, why = await self._answers("blind", "", asked, compared, guesses=_TEXTS)
        guesses = [
            [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
            for listed in (entry.get("guesses") for entry in entries)
        ]
        written.note(entries.count({}), "not answered without the conversation", why)
        asked = [_shown(item.probe, texts) for item, texts in zip(new, guesses, strict=True)]
        fields = dict.fromkeys(("answer", "forgotten", "without", "because"), _TEXT)
        fields["verdict"] = JSONSchema(type="string", enum=list(get_args(Verdict)))
        fields["workspace"] = JSONSchema(type="boolean")
        entries, why = await self._answers("informed", material, asked, compared, **fields)
        validated = [_validated(Reading, entry) for entry in entries]
        readings = [read if isinstance(read, Reading) else None for read in validated]
        written.note(readings.count(None), "not judged by a reader of the conversation", why)
        refused = written.judge(new, guesses, readings)
        cut = written.history.cut
        self.progress(f"cut {cut}: {refused} of {len(new)} questions refused by readers")

    async def _answers(
        self,
        name: str,
        material: str,
        questions: Sequence[dict[str, Any]],
        others: Sequence[dict[str, Any]],
        **fields: JSONSchema,
    ) -> tuple[list[dict[str, Any]], str]:
        """Have questions answered in one call.

        Args:
            name: The prompt that says how.
            material: The conversation; empty for a reader who does not see it.
            questions: What is shown of each; they are numbered from 1.
            others: What is shown of those that are only to be compared with.
            fields: What is wanted for each.

        Returns:
            A reply for each question, empty where there is none; and why there are none.
        """
        found: dict[int, dict[str, Any]] = {}

        async def take(output: ModelOutput) -> str:
            for item in _replies(output, "answers")[0]["answers"]:
                if isinstance(item, dict) and isinstance(number := item.get("number"), int):
                    found[number] = item
            return ""

        numbered = [{"number": at, **item} for at, item in enumerate(questions, 1)]
        lines = "\n".join(map(one_line_json, [*others, *numbered]))
        form = object_schema(answers=list_schema(number=_NUMBER, **fields))
        schema = ResponseSchema(name=name, json_schema=form, strict=True)
        task = prompt(name, questions=lines)
        request = request_of(material, task) if material else [ChatMessageUser(content=task)]
        failure = await self._ask(request, schema, take)
        return [found.get(item["number"], {}) for item in numbered], failure

    async def _ask(
        self,
        request: Sequence[ChatMessage],
        schema: ResponseSchema,
        take: Callable[[ModelOutput], Awaitable[str]],
    ) -> str:
        """Ask once, and again for what cannot be used, at most `REPAIRS` times.

        Args:
            request: The messages; a correction comes after them.
            schema: For providers that can force a model to keep to one.
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
                wrong = prompt("unreadable", fault=failure)
            if not wrong:
                break
            text = said(output).strip()[:_MAX_ECHO]
            echo = [ChatMessageAssistant(content=text)] if text else []
            messages += [*echo, ChatMessageUser(content=wrong)]
        return failure


@dataclass
class _Written:
    """What a model's replies to one request give."""

    history: History
    origin: str
    harvest: Harvest
    needs: dict[str, Need] = field(default_factory=dict)
    pending: list[Dropped] | None = None
    """What is to be mended; None before a reply was read."""
    untried: list[Candidate] = field(default_factory=list)
    """Those that no reader has seen."""
    tries: int = 0

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
        self.harvest.dropped.extend((self.pending or [])[len(listed) :])
        self.pending = []
        for item in listed:
            taken = self._take(_validated(Proposal, item))
            if isinstance(taken, Dropped):
                self.pending.append(taken)
            else:
                self.harvest.candidates.append(taken)
                self.untried.append(taken)

    def note(self, number: int, what: str, why: str) -> None:
        """Note of how many candidates a reader said nothing."""
        if number:
            why = why or "they were left out of the reply"
            self.harvest.notes.append(f"{number} {what}: {why}")

    def judge(
        self,
        new: Sequence[Candidate],
        guesses: Sequence[Sequence[str]],
        readings: Sequence["Reading | None"],
    ) -> int:
        """Take back what readers refuse, and return how many.

        Args:
            new: Candidates that they have seen.
            guesses: Answers to each without the conversation.
            readings: What a reader of the conversation says of each; None where it says nothing.
        """
        found: list[tuple[Candidate, list[str]]] = []
        for item, guessed, reading in zip(new, guesses, readings, strict=True):
            wrong = _refusals(item.probe, guessed, reading)
            at = self.harvest.candidates.index(item)
            known = replace(item, workspace=reading is not None and reading.workspace)
            self.harvest.candidates[at] = known
            if wrong:
                found.append((self.harvest.candidates.pop(at), wrong))
        left = self.harvest.candidates
        for item in [each for each in left if each.workspace][len(left) // 4 :]:
            left.remove(item)
            found.append((item, [f"question: {IN_WORKSPACE}"]))
        self.pending = [*(self.pending or []), *(Dropped.of(c.probe, why) for c, why in found)]
        return len(found)

    def correction(self) -> str:
        """Return what the model is told about the candidates that are to be mended."""
        told = [
            "\n".join([f"{number}. {shorten(item.question)}", *(f"   - {r}" for r in item.reasons)])
            for number, item in enumerate(self.pending or [], 1)
        ]
        return prompt("correction", fault="\n".join(told)) if told else ""

    def give_up(self, failure: str) -> None:
        """Drop what was not mended; all of it if no reply could be read."""
        if self.pending is None:
            self.pending = [Dropped("", self.origin, "", (failure or "no answer",))]
        elif failure:
            self.pending = [
                replace(item, reasons=(*item.reasons, failure)) for item in self.pending
            ]
        self.harvest.dropped.extend(self.pending)

    def _take(self, proposal: "Proposal | str") -> "Candidate | Dropped":
        """Return a candidate if it is fit; else what is wrong."""
        if isinstance(proposal, str):
            return Dropped("", self.origin, "", (proposal,))
        probe = proposal.probe(self.history, self.origin)
        need = self.needs.get(proposal.need)
        wrong = [
            f"facts[{number}].{said}"
            for number, item in enumerate(proposal.facts)
            for said in item.loose()
        ]
        wrong += faults(probe, self.history)
        if need is None:
            wrong.append(f"need: {shorten(proposal.need)} is not among your needs")
        if proposal.type == "continuation":
            by_tools = {at for at, each in enumerate(self.history.messages) if each.role == "tool"}
            wrong.extend(
                f"facts[{number}].evidence: {item.evidence} are results of tools: what is open is "
                "what the user or the agent said"
                for number, item in enumerate(probe.expected_facts)
                if by_tools.issuperset(item.evidence)
            )
        taken = [candidate.probe for candidate in self.harvest.candidates]
        if twin := duplicate(probe, taken):
            wrong.append(f"question: {twin}")
        if wrong or need is None:
            return Dropped.of(probe, wrong)
        candidate = Candidate.of(probe, self.history, f"model:{need.kind}")
        return replace(candidate, need=need.what)


def _shown(probe: Probe, guesses: Sequence[str]) -> dict[str, Any]:
    """Return what a reader of the conversation sees of a probe: no key that is looked up."""
    keys = [item.fact for item in probe.expected_facts if item.derived]
    return {"question": probe.question, **({"key": keys} if keys else {}), "guesses": guesses}


def _refusals(probe: Probe, guesses: Sequence[str], reading: "Reading | None") -> list[str]:
    """Return what speaks against a probe by the word of readers, or by their answers."""
    spelled = [item for item in probe.expected_facts if not item.derived]
    found: list[str] = []

    def has_all(answer: str) -> bool:
        text = Text(answer)
        return bool(spelled) and all(text.has_any(item.forms) for item in spelled)

    complete = len(spelled) == len(probe.expected_facts)
    if complete and (right := next(filter(has_all, guesses), None)):
        found.append(f"question: guessed without the conversation: {shorten(right)}")
    if reading is None:
        return found
    if reading.verdict != "good":
        because = one_line(reading.because, _MAX_REASON)
        found.append(f"question: {reading.verdict}, by a reader of the conversation: {because}")
    answer, wrong = (one_line(text, _MAX_REASON) for text in (reading.answer, reading.forgotten))
    found.extend(
        f"facts.any_of: no form of {shorten(item.fact)} is in a reader's right answer: {answer}"
        for item in spelled
        if not Text(reading.answer).has_any(item.forms)
    )
    if complete and has_all(reading.forgotten):
        found.append(f"facts: a wrong answer has all of them: {wrong}")
    return found


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
        raise ReplyError(f"it contains no JSON object with a key `{key}`")
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

    by = one_of(("spelling", "meaning"))
    schema = object_schema(
        needs=list_schema(id=text, kind=one_of(get_args(NeedKind)), what=text),
        candidates=list_schema(
            need=text,
            type=one_of(TYPES),
            question=text,
            facts=list_schema(by=by, fact=text, any_of=texts, superseded=texts, evidence=numbers),
            reference_answer=text,
            reasons=texts,
            open_tasks=texts,
        ),
    )
    return ResponseSchema(name="probe_candidates", json_schema=schema, strict=True)
