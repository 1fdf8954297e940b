"""A reader beside the look-up: a language model says which facts a state holds, and where.

One call per state, by the first model of the role ``grader``, asks for all expected facts of all
probes that are put to that state: ``stated``, ``derivable`` or ``absent``, with the passages that
show it. A word counts only if its passages stand in the state. The call begins as the grading calls
about the state do, so that a provider's prompt cache helps, and its reply serves all samples of the
state. A reader that fails takes nothing away: what look-ups found stands.
"""

import hashlib
import itertools
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import anyio
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    ContentText,
    GenerateConfig,
    Model,
    ResponseSchema,
)
from inspect_ai.util import JSONSchema, LimitExceededError

from compression_eval.compressors.errors import refused
from compression_eval.compressors.summarising import one_line_json
from compression_eval.facts.life import StateFinding, StateWord
from compression_eval.facts.matching import Text, joins
from compression_eval.facts.records import Region
from compression_eval.fixtures.errors import one_line
from compression_eval.fixtures.models import Language
from compression_eval.grading.grader import MAX_ATTEMPTS
from compression_eval.grading.reply import ReplyError, objects_with
from compression_eval.grading.request import shared_beginning
from compression_eval.grading.rubric import Rubric, load_rubric
from compression_eval.record import AskedProbe, render_messages
from compression_eval.sharing import prefix_first

logger = logging.getLogger(__name__)

StateFacts = Literal["reader", "match"]
"""Who says whether a fact is in a state: a language model beside the look-up, or look-ups alone."""

RESPONSE_SCHEMA_NAME = "state_facts"

FACTS_PER_CALL = 60
"""More facts are split over several calls: a reply about all of them would be cut off."""

_FINDINGS = "factFindings"
_LONGEST_ECHO = 20_000
_LONGEST_QUOTE = 2_000
"""Characters of a quote that are looked for and kept; a longer one shows no single fact."""
_LONGEST_REASON = 200
_SHOWN = 120

_FEWEST_CHARACTERS = 3
"""Letters and digits in the quotes for a fact, unless they hold a whole word of the fact."""
_FEWEST_WORDS = 4
"""Words of a quote that may put a fact in wholly other words."""

_ESCAPES_AND_SPACE = re.compile(r"\\+u([0-9a-fA-F]{4})|\\+[nrt]|\\+|\s+")
"""What a passage may gain or lose when it is copied: line breaks and blanks, and the backslashes
of the JSON in which the reader sees it, or in which tool calls stand in it."""

_UNSPACED = "\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"(?=([{_UNSPACED}]{{2}}))|[^\W_{_UNSPACED}]+")
"""Words; of scripts without blanks each pair of characters that stand together."""
_FILLING = {
    *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "from", "has", "in", "is"),
    *("it", "its", "not", "of", "on", "or", "that", "the", "this", "to", "was", "were", "with"),
}
"""Words that tell nothing about what a passage says."""


@dataclass(frozen=True)
class StateReading:
    """What the reader says of one state."""

    reader: str
    """The model, as Inspect names it."""
    calls: int
    findings: Mapping[str, Sequence[StateFinding]] = field(default_factory=dict)
    """By probe id, in the order of the probe's expected facts."""
    failure: str = ""
    """Why the reader, or one of its calls, came to nothing; empty if none failed."""


@dataclass
class _Slot:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    reading: StateReading | None = None


class SharedReadings:
    """Readings by what was asked of whom, so that samples and epochs of a state share one.

    The first sample that needs a reading makes the call, the others wait. If it is cancelled or
    runs into a limit, the next one makes it. A reader that failed is not asked again.
    """

    def __init__(self) -> None:
        self._slots: dict[str, _Slot] = {}

    async def get(
        self,
        model: Model,
        *,
        context: Sequence[ChatMessage],
        regions: Sequence[Region],
        asked: Sequence[AskedProbe],
        language: Language,
        state_id: str,
    ) -> tuple[StateReading, bool]:
        """Return the reading of a state, and whether this call made it; see `read_state`."""
        asking = json.dumps([probe.model_dump() for probe in asked])
        parts = (str(model), language, asking, render_messages(context))
        key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        slot = self._slots.setdefault(key, _Slot())
        async with slot.lock:
            if slot.reading is not None:
                return slot.reading, False
            slot.reading = await read_state(
                model,
                context=context,
                regions=regions,
                asked=asked,
                language=language,
                state_id=state_id,
            )
            return slot.reading, True


