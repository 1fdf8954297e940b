"""The state reader: a language model says which facts a state contains, and where.

One call per state to the first model of the role ``grader`` asks about all expected facts of all
probes at that state: ``stated``, ``derivable`` or ``absent``, with supporting quotes. A word counts
only if its quotes occur in the state (`_Passages`); for the others the reader is asked once more.
The call shares its prefix with the grading calls about the state, for the provider's prompt cache,
and its reply serves all samples of the state (`SharedReadings`).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import anyio
from anyio.lowlevel import RunVar
from inspect_ai.model import ChatMessage, ChatMessageUser, ContentText, Model, ResponseSchema
from inspect_ai.util import JSONSchema

from compression_eval.errors import one_line
from compression_eval.facts.life import StateFinding, StateWord
from compression_eval.facts.records import Region
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.models import Language
from compression_eval.grading.asking import (
    Asked,
    ReplyError,
    ask,
    list_schema,
    object_schema,
    objects_with,
)
from compression_eval.grading.request import shared_beginning
from compression_eval.grading.rubric import Rubric, load_rubric
from compression_eval.record import AskedProbe, render_messages
from compression_eval.sharing import current_attempt
from compression_eval.text.lookup import JOINS, joins
from compression_eval.text.printable import one_line_json

StateFacts = Literal["reader", "match"]
"""What decides whether a fact is in a state: a language model and look-ups, or look-ups alone."""

FACTS_PER_CALL = 60
"""Most facts of one call, so that the reply is not cut off."""

MAX_QUOTE = 2_000
"""Characters of a quote that are searched and kept."""

MAX_REASON = 200
MAX_SHOWN = 120
"""Characters of a quote that are sent back."""

_FINDINGS = "factFindings"


@dataclass(frozen=True)
class StateReading:
    """A reader's words on one state."""

    reader: str
    """The model, as Inspect names it."""
    calls: int
    findings: Mapping[str, Sequence[StateFinding]] = field(default_factory=dict)
    """By probe id, in the order of the probe's expected facts."""
    failure: str = ""
    """Why the reader, or one of its calls, failed; empty if none did."""


@dataclass(frozen=True)
class StateQuestion:
    """The question to a reader about one state."""

    context: Sequence[ChatMessage]
    """The messages of the state."""
    regions: Sequence[Region]
    """The region of each of them."""
    asked: Sequence[AskedProbe]
    """The questions with their expected facts."""
    language: Language
    """Language of the instructions."""
    state_id: str = ""
    """Key of the state among calls with a shared prefix."""


@dataclass
class _Slot:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    reading: StateReading | None = None


class SharedReadings:
    """Readings by run, model and question, so that samples and epochs of a state share one.

    The first sample that needs a reading makes the call, the others wait. If it is cancelled or
    runs into a limit, the next one makes it. A reader that failed is not asked again.
    """

    def __init__(self) -> None:
        # They end with the event loop: a task made in Python, and with it its scorers, may be run
        # again with other graders.
        self._slots: RunVar[dict[tuple[str, Model, str], _Slot]] = RunVar(
            "compression_eval_readings"
        )

    async def get(self, model: Model, about: StateQuestion) -> tuple[StateReading, bool]:
        """Return the reading of a state, and whether this call made it."""
        asking = json.dumps([probe.model_dump() for probe in about.asked])
        question = digest("\0".join((about.language, asking, render_messages(about.context))))
        slots = self._slots.get({})
        self._slots.set(slots)
        slot = slots.setdefault((current_attempt(), model, question), _Slot())
        async with slot.lock:
            if slot.reading is not None:
                return slot.reading, False
            slot.reading = await read_state(model, about)
            return slot.reading, True


