"""Logs of Inspect, `.eval` and `.json`: one conversation for each sample and epoch.

Inspect's own readers do the reading. What an agent compacted is put together again from what its
model was given (`inspect_history`); sub-agents are conversations of their own.
"""

import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from compression_eval.conversations.drafts import Conversation, Line
from compression_eval.conversations.fields import label, origin
from compression_eval.conversations.readers.base import Format, head_of, with_asides
from compression_eval.conversations.readers.inspect_history import History, threads_of
from compression_eval.conversations.sources import SourceFile, Value, check_archive
from compression_eval.errors import DataError

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

_OUTSIDE = {
    "model": "a model call outside the conversation, as of a scorer or of what summarises",
    "tool": "a tool call outside the conversation",
    "compaction": "a compaction outside the conversation",
}


def _recognise(source: SourceFile) -> str | None:
    if source.magic.startswith(b"PK"):
        try:
            with zipfile.ZipFile(source.path) as archive:
                names = archive.namelist()
        except (zipfile.BadZipFile, OSError, ValueError):
            return None
        own = "header.json" in names or any(name.startswith("_journal/") for name in names)
        return "a zip archive with the header of an Inspect log" if own else None
    head = head_of(source)[0]
    if head.text("status") and head.text("eval", "task"):
        return "a JSON object with status and eval.task"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the conversations of a log; samples that cannot be read are named in the last one."""
    nothing = f"{source.path}: there is no sample that can be read"
    return with_asides(_items(source), "sample", nothing)


def _items(source: SourceFile) -> Iterator[Conversation | Value]:
    for number, (header, sample) in enumerate(_samples(source)):
        if isinstance(sample, str):
            yield Value(f"sample {number}", problem=sample)
        else:
            yield from _conversations(header, sample)


def _samples(source: SourceFile) -> Iterator[tuple["EvalLog", "EvalSample | str"]]:
    """Yield the samples of a log one by one, or why one cannot be read; only one is held."""
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
        yield header, whole.pop(0)
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
            yield header, f"Inspect cannot read the sample ({type(error).__name__})"
        else:
            yield header, sample


def _conversations(header: "EvalLog", sample: "EvalSample") -> Iterator[Conversation]:
    threads = threads_of(sample)
    owners = {call.index: number for number, one in enumerate(threads) for call in one.calls}
    by_call: dict[str, int] = {}
    for number, one in enumerate(threads):
        owners.update((index, number) for index, _, _ in one.compactions)
        for message in [*one.messages, *(call.answer for call in one.calls)]:
            for made in (message.tool_calls or []) if message.role == "assistant" else []:
                by_call.setdefault(made.id, number)
    tools = [(index, event) for index, event in enumerate(sample.events) if event.event == "tool"]
    owners.update((index, by_call[event.id]) for index, event in tools if event.id in by_call)
    for number, one in enumerate(threads):
        conversation = Conversation(
            FORMAT.name,
            origin("Inspect", str(header.eval.packages.get("inspect_ai", "")), "log"),
            sample.uuid or f"{header.eval.eval_id}/{sample.id}",
            part=f"epoch-{sample.epoch}" + (f"-agent-{number}" if number else ""),
            model=one.calls[-1].event.model if one.calls else header.eval.model,
        )
        if number:
            conversation.caveat("a sub-agent of the sample's agent")
        lines: list[Line] = []
        """One for each event; those of other conversations are in no account of this one."""
        for index, event in enumerate(sample.events):
            line = Line(f"event {index}", f"event:{label(event.event)}")
            if owners.get(index, 0) == number:
                conversation.lines.append(line)
            if index not in owners:
                line.skip(_OUTSIDE.get(event.event, "no message of the conversation"))
            lines.append(line)
        history = History(conversation, one, lines)
        history.fill()
        history.add_results([item for item in tools if owners.get(item[0]) == number])
        conversation.name_missing()
        if sample.error is not None:
            conversation.caveat("the sample ended with an error")
        if sample.limit is not None:
            conversation.caveat(f"the sample was ended by a limit ({label(sample.limit.type)})")
        yield conversation


FORMAT = Format("inspect", _recognise, _read)