async def read_state(
    model: Model,
    *,
    context: Sequence[ChatMessage],
    regions: Sequence[Region],
    asked: Sequence[AskedProbe],
    language: Language,
    state_id: str = "",
) -> StateReading:
    """Ask a model which facts a state holds.

    An unusable reply, a refusal and an error of the provider are answered by asking again, at most
    `MAX_ATTEMPTS` times; a word whose quotes do not stand in the state is asked for once more, and
    then counts as not known. Cancellation and Inspect's limits go through.

    Args:
        model: The reader.
        context: The messages of the state.
        regions: The region of each of them.
        asked: The questions with their expected facts.
        language: Language of the instructions.
        state_id: Names the state among calls that begin alike.
    """
    rubric = load_rubric(language)
    passages = _Passages(context, regions)
    words: dict[str, StateFinding] = {}
    calls, failures = 0, []
    prefix_key = f"grade:{language}:{state_id}"
    batches = _batches(asked)
    for batch in batches:
        outcome = await _ask(model, rubric, context, batch, passages, prefix_key)
        words |= outcome.words
        calls += outcome.calls
        failures += [outcome.failure] if outcome.failure else []
    found: dict[str, list[StateFinding]] = {probe.probe_id: [] for probe in asked}
    for id_, probe, _ in itertools.chain.from_iterable(batches):
        found[probe.probe_id].append(words[id_])
    return StateReading(str(model), calls, found, failures[0] if failures else "")


def reading_requests(
    context: Sequence[ChatMessage], asked: Sequence[AskedProbe], language: Language
) -> list[list[ChatMessage]]:
    """Return what a reader is asked at first, one request for each `FACTS_PER_CALL` facts.

    Args:
        context: The messages of the state.
        asked: The questions with their expected facts.
        language: Language of the instructions.
    """
    return [_request(load_rubric(language), context, batch) for batch in _batches(asked)]


def response_schema() -> ResponseSchema:
    """Return the schema for providers that can hold a model to one."""
    finding = JSONSchema(
        type="object",
        properties={
            "factId": JSONSchema(type="string"),
            "word": JSONSchema(type="string", enum=list(get_args(StateWord))),
            "quotes": JSONSchema(type="array", items=JSONSchema(type="string")),
        },
        required=["factId", "word", "quotes"],
        additionalProperties=False,
    )
    return ResponseSchema(
        name=RESPONSE_SCHEMA_NAME,
        json_schema=JSONSchema(
            type="object",
            properties={_FINDINGS: JSONSchema(type="array", items=finding)},
            required=[_FINDINGS],
            additionalProperties=False,
        ),
        strict=True,
    )


_Numbered = tuple[str, AskedProbe, list[str]]
"""A fact: its id within the request, the probe that asks for it, and its forms."""


def _batches(asked: Sequence[AskedProbe]) -> list[list[_Numbered]]:
    facts = [(probe, forms) for probe in asked for forms in probe.facts]
    numbered = [(f"f{number}", *each) for number, each in enumerate(facts, start=1)]
    return [
        numbered[start : start + FACTS_PER_CALL]
        for start in range(0, len(numbered), FACTS_PER_CALL)
    ]


@dataclass(frozen=True)
class _Outcome:
    words: dict[str, StateFinding]
    calls: int
    failure: str


