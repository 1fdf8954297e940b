"""Output of OpenHands of version 0: a run per line, or the events of one run."""

from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.openhands_actions import is_event
from compression_eval.conversations.readers.openhands_run import Run, history_of, holds_events
from compression_eval.conversations.readers.records import Place, threads
from compression_eval.conversations.sources import SourceFile


def _place(value: Any, run: Run | None) -> Place:
    if history_of(value) is not None or (isinstance(value, list) and holds_events(value)):
        return "opens"
    if is_event(value):
        return "opens" if run is None else "belongs"
    return "foreign"


def _recognise(source: SourceFile) -> str | None:
    for value in source.head or [source.document]:
        if history_of(value) is not None:
            return "objects whose history is a list of events with an action or an observation"
        if isinstance(value, list) and holds_events(value):
            return "a list of events with an action or an observation"
        if is_event(value):
            return "events with an action or an observation"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    return threads(
        source,
        expected="runs with a history of actions and observations, or such events",
        place=_place,
        new=Run,
    )


FORMAT = Format(
    name="openhands-output",
    title="OpenHands runs and event lists (V0)",
    recognise=_recognise,
    read=_read,
)
