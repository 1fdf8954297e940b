"""Logs of Inspect, `.eval` and `.json`: one conversation for each sample and epoch.

Inspect's own readers do the reading. What an agent compacted is put together again from what its
model was given; sub-agents are conversations of their own.
"""

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from compression_eval.conversations.compressed import check_archive
from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.fields import label, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.values import NO_SYSTEM_PROMPT, NO_TOOLS, origin
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.errors import DataError

if TYPE_CHECKING:
    from inspect_ai.event import Event
    from inspect_ai.log import EvalLog, EvalSample

_OUTSIDE = {
    "model": "a model call outside the conversation, as of a scorer or of what summarises",
    "tool": "a tool call outside the conversation",
    "compaction": "a compaction outside the conversation",
}


def recognise(source: SourceFile) -> str | None:
    """Return what marks the format."""
    if source.magic.startswith(b"PK"):
        return "a zip archive with the header of an Inspect log" if _is_archive(source) else None
    head = source.head[0] if source.head else source.document
    if text_of(head, "status") and text_of(mapping_of(head, "eval"), "task"):
        return "a JSON object with status and eval.task"
    return None


def read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the conversations of a log, sample by sample.

    Raises:
        DataError: It is no log, or cannot be read.
    """
    finished: Conversation | None = None
    unread: list[tuple[str, str]] = []
    for number, item in enumerate(_samples(source)):
        if isinstance(item, _Unread):
            unread.append((f"sample {number}", item.reason))
            continue
        for conversation in _conversations(item):
            if finished is not None:
                yield finished
            finished = conversation
    if finished is None:
        why = f": {unread[0][1]}" if unread else ""
        raise DataError(f"{source.path}: there is no sample that can be read{why}")
    for place, reason in unread:
        finished.ledger.enter(place, "unreadable").skip(reason)
    yield finished


@dataclass(frozen=True)
class _Unread:
    """A sample that cannot be read."""

    reason: str


@dataclass(frozen=True)
class _Sample:
    """A sample, and what its log says of it."""

    sample: "EvalSample"
    header: "EvalLog"


def _is_archive(source: SourceFile) -> bool:
    try:
        with zipfile.ZipFile(source.path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False
    return "header.json" in names or any(name.startswith("_journal/") for name in names)


def _samples(source: SourceFile) -> Iterator[_Sample | _Unread]:
    """Yield the samples of a log one by one, so that only one is held."""
    from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

    path = str(source.path.resolve())
    archive = source.magic.startswith(b"PK")
    form: Literal["eval", "json"] = "eval" if archive else "json"
    try:
        if archive:
            check_archive(source.path)
        header = read_eval_log(path, header_only=archive, format=form, resolve_attachments="core")
        summaries = read_eval_log_sample_summaries(path, format=form) if archive else []
    except DataError:
        raise
    except Exception as error:
        # What Inspect raises here is of many kinds, and may repeat content.
        kind = type(error).__name__
        raise DataError(f"{source.path}: cannot be read as a log of Inspect ({kind})") from error
    whole = header.samples or []
    header.samples = None
    while whole:
        yield _Sample(whole.pop(0), header)
    for summary in summaries:
        try:
            sample = read_eval_log_sample(
                path,
                summary.id,
                summary.epoch,
                resolve_attachments="core",
                format=form,
                exclude_fields={"store", "metadata", "scores", "timelines"},
            )
        except Exception as error:
            yield _Unread(f"Inspect cannot read the sample ({type(error).__name__})")
        else:
            yield _Sample(sample, header)


def _conversations(item: _Sample) -> Iterator[Conversation]:
    from compression_eval.conversations.readers.inspect_history import History
    from compression_eval.conversations.readers.inspect_threads import threads_of

    sample = item.sample
    threads = threads_of(sample)
    owners = {call.index: number for number, one in enumerate(threads) for call in one.calls}
    for number, one in enumerate(threads):
        owners.update((index, number) for index, _, _ in one.compactions)
    by_call: dict[str, int] = {}
    for number, one in enumerate(threads):
        made = [*one.messages, *(call.answer for call in one.calls)]
        for message in made:
            for call in (message.tool_calls or []) if message.role == "assistant" else []:
                by_call.setdefault(call.id, number)
    tools = [(index, event) for index, event in enumerate(sample.events) if event.event == "tool"]
    owners.update((index, by_call[event.id]) for index, event in tools if event.id in by_call)
    for number, one in enumerate(threads):
        conversation = _empty(item, number)
        lines = _entered(sample.events, owners, number, conversation.ledger)
        history = History(conversation, one, lines)
        history.fill()
        history.add_results(
            [(index, event) for index, event in tools if owners.get(index) == number]
        )
        if one.calls:
            conversation.model = one.calls[-1].event.model
        _add_caveats(conversation, sample)
        yield conversation


def _entered(
    events: list["Event"], owners: dict[int, int], number: int, ledger: Ledger
) -> list[Line]:
    """Enter the events of one conversation; the main one also has what belongs to none.

    Returns:
        A line for every event of the sample; those of other conversations are in no account.
    """
    lines: list[Line] = []
    for index, event in enumerate(events):
        place, kind = f"event {index}", f"event:{label(event.event)}"
        owner = owners.get(index, 0)
        line = ledger.enter(place, kind) if owner == number else Line(place, kind)
        if index not in owners:
            line.skip(_OUTSIDE.get(event.event, "no message of the conversation"))
        lines.append(line)
    return lines


def _empty(item: _Sample, number: int) -> Conversation:
    header, sample = item.header, item.sample
    packages = header.eval.packages
    part = f"epoch-{sample.epoch}" + (f"-agent-{number}" if number else "")
    conversation = Conversation(
        format=FORMAT.name,
        origin=origin("Inspect", str(packages.get("inspect_ai", "")), "log"),
        session=sample.uuid or f"{header.eval.eval_id}/{sample.id}",
        ledger=Ledger(),
        part=part,
        model=header.eval.model,
    )
    if number:
        conversation.caveats.append("a sub-agent of the sample's agent")
    return conversation


def _add_caveats(conversation: Conversation, sample: "EvalSample") -> None:
    if not any(draft.role == "system" for draft in conversation.drafts):
        conversation.caveats.append(NO_SYSTEM_PROMPT)
    if not conversation.tools:
        conversation.caveats.append(NO_TOOLS)
    if sample.error is not None:
        conversation.caveats.append("the sample ended with an error")
    if sample.limit is not None:
        conversation.caveats.append(f"the sample was ended by a limit ({label(sample.limit.type)})")


FORMAT = Format(
    name="inspect",
    title="Inspect logs (.eval, .json)",
    recognise=recognise,
    read=read,
)