async def read_state(model: Model, about: StateQuestion) -> StateReading:
    """Ask a model which facts a state contains.

    A word whose quotes are not in the state is asked for once more, and then counts as unknown.
    """
    rubric = load_rubric(about.language)
    passages = _Passages(about.context, about.regions)
    findings: dict[str, list[StateFinding]] = {probe.probe_id: [] for probe in about.asked}
    calls, failures = 0, []
    for batch in _batches(about.asked):
        reading = _Reading(rubric, passages, list(batch))
        outcome = await ask(
            model,
            _request(rubric, about.context, batch),
            role="state reader",
            schema=_response_schema(),
            prefix_key=f"grade:{about.language}:{about.state_id}",
            take=reading.take,
            correction=reading.correction,
        )
        calls += outcome.calls
        failure = "" if reading.words else _described(outcome)
        failures += [failure] if failure else []
        unread = StateFinding(None, problem=f"the reader failed: {failure}")
        for id_, (probe, _) in batch.items():
            findings[probe.probe_id].append(reading.words.get(id_, unread))
    return StateReading(str(model), calls, findings, failures[0] if failures else "")


def reading_requests(
    context: Sequence[ChatMessage], asked: Sequence[AskedProbe], language: Language
) -> list[list[ChatMessage]]:
    """Return the first requests to a reader, one for each `FACTS_PER_CALL` facts.

    Args:
        context: The messages of the state.
        asked: The questions with their expected facts.
        language: Language of the instructions.
    """
    return [_request(load_rubric(language), context, batch) for batch in _batches(asked)]


_Batch = dict[str, tuple[AskedProbe, list[str]]]
"""Facts of one call by their id in it: the probe, and the fact's forms."""


def _batches(asked: Sequence[AskedProbe]) -> list[_Batch]:
    facts = [(probe, forms) for probe in asked for forms in probe.facts]
    numbered = [(f"f{number}", fact) for number, fact in enumerate(facts, start=1)]
    starts = range(0, len(numbered), FACTS_PER_CALL)
    return [dict(numbered[start : start + FACTS_PER_CALL]) for start in starts]


def _request(rubric: Rubric, context: Sequence[ChatMessage], batch: _Batch) -> list[ChatMessage]:
    system, shown = shared_beginning(rubric, context)
    questions: dict[str, dict[str, Any]] = {}
    for id_, (probe, (fact, *others)) in batch.items():
        asked = questions.setdefault(
            probe.probe_id, {"question": probe.question, "expected_facts": []}
        )
        asked["expected_facts"].append({"factId": id_, "fact": fact, "also_accepted": others})
    data = one_line_json({"facts_to_find": list(questions.values())})
    text = f"{rubric.state_reader.instructions}\n{data}"
    return [system, ChatMessageUser(content=[shown, ContentText(text=text)])]


def _response_schema() -> ResponseSchema:
    return ResponseSchema(
        name="state_facts",
        json_schema=object_schema(
            **{
                _FINDINGS: list_schema(
                    factId=JSONSchema(type="string"),
                    word=JSONSchema(type="string", enum=list(get_args(StateWord))),
                    quotes=JSONSchema(type="array", items=JSONSchema(type="string")),
                )
            }
        ),
        strict=True,
    )


def _described(outcome: Asked) -> str:
    """Return in one line why a reader failed."""
    match outcome.failure.problem:
        case "error":
            return one_line(outcome.failure.detail, MAX_REASON)
        case "refusal":
            return "the model declined"
    return f"unusable reply: {outcome.failure}"


