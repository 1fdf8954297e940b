"""Scrub one conversation and the bank that belongs to it, and look at the result once more.

Learn, replace, take away, and again until nothing changes: so scrubbing what was scrubbed changes
nothing, by construction, and what the audit reads afterwards has been read before.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.texts import (
    ORPHANS,
    PARAPHRASE,
    Report,
    ScrubSettings,
    TextPasses,
    rewritten,
    shape,
)
from compression_eval.errors import (
    DataError,
    NotScrubbedError,
    describe_validation_error,
    shorten,
)
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.models import Fixture, Open
from compression_eval.text.thinking import split_thinking

if TYPE_CHECKING:
    from inspect_ai.model import Model

Json = dict[str, Any]

MAX_OUTPUT_CHARACTERS = 2000
"""A tool output is cut to this many characters, the note about it included."""

_IMAGE_NOTE = "[image removed]"
_TRUNCATION_NOTE = "\n[{left_out} of {total} characters left out]"

_MAX_ROUNDS = 8
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class Scrubbed:
    """A scrubbed conversation, and what is needed to scrub what belongs to it."""

    fixture: Fixture
    report: Report
    moved: dict[int, int]
    """Old index of each message that is left -> its new one."""
    settings: ScrubSettings
    original_name: str = field(repr=False)
    texts: TextPasses = field(repr=False)
    """Holds the values that were replaced: never written, never shown."""

    def scrub_text(self, text: str) -> str:
        """Return a text that belongs to the conversation with the same values replaced."""
        self.texts.learn(text)
        return self.texts.scrub(text)


@dataclass(frozen=True)
class AuditFinding:
    """Something that a pass would still change."""

    where: str
    """The field, as ``messages[3].content``."""
    passage: str
    """Name of the pass."""
    rule: str
    looks: str = ""
    """What the value looks like, masked; empty where no value is meant."""

    def __str__(self) -> str:
        looks = f" ({self.looks})" if self.looks else ""
        return f"{self.where}: {self.passage}: {self.rule}{looks}"


def scrub(
    fixture: Fixture,
    settings: ScrubSettings,
    pseudonyms: Pseudonyms,
    shared: TextPasses | None = None,
) -> Scrubbed:
    """Scrub one conversation. The same input gives the same bytes, whatever was scrubbed before.

    Args:
        fixture: The conversation; it may hold what loading would refuse, such as trailing tool
            messages without a call.
        settings: Which passes.
        pseudonyms: Where the stand-ins come from.
        shared: What all conversations of an import taught (`TextPasses.learn_from`): a name that
            one of them gives away is replaced in the others.

    Raises:
        NotScrubbedError: It does not come to rest.
        DataError: A package is missing, a pass needs a model (see `paraphrase_first_message`), or
            what is left is no conversation any more.
    """
    texts = TextPasses(settings, pseudonyms, shared)
    recorded = settings.scrubber
    data = fixture.model_dump(mode="json", exclude_unset=True)
    moved = {index: index for index in range(len(fixture.messages))}
    for _ in range(_MAX_ROUNDS):
        start = data
        data = _taken_away(_replaced(data, Fixture, texts), settings, texts.report)
        gone = orphans(data["messages"]) if ORPHANS in settings.passes else set()
        if gone:
            if len(gone) == len(data["messages"]):
                name = shorten(data["name"])
                raise DataError(f"{name}: messages: nothing is left after scrubbing")
            for index in gone:
                texts.report.note(ORPHANS, "dropped", data["messages"][index]["role"])
            data, step = without_messages(data, gone)
            moved = {old: step[now] for old, now in moved.items() if now in step}
        if data == start:
            break
    else:
        raise NotScrubbedError(f"{shorten(fixture.name)}: scrubbing does not come to rest")
    # The passes are recorded behind those that ran before; a second scrub adds none twice.
    source = data.get("source") or {}
    source = {"origin": source} if isinstance(source, str) else source
    passes = [name for name in settings.passes if name != PARAPHRASE]
    passes = list(dict.fromkeys((*source.get("scrubbing", []), *passes)))
    data = {**data, "source": {**source, "scrubber": recorded, "scrubbing": passes}}
    scrubbed = _validated(Fixture, data, fixture.name)
    return Scrubbed(scrubbed, texts.report, moved, settings, fixture.name, texts)


def scrub_bank(bank: ProbeBank, scrubbed: Scrubbed) -> ProbeBank:
    """Scrub the bank of a conversation with what was learnt from it, and renumber it.

    Raises:
        DataError: The bank belongs to another conversation.
    """
    if bank.fixture != scrubbed.original_name:
        raise DataError(
            f"fixture: the bank belongs to {shorten(bank.fixture)}, "
            f"not to {shorten(scrubbed.original_name)}"
        )
    data = bank.model_dump(mode="json", exclude_unset=True)
    for _ in range(_MAX_ROUNDS):
        start = data
        data = _replaced(data, ProbeBank, scrubbed.texts)
        if data == start:
            break
    data["fixture"] = scrubbed.fixture.name
    for probe in data["probes"]:
        if probe.get("cut") is not None:
            probe["cut"] = max(1, moved_count(scrubbed.moved, probe["cut"]))
        for part in (probe.get("constraint"), *probe.get("expected_facts", [])):
            if part and part.get("evidence"):
                evidence = [scrubbed.moved.get(index) for index in part["evidence"]]
                part["evidence"] = [index for index in evidence if index is not None]
    return _validated(ProbeBank, data, bank.fixture)


async def paraphrase_first_message(
    scrubbed: Scrubbed, pseudonyms: Pseudonyms, model: "str | Model | None" = None
) -> Scrubbed:
    """Return a scrubbed conversation whose first user message a model has put in other words.

    Only on request: it costs a model call, and what a model writes is not the same twice. It reads
    text that has been scrubbed, and what it writes is scrubbed again. One whose first message was
    paraphrased before is returned as it is.

    Args:
        scrubbed: The conversation after all other passes.
        pseudonyms: As in its scrub.
        model: Taken where the role ``compressor`` is not set.

    Raises:
        DataError: There is no model, it fails, or it returns nothing or only a part.
    """
    fixture = scrubbed.fixture
    if fixture.source is not None and PARAPHRASE in fixture.source.scrubbing:
        return scrubbed
    data = fixture.model_dump(mode="json", exclude_unset=True)
    first = next(message for message in fixture.messages if message.role == "user")
    message = data["messages"][fixture.messages.index(first)]
    message["content"] = await _in_other_words(first.text, fixture.name, model)
    data["source"]["scrubbing"].append(PARAPHRASE)
    again = scrub(Fixture.model_validate(data), scrubbed.settings, pseudonyms)
    scrubbed.report.add(again.report)
    scrubbed.report.note(PARAPHRASE, PARAPHRASE, "user")
    return replace(scrubbed, fixture=again.fixture)


def audit(
    target: Fixture | ProbeBank,
    settings: ScrubSettings,
    scrubbed: Scrubbed | None = None,
    shared: TextPasses | None = None,
) -> list[AuditFinding]:
    """Return what in a fixture or a bank the passes would still change; empty if nothing.

    Args:
        target: What is to be written, or was.
        settings: The passes that it must be clean for.
        scrubbed: The scrub that it comes from, if that is at hand: then every value that it
            replaced wherever it stands is looked for too.
        shared: What all conversations of an audit taught, as in `scrub`.

    Raises:
        DataError: A package is missing.
    """
    fresh = TextPasses(settings, Pseudonyms(), scrubbed.texts if scrubbed else shared)
    data = target.model_dump(mode="json", exclude_unset=True)
    fresh.learn_all(data, type(target))
    found: list[AuditFinding] = []

    def look(text: str, where: str) -> str:
        for passage, hit, value in fresh.findings(text):
            found.append(AuditFinding(where, passage, hit.rule, shape(value)))
        return text

    rewritten(data, type(target), look)
    for index, message in enumerate(data.get("messages", ())):
        for passage, _ in changes(settings.passes, message):
            found.append(AuditFinding(f"messages[{index}]", passage, passage))
    if ORPHANS in settings.passes and "messages" in data:
        for index in sorted(orphans(data["messages"])):
            found.append(AuditFinding(f"messages[{index}]", ORPHANS, "dropped"))
    return list(dict.fromkeys(found))


def _replaced(data: Json, model: type[Open], texts: TextPasses) -> Json:
    texts.learn_all(data, model)
    result: Json = rewritten(data, model, lambda text, _: texts.scrub(text))
    return result


def _taken_away(data: Json, settings: ScrubSettings, report: Report) -> Json:
    """Run the passes that take something out of single messages, recorded states included."""

    def changed(message: Json | int) -> Json | int:
        if isinstance(message, int):
            return message
        for name, left in changes(settings.passes, message):
            report.note(name, name, message["role"])
            message = left
        return message

    result = {**data, "messages": [changed(message) for message in data["messages"]]}
    if data.get("recorded_compactions"):
        result["recorded_compactions"] = [
            {**item, "state": [changed(one) for one in item["state"]]}
            if item.get("state")
            else item
            for item in data["recorded_compactions"]
        ]
    return result


async def _in_other_words(text: str, name: str, model: "str | Model | None") -> str:
    from inspect_ai.model import get_model

    from compression_eval.inspect_models import said

    prompt = (files(__package__) / "paraphrase.md").read_text(encoding="utf-8")
    failed = f"{shorten(name)}: the first message is not paraphrased:"
    try:
        output = await get_model(role="compressor", default=model).generate(
            prompt.replace("{message}", text)
        )
    except Exception as error:  # every provider has its own errors
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise DataError(f"{failed} {reason[0]}") from error
    written = said(output).strip()
    problem = output.error or ("" if written else "the model returned nothing")
    if not problem and output.stop_reason != "stop":
        problem = f"it stopped because of {output.stop_reason!r}"
    if problem:
        raise DataError(f"{failed} {problem}")
    return written


def _validated(model: type[_Model], data: Json, name: str) -> _Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise DataError(describe_validation_error(shorten(name), error)) from error


# The passes that take something away: images, reasoning, long outputs, prompts, whole messages.
# Each leaves what it has made as it is, so that a second scrub changes nothing.


def changes(passes: tuple[str, ...], message: Json) -> Iterator[tuple[str, Json]]:
    """Yield each pass that changes a message, with what the message is then."""
    for name, change in PER_MESSAGE.items():
        if name in passes:
            changed = change(message)
            if changed != message:
                message = changed
                yield name, message


def _without_images(message: Json) -> Json:
    """Put a note in the place of every image: nobody can scrub what is in a picture."""
    content = message.get("content")
    if not isinstance(content, list) or all(part["type"] == "text" for part in content):
        return message
    note = {"type": "text", "text": _IMAGE_NOTE}
    return {**message, "content": [part if part["type"] == "text" else note for part in content]}


def _with_generic_prompt(message: Json) -> Json:
    """Replace a system prompt by one that says nothing about who wrote it."""
    return {**message, "content": generic_prompt()} if message["role"] == "system" else message


def _with_texts(message: Json, role: str, change: Callable[[str], str]) -> Json:
    """Change the texts of a message of one role."""
    content = message.get("content")
    if message["role"] != role or not content:
        return message
    if isinstance(content, str):
        return {**message, "content": change(content)}
    parts = [
        {**part, "text": change(part["text"])} if part["type"] == "text" else part
        for part in content
    ]
    return {**message, "content": parts}


PER_MESSAGE: dict[str, Callable[[Json], Json]] = {
    "images": _without_images,
    "reasoning": lambda message: _with_texts(message, "assistant", without_reasoning),
    "system_prompt": _with_generic_prompt,
    "truncation": lambda message: _with_texts(message, "tool", _shortened),
}
"""The passes for single messages by name, in the order they run."""


@cache
def generic_prompt() -> str:
    """Return the system prompt that names nobody and nothing."""
    return (files(__package__) / "generic_system_prompt.md").read_text(encoding="utf-8").strip()


def _shortened(text: str) -> str:
    """Cut a long tool output, and say how much is left out."""
    total = len(text)
    if total <= MAX_OUTPUT_CHARACTERS:
        return text
    room = MAX_OUTPUT_CHARACTERS - len(_TRUNCATION_NOTE.format(left_out=total, total=total))
    return text[:room] + _TRUNCATION_NOTE.format(left_out=total - room, total=total)


def without_reasoning(text: str) -> str:
    """Return an assistant's text without its blocks of reasoning.

    An opening mark without an end, after other text, may be no mark: the text stays whole.
    """
    split = split_thinking(text)
    return text if split.unclosed and split.said else split.said


def orphans(messages: list[Json]) -> set[int]:
    """Return the indices of empty assistant turns, and of trailing results that answer no call."""
    gone = set()
    for index, message in enumerate(messages):
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        empty = all(part["type"] == "text" and not part["text"].strip() for part in parts)
        if message["role"] == "assistant" and not message.get("tool_calls") and empty:
            gone.add(index)
    last = len(messages)
    while last and messages[last - 1]["role"] == "tool":
        last -= 1
    asked = [call["id"] for call in (messages[last - 1].get("tool_calls") or [] if last else [])]
    for index in range(last, len(messages)):
        if messages[index].get("tool_call_id") in asked:
            asked.remove(messages[index]["tool_call_id"])
        else:
            gone.add(index)
    return gone


def without_messages(data: Json, gone: set[int]) -> tuple[Json, dict[int, int]]:
    """Return a fixture without some of its messages, everything that counts them adjusted.

    A cut that has no user message before it any more, or that has come to stand on another, goes.

    Returns:
        The fixture, and the new index of each message that is left by its old one.
    """
    kept = [index for index in range(len(data["messages"])) if index not in gone]
    moved = {old: new for new, old in enumerate(kept)}
    messages = [data["messages"][index] for index in kept]
    data = {**data, "messages": messages}
    if data.get("cuts"):
        cuts = sorted({moved_count(moved, cut) for cut in data["cuts"]})
        first = next((i for i, message in enumerate(messages) if message["role"] == "user"), 0)
        data["cuts"] = [cut for cut in cuts if cut > first]
    compactions = []
    for item in data.get("recorded_compactions") or ():
        left = {**item, "cut": moved_count(moved, item["cut"])}
        if item.get("state") is not None:
            state = (moved.get(one) if isinstance(one, int) else one for one in item["state"])
            left["state"] = [one for one in state if one is not None]
        if left["cut"] > 0:
            compactions.append(left)
    if data.get("recorded_compactions"):
        data["recorded_compactions"] = compactions
    return data, moved


def moved_count(moved: dict[int, int], count: int) -> int:
    """Return how many messages are left of the first ``count``."""
    return sum(old < count for old in moved)
