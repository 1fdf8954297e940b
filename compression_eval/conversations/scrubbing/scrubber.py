"""Scrub one conversation and the bank that belongs to it, and look at the result once more.

Learn, replace, take away, and again until nothing changes: so scrubbing what was scrubbed changes
nothing, by construction, and what the audit reads afterwards has been read before.
"""

from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.removing import (
    ORPHANS,
    Json,
    changes,
    moved_count,
    orphans,
    without_messages,
)
from compression_eval.conversations.scrubbing.settings import PARAPHRASE, ScrubSettings
from compression_eval.conversations.scrubbing.texts import Report, TextPasses, rewritten, shape
from compression_eval.errors import DataError, describe_validation_error, shorten
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.models import Fixture, Open

if TYPE_CHECKING:
    from inspect_ai.model import Model

_MAX_ROUNDS = 8
_Model = TypeVar("_Model", bound=BaseModel)


class NotScrubbedError(DataError):
    """A conversation that cannot be scrubbed: something would be left in it."""


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