async def _ask(
    model: Model,
    rubric: Rubric,
    context: Sequence[ChatMessage],
    batch: Sequence[_Numbered],
    passages: "_Passages",
    prefix_key: str,
) -> _Outcome:
    request = _request(rubric, context, batch)
    messages = request
    schema: GenerateConfig | None = GenerateConfig(response_schema=response_schema())
    words: dict[str, StateFinding] = {}
    forms = {id_: accepted for id_, _, accepted in batch}
    open_ids = list(forms)
    failure, calls, corrected = "", 0, False
    while calls < MAX_ATTEMPTS:
        calls += 1
        try:
            async with prefix_first(prefix_key, model):
                output = await model.generate(messages, config=schema or GenerateConfig())
        except LimitExceededError:
            raise
        except Exception as error:  # a provider raises whatever it likes
            failure = one_line(f"{type(error).__name__}: {error}", _LONGEST_REASON)
            logger.info("state reader %s: attempt %d: %s", model, calls, failure)
            # The schema may be what the provider refuses, and the reply can be read without.
            schema = None
            continue
        if refused(output):
            failure = "the model declined"
            continue
        try:
            given = _entries(output.completion)
        except ReplyError as error:
            failure = f"unusable reply: {error}"
            messages = _correction(request, output.completion, rubric, {}, open_ids)
            continue
        words |= {id_: passages.finding(given.get(id_, []), forms[id_]) for id_ in open_ids}
        doubtful = {id_: words[id_] for id_ in open_ids if words[id_].word is None}
        if not doubtful or corrected:
            break
        corrected, open_ids = True, list(doubtful)
        messages = _correction(request, output.completion, rubric, doubtful, open_ids)
    failure = "" if words else failure
    unread = StateFinding(None, problem=f"the reader failed: {failure}")
    return _Outcome({id_: words.get(id_, unread) for id_, _, _ in batch}, calls, failure)


def _request(
    rubric: Rubric, context: Sequence[ChatMessage], batch: Sequence[_Numbered]
) -> list[ChatMessage]:
    system, shown = shared_beginning(rubric, context)
    questions: dict[str, dict[str, Any]] = {}
    for id_, probe, (fact, *others) in batch:
        asked = questions.setdefault(
            probe.probe_id, {"question": probe.question, "expected_facts": []}
        )
        asked["expected_facts"].append({"factId": id_, "fact": fact, "also_accepted": others})
    data = one_line_json({"facts_to_find": list(questions.values())})
    text = f"{rubric.text.state_reader.instructions}\n{data}"
    return [system, ChatMessageUser(content=[shown, ContentText(text=text)])]


def _correction(
    request: list[ChatMessage],
    said: str,
    rubric: Rubric,
    doubtful: Mapping[str, StateFinding],
    ids: Sequence[str],
) -> list[ChatMessage]:
    """Return the request with the reply and what is wrong with it."""
    texts = rubric.text.state_reader
    wrong = texts.unusable
    if doubtful:
        # What a reply quoted is untrusted text, so it goes back as JSON.
        named = {id_: [quote[:_SHOWN] for quote in item.quotes] for id_, item in doubtful.items()}
        wrong = f"{texts.doubtful}\n{one_line_json(named)}\n"
    messages: list[ChatMessage] = list(request)
    if said.strip():
        messages.append(ChatMessageAssistant(content=said[:_LONGEST_ECHO]))
    again = texts.again.replace("{ids}", ", ".join(ids))
    return [*messages, ChatMessageUser(content=f"{wrong} {again}")]


def _entries(text: str) -> dict[str, list[dict[str, Any]]]:
    """Return the entries of a reply by fact id; of several objects the last one counts.

    Raises:
        ReplyError: It holds no object with entries.
    """
    if not text.strip():
        raise ReplyError("empty")
    found: dict[str, list[dict[str, Any]]] | None = None
    for candidate in objects_with(text, _FINDINGS):
        if isinstance(entries := candidate[_FINDINGS], list):
            found = {}
            for entry in entries:
                if isinstance(entry, dict):
                    found.setdefault(str(entry.get("factId")), []).append(entry)
    if found is None:
        raise ReplyError("not_json")
    return found


