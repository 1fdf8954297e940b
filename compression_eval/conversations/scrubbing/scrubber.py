"""Scrub one conversation, and the bank that belongs to it.

Learn, replace, take away, and again until nothing changes: so scrubbing what was scrubbed changes
nothing, by construction, and what the audit reads afterwards has been read before.
"""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from compression_eval.conversations.scrubbing import orphans
from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.removing import changes
from compression_eval.conversations.scrubbing.report import Report
from compression_eval.conversations.scrubbing.settings import ScrubSettings
from compression_eval.conversations.scrubbing.text_passes import TextPasses
from compression_eval.conversations.scrubbing.walking import rewritten
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.errors import DataError, describe_validation_error, shorten
from compression_eval.fixtures.models import Fixture, Open

_ROUNDS = 8
_MODEL_PASSES = ("paraphrase",)
_Model = TypeVar("_Model", bound=BaseModel)
Json = dict[str, Any]


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
        DataError: A package is missing, a pass needs a model (see `paraphrase_first_message`), or
            what is left is no conversation any more.
    """
    texts = TextPasses(settings, pseudonyms, shared)
    recorded = settings.scrubber
    data = fixture.model_dump(mode="json", exclude_unset=True)
    moved = {index: index for index in range(len(fixture.messages))}
    for _ in range(_ROUNDS):
        start = data
        data = _taken_away(_replaced(data, Fixture, texts), settings, texts)
        data, moved = _without_orphans(data, moved, settings, texts)
        if data == start:
            break
    else:
        raise DataError(f"{shorten(fixture.name)}: scrubbing does not come to rest")
    data = {**data, "source": _source(data.get("source"), recorded, settings)}
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
    for _ in range(_ROUNDS):
        start = data
        data = _replaced(data, ProbeBank, scrubbed.texts)
        if data == start:
            break
    data["fixture"] = scrubbed.fixture.name
    data["probes"] = [_renumbered(probe, scrubbed.moved) for probe in data["probes"]]
    return _validated(ProbeBank, data, bank.fixture)


def _replaced(data: Json, model: type[Open], texts: TextPasses) -> Json:
    texts.learn_all(data, model)
    result: Json = rewritten(data, model, lambda text, _: texts.scrub(text))
    return result


def _taken_away(data: Json, settings: ScrubSettings, texts: TextPasses) -> Json:
    """Run the passes that take something out of single messages, recorded states included."""

    def changed(message: Json) -> Json:
        for name, left in changes(settings.passes, message):
            texts.report.note(name, name, message["role"], "", b"")
            message = left
        return message

    result = {**data, "messages": [changed(message) for message in data["messages"]]}
    if data.get("recorded_compactions"):
        result["recorded_compactions"] = [
            {
                **item,
                "state": [one if isinstance(one, int) else changed(one) for one in item["state"]],
            }
            if item.get("state") is not None
            else item
            for item in data["recorded_compactions"]
        ]
    return result


def _without_orphans(
    data: Json, moved: dict[int, int], settings: ScrubSettings, texts: TextPasses
) -> tuple[Json, dict[int, int]]:
    gone = orphans.dropped(data["messages"]) if orphans.NAME in settings.passes else set()
    if not gone:
        return data, moved
    if len(gone) == len(data["messages"]):
        raise DataError(f"{shorten(data['name'])}: messages: nothing is left after scrubbing")
    for index in sorted(gone):
        texts.report.note(orphans.NAME, "dropped", data["messages"][index]["role"], "", b"")
    data, step = orphans.without(data, gone)
    return data, {old: step[now] for old, now in moved.items() if now in step}


def _source(source: Json | str | None, scrubber: str, settings: ScrubSettings) -> Json:
    """Record the passes, behind those that ran before; a second scrub adds none twice."""
    source = {"origin": source} if isinstance(source, str) else source or {}
    earlier: list[str] = source.get("scrubbing", [])
    ran = [name for name in settings.passes if name not in _MODEL_PASSES]
    passes = [*earlier, *(name for name in ran if name not in earlier)]
    return {**source, "scrubber": scrubber, "scrubbing": passes}


def _renumbered(probe: Json, moved: dict[int, int]) -> Json:
    result = dict(probe)
    if result.get("cut") is not None:
        result["cut"] = max(1, orphans.moved_count(moved, result["cut"]))
    if result.get("constraint"):
        result["constraint"] = _with_evidence(result["constraint"], moved)
    result["expected_facts"] = [_with_evidence(fact, moved) for fact in probe["expected_facts"]]
    return result


def _with_evidence(part: Json, moved: dict[int, int]) -> Json:
    if not part.get("evidence"):
        return part
    return {**part, "evidence": [moved[index] for index in part["evidence"] if index in moved]}


def _validated(model: type[_Model], data: Json, name: str) -> _Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise DataError(describe_validation_error(shorten(name), error)) from error
