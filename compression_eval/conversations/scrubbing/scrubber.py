"""Scrub one conversation and the bank that belongs to it, and look at the result once more.

A round learns from all texts, replaces what the passes find, and takes away what others take from
single messages. `scrub` repeats rounds until one changes nothing, so scrubbing a scrubbed
conversation changes nothing either. `audit` is one round over a result, with nothing remembered,
and returns what it would have changed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.texts import (
    ORPHANS,
    PARAPHRASE,
    AuditFinding,
    Report,
    ScrubSettings,
    TextPasses,
    rewritten,
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
    """Knows the values that were replaced: never written, never shown."""

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
        fixture: The conversation; it may contain what loading would refuse, such as trailing tool
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
        data, gone = _round(data, Fixture, texts)
        if gone:
            if len(gone) == len(data["messages"]):
                name = shorten(data["name"])
                raise DataError(f"{name}: messages: nothing is left after scrubbing")
            data, step = _without_messages(data, gone)
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
    data, start = bank.model_dump(mode="json", exclude_unset=True), None
    while data != start:
        start = data
        data, _ = _round(data, ProbeBank, scrubbed.texts)
    data["fixture"] = scrubbed.fixture.name
    for probe in data["probes"]:
        if probe.get("cut") is not None:
            probe["cut"] = max(1, _moved_count(scrubbed.moved, probe["cut"]))
        for part in (probe.get("constraint"), *probe.get("expected_facts", [])):
            if part and part.get("evidence"):
                evidence = [scrubbed.moved.get(index) for index in part["evidence"]]
                part["evidence"] = [index for index in evidence if index is not None]
    return _validated(ProbeBank, data, bank.fixture)


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
    _round(target.model_dump(mode="json", exclude_unset=True), type(target), fresh)
    return list(fresh.findings)


def _round(data: Json, model: type[Open], texts: TextPasses) -> tuple[Json, set[int]]:
    """Return a fixture or a bank with everything replaced, and which messages are to go."""
    texts.learn_all(data, model)
    data = rewritten(data, model, texts.scrub)
    if model is not Fixture:
        return data, set()
    passes = texts.settings.passes

    def changed(messages: list[Any], field: str) -> list[Any]:
        result: list[Any] = []
        for message in messages:
            left = message
            for name in _PER_MESSAGE if isinstance(message, dict) else ():
                before = left
                left = _PER_MESSAGE[name](left) if name in passes else left
                if left != before:
                    texts.note(f"{field}[{len(result)}]", name, name, message["role"])
            result.append(left)
        return result

    data["messages"] = changed(data["messages"], "messages")
    for number, item in enumerate(data.get("recorded_compactions") or ()):
        if item.get("state"):
            item["state"] = changed(item["state"], f"recorded_compactions[{number}].state")
    gone = _orphans(data["messages"]) if ORPHANS in passes else set()
    for index in sorted(gone):
        texts.note(f"messages[{index}]", ORPHANS, "dropped", data["messages"][index]["role"])
    return data, gone


def _validated(model: type[_Model], data: Json, name: str) -> _Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise DataError(describe_validation_error(shorten(name), error)) from error


# The passes for single messages. Each leaves what it has made as it is.


def _without_images(message: Json) -> Json:
    """Put a note in the place of every image: nobody can scrub what is in a picture."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    note = {"type": "text", "text": "[image removed]"}
    return {**message, "content": [part if part["type"] == "text" else note for part in content]}


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


def _without_reasoning(text: str) -> str:
    """Return an assistant's text without its blocks of reasoning.

    An opening mark without an end, after other text, may be no mark: the text stays whole.
    """
    split = split_thinking(text)
    return text if split.unclosed and split.said else split.said


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


_PER_MESSAGE: dict[str, Callable[[Json], Json]] = {
    "images": _without_images,
    "reasoning": lambda message: _with_texts(message, "assistant", _without_reasoning),
    "system_prompt": lambda message: (
        {**message, "content": generic_prompt()} if message["role"] == "system" else message
    ),
    "truncation": lambda message: _with_texts(message, "tool", _shortened),
}
"""By name, in the order they run."""


# Messages that go as a whole.


def _orphans(messages: list[Json]) -> set[int]:
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


def _without_messages(data: Json, gone: set[int]) -> tuple[Json, dict[int, int]]:
    """Return a fixture without some of its messages, and the new index of each that is left.

    Everything that counts messages is adjusted. A cut that has no user message before it any
    more, or that equals another one now, goes.
    """
    kept = [index for index in range(len(data["messages"])) if index not in gone]
    moved = {old: new for new, old in enumerate(kept)}
    messages = [data["messages"][index] for index in kept]
    data = {**data, "messages": messages}
    if data.get("cuts"):
        cuts = sorted({_moved_count(moved, cut) for cut in data["cuts"]})
        first = next((i for i, message in enumerate(messages) if message["role"] == "user"), 0)
        data["cuts"] = [cut for cut in cuts if cut > first]
    compactions = []
    for item in data.get("recorded_compactions") or ():
        left = {**item, "cut": _moved_count(moved, item["cut"])}
        if item.get("state") is not None:
            state = (moved.get(one) if isinstance(one, int) else one for one in item["state"])
            left["state"] = [one for one in state if one is not None]
        if left["cut"] > 0:
            compactions.append(left)
    if data.get("recorded_compactions"):
        data["recorded_compactions"] = compactions
    return data, moved


def _moved_count(moved: dict[int, int], count: int) -> int:
    """Return how many messages are left of the first ``count``."""
    return sum(old < count for old in moved)


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
    from inspect_ai.model import get_model

    from compression_eval.inspect_models import said

    fixture = scrubbed.fixture
    if fixture.source is not None and PARAPHRASE in fixture.source.scrubbing:
        return scrubbed
    first = next(message for message in fixture.messages if message.role == "user")
    prompt = (files(__package__) / "paraphrase.md").read_text(encoding="utf-8")
    failed = f"{shorten(fixture.name)}: the first message is not paraphrased:"
    try:
        chosen = get_model(role="compressor", default=model)
        output = await chosen.generate(prompt.replace("{message}", first.text))
    except Exception as error:  # every provider has its own errors
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise DataError(f"{failed} {reason[0]}") from error
    written = said(output).strip()
    problem = output.error or ("" if written else "the model returned nothing")
    if not problem and output.stop_reason != "stop":
        problem = f"it stopped because of {output.stop_reason!r}"
    if problem:
        raise DataError(f"{failed} {problem}")
    data = fixture.model_dump(mode="json", exclude_unset=True)
    data["messages"][fixture.messages.index(first)]["content"] = written
    data["source"]["scrubbing"].append(PARAPHRASE)
    again = scrub(Fixture.model_validate(data), scrubbed.settings, pseudonyms)
    scrubbed.report.add(again.report)
    scrubbed.report.note(PARAPHRASE, PARAPHRASE, "user")
    return replace(scrubbed, fixture=again.fixture)