class _Reading:
    """The usable words of a reader's replies about one batch of facts."""

    def __init__(self, rubric: Rubric, passages: "_Passages", ids: Sequence[str]) -> None:
        self.words: dict[str, StateFinding] = {}
        """By fact id; empty as long as no reply could be read."""
        self._texts = rubric.state_reader
        self._passages = passages
        self._open = list(ids)
        self._asked_again = False

    def take(self, text: str) -> ReplyError | None:
        """Take the words on all open facts; the first time, ask again for the doubtful ones."""
        entries = _entries(text)
        self.words |= {id_: self._finding(entries.get(id_, [])) for id_ in self._open}
        doubtful = [id_ for id_ in self._open if self.words[id_].word is None]
        if not doubtful or self._asked_again:
            return None
        self._asked_again, self._open = True, doubtful
        return ReplyError("doubtful")

    def correction(self, error: ReplyError) -> str:
        """Return the message to the reader about an unusable or incomplete reply."""
        wrong = self._texts.unusable
        if error.problem == "doubtful":
            # What a reply quoted is untrusted text, so it goes back as JSON.
            quotes = {id_: [q[:MAX_SHOWN] for q in self.words[id_].quotes] for id_ in self._open}
            wrong = f"{self._texts.doubtful}\n{one_line_json(quotes)}\n"
        return f"{wrong} {self._texts.again.replace('{ids}', ', '.join(self._open))}"

    def _finding(self, entries: Sequence[Mapping[str, Any]]) -> StateFinding:
        """Return what the entries for one fact say, of which there should be one."""
        entry = entries[0] if len(entries) == 1 else {}
        word, quoted = entry.get("word"), entry.get("quotes")
        if word == "absent":
            return StateFinding("absent")
        is_word = word in get_args(StateWord)
        quotes = tuple(
            quote[:MAX_QUOTE]
            for quote in (quoted if is_word and isinstance(quoted, list) else [])
            if isinstance(quote, str) and any(map(str.isalnum, _plain(quote)))
        )
        places = [self._passages.places(quote) for quote in quotes]
        problem = ""
        if len(entries) != 1:
            problem = "two entries" if entries else "no entry"
        elif not is_word:
            problem = "no such word"
        elif not quotes:
            problem = "no quote"
        elif not all(places):
            problem = "a quote that is not in the state"
        if problem:
            return StateFinding(None, quotes, problem=problem)
        regions = dict.fromkeys(region for place in places for region in place if region)
        return StateFinding(word, quotes, tuple(regions))


def _entries(text: str) -> dict[str, list[dict[str, Any]]]:
    """Return the entries of a reply by fact id.

    Raises:
        ReplyError: It contains no object with entries, or several that differ.
    """
    if not text.strip():
        raise ReplyError("empty")
    listed, *others = [reply[_FINDINGS] for reply in objects_with(text, _FINDINGS)] or [None]
    if not isinstance(listed, list) or any(other != listed for other in others):
        raise ReplyError("wrong_shape" if others else "not_json")
    by_id: dict[str, list[dict[str, Any]]] = {}
    for entry in listed:
        if isinstance(entry, dict):
            by_id.setdefault(str(entry.get("factId")), []).append(entry)
    return by_id


_ESCAPE = re.compile(r"\\++(?:u([0-9a-fA-F]{4})|([nrt]))?+")


class _Passages:
    """The text of a state, in which quotes are looked for.

    Args:
        context: The messages of the state.
        regions: The region of each of them.
    """

    def __init__(self, context: Sequence[ChatMessage], regions: Sequence[Region]) -> None:
        # A log that was recovered from its events may lack messages: then no region is known.
        known = regions if len(regions) == len(context) else [None] * len(context)
        # The first line of a message as it is shown names its role, which no message says.
        self._texts: list[tuple[Region | None, str]] = [
            (region, _plain(render_messages([message]).partition("\n")[2]))
            for message, region in zip(context, known, strict=True)
        ]

    def places(self, quote: str) -> list[Region | None]:
        """Return the region of each message that contains a quote, None if it is unknown."""
        wanted = _plain(quote)
        before = rf"(?<!{JOINS})" if joins(wanted[0]) else ""
        after = rf"(?!{JOINS})" if joins(wanted[-1]) else ""
        pattern = re.compile(f"{before}{re.escape(wanted)}{after}")
        return [region for region, text in self._texts if pattern.search(text)]


def _plain(text: str) -> str:
    """Return a text without what copying may change.

    That is white space, and the escapes of the JSON in which the reader sees the state, or in which
    the state contains tool calls.
    """

    def unescaped(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else " " if match[2] else ""

    return " ".join(_ESCAPE.sub(unescaped, text).split())