class _Passages:
    """The text of a state, in which quotes are looked for."""

    def __init__(self, context: Sequence[ChatMessage], regions: Sequence[Region]) -> None:
        # A log that was recovered from its events may lack messages: then no region is known.
        known = regions if len(regions) == len(context) else [None] * len(context)
        # The first line of a message as it is shown names its role, which no message says.
        self._texts: list[tuple[Region | None, _Folded]] = [
            (region, _folded(render_messages([message]).partition("\n")[2]))
            for message, region in zip(context, known, strict=True)
        ]

    def finding(self, entries: Sequence[Mapping[str, Any]], forms: Sequence[str]) -> StateFinding:
        """Return what the entries for one fact say, if they can be used.

        Args:
            entries: Those of the reply; there should be one.
            forms: The texts that the fact may have.
        """
        if len(entries) != 1:
            return StateFinding(None, problem="two entries" if entries else "no entry")
        word, given = entries[0].get("word"), entries[0].get("quotes")
        if word not in get_args(StateWord):
            return StateFinding(None, problem="no such word")
        if word == "absent":
            return StateFinding("absent")
        quotes = tuple(
            quote[:_LONGEST_QUOTE]
            for quote in (given if isinstance(given, list) else [])
            if isinstance(quote, str) and _folded(quote).text
        )
        if not quotes:
            return StateFinding(None, problem="no quote")
        places = [list(self._places(quote)) for quote in quotes]
        problem = "" if all(places) else "a quote that is not in the state"
        if not problem and not _tells(quotes, forms, stated=word == "stated"):
            problem = "a quote that does not show the fact"
        if problem:
            return StateFinding(None, quotes, problem=problem)
        regions = dict.fromkeys(region for place in places for region in place if region)
        return StateFinding(word, quotes, tuple(regions))

    def _places(self, quote: str) -> Iterator[Region | None]:
        wanted = _folded(quote)
        yield from (region for region, text in self._texts if text.holds(wanted))


def _tells(quotes: Sequence[str], forms: Sequence[str], *, stated: bool) -> bool:
    """Say whether quotes may show a fact at all: a reader is not believed for any passage.

    Those for a stated fact must have it in one of its notations, share a telling word with it, or
    be long enough to say it in other words. Those for a derived one need not.
    """
    said = Text("\n".join(quotes))
    quoted = [_words(quote) for quote in quotes]
    of_fact: set[str] = set().union(*(_words(form) for form in forms))
    shared = of_fact & set().union(*quoted)
    if shared - _FILLING or said.has_any(forms):
        return True
    if stated:
        return any(len(words) >= _FEWEST_WORDS for words in quoted)
    return sum(map(str.isalnum, "".join(quotes))) >= _FEWEST_CHARACTERS


def _words(text: str) -> list[str]:
    return [match[1] or match[0] for match in _WORDS.finditer(text.casefold())]


@dataclass(frozen=True)
class _Folded:
    """A text without the blanks and escapes that copying may change, and where they stood."""

    text: str
    gaps: Mapping[int, bool]
    """By the place in the text that they stood before: whether they may stand inside a word, as a
    line break may."""

    def holds(self, wanted: "_Folded") -> bool:
        """Say whether another text stands in this one, as whole words."""
        at = self.text.find(wanted.text)
        while at >= 0:
            if self._holds_at(wanted, at):
                return True
            at = self.text.find(wanted.text, at + 1)
        return False

    def _holds_at(self, wanted: "_Folded", start: int) -> bool:
        end = start + len(wanted.text)
        if any(place not in self.gaps and self._inside(place) for place in (start, end)):
            return False
        for at in range(start + 1, end):
            here, there = self.gaps.get(at), wanted.gaps.get(at - start)
            one_sided = (here is None) != (there is None)
            if one_sided and not (here or there) and self._inside(at):
                return False
        return True

    def _inside(self, place: int) -> bool:
        """Say whether a place is between two characters of a word."""
        return 0 < place < len(self.text) and all(map(joins, self.text[place - 1 : place + 1]))


def _folded(text: str) -> _Folded:
    parts: list[str] = []
    gaps: dict[int, bool] = {}
    length = end = 0
    for match in _ESCAPES_AND_SPACE.finditer(text):
        parts.append(text[end : match.start()] + (chr(int(match[1], 16)) if match[1] else ""))
        length += len(parts[-1])
        end = match.end()
        if not match[1]:
            loose = match[0].startswith("\\") or len(match[0].splitlines()) > 1 or "\n" in match[0]
            gaps[length] = gaps.get(length, False) or loose
    return _Folded("".join([*parts, text[end:]]), gaps)
