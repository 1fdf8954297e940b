"""The index of files and failed commands that `artifacts.ArtifactIndexCompaction` keeps."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser
from pydantic import BaseModel, ConfigDict, Field

from compression_eval.compressors.prompts import prompt
from compression_eval.fixtures.artifacts.calls import calls_of_messages
from compression_eval.fixtures.artifacts.events import Reading
from compression_eval.fixtures.artifacts.inventory import FileState, Inventory, Status
from compression_eval.fixtures.artifacts.reading import read_calls
from compression_eval.fixtures.models import Language

_SHOWN: tuple[Status, ...] = ("created", "modified", "renamed", "deleted", "temporary", "read")
_MOST_NAMES = 4
_MOST_PROGRAMS = 4
_MOST_FAILED = 8
_LABELS: dict[Language, str] = {
    "en": "artifact_index",
    "zh": "artifact_index_zh",
    "ja": "artifact_index_ja",
}
_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u4e00-\u9fff]")
_WIDE_SHARE = 0.15
_MOST_KEPT = 2_000
"""Files kept in the metadata; the oldest that were only read are forgotten beyond that."""


class FailedEntry(BaseModel):
    """A command that failed."""

    model_config = ConfigDict(extra="forbid")

    command: str
    exit_code: int | None = None
    step: int


class ArtifactIndex(BaseModel):
    """What is known of files and failed commands, over all cycles so far."""

    model_config = ConfigDict(extra="forbid")

    files: list[FileState] = Field(default_factory=list)
    failed: list[FailedEntry] = Field(default_factory=list)
    programs: dict[str, int] = Field(default_factory=dict)
    """Programs with unknown effects on files, and how often they ran."""
    open: dict[str, int] = Field(default_factory=dict)
    """Other things that the calls do not tell, by kind."""
    root: str = ""
    language: Language = "en"
    """Language of the headings: the one that the user writes."""
    step: int = 0
    """Number of messages that were read."""
    seen: list[str] = Field(default_factory=list)
    """Digests of the calls that are already in here: an agent may show its history again."""

    def merged(self, messages: Sequence[ChatMessage]) -> "ArtifactIndex":
        """Return this index with the tool calls of a conversation brought in, each only once."""
        seen = set(self.seen)
        fresh = {
            key: call
            for call, key in zip(calls_of_messages(messages), _call_keys(messages), strict=True)
            if key not in seen and call.result is not None
        }
        known = [state.path for state in self.files if _exists(state)]
        reading = read_calls(list(fresh.values()), root=self.root, existing=known)
        inventory = Inventory(state for state in self.model_copy(deep=True).files)
        for event in reading.events:
            inventory.add(event, self.step + 1 + event.message)
        return ArtifactIndex(
            files=_bounded(list(inventory.states.values())),
            failed=_failed(self, reading),
            programs=_counted(self.programs, reading, programs=True),
            open=_counted(self.open, reading, programs=False),
            root=self.root or reading.root,
            language=_language(messages) if not self.step else self.language,
            step=self.step + len(messages),
            seen=[*self.seen, *fresh],
        )

    def render(self, budget: int, count: Callable[[str], int]) -> str:
        """Return the index as the agent reads it.

        What does not fit goes by a fixed rule, and the text says so: the names that a file
        defines, then files only read, then failed commands, then files of the other kinds from
        the least telling on; within each, the oldest first.

        Args:
            budget: Most tokens; a heading alone may stand above a very small one.
            count: Counts the tokens of a text.
        """
        page = _Page(self)
        text = page.text()
        while count(text) > budget and page.shrink(count(text) - budget, count):
            text = page.text()
        return text


class _Page:
    """The lines to show, and what has been left out of them."""

    def __init__(self, index: ArtifactIndex) -> None:
        shown = [state for state in index.files if not state.folder]
        self._states: dict[Status, list[FileState]] = {
            status: sorted(
                (state for state in shown if state.status == status), key=lambda state: state.last
            )
            for status in _SHOWN
        }
        self._failed = index.failed[-_MOST_FAILED:]
        self._index = index
        self._names = True
        self._out: Counter[str] = Counter()

    def text(self) -> str:
        """Return the page."""
        labels = _labels(self._index.language)
        lines = [labels["title"], labels["note"]]
        for status, states in self._states.items():
            if states:
                lines.append(f"### {labels[status]}")
                lines.extend(f"- {self._entry(state)}" for state in states)
        if self._failed:
            lines.append(f"### {labels['failed']}")
            lines.extend(f"- {_failure(entry)}" for entry in self._failed)
        lines.extend(self._unknown())
        if self._out:
            counts = ", ".join(f"{n} {labels[kind].lower()}" for kind, n in self._out.items())
            lines.append(f"({labels['left_out']}: {counts}; {labels['rule']}.)")
        return "\n".join(lines)

    def shrink(self, excess: int, count: Callable[[str], int]) -> bool:
        """Leave out what the rule names next; return False if nothing is left to leave out.

        Args:
            excess: Tokens to save; as many entries of one kind go as that takes.
            count: Counts the tokens of a text.
        """
        if self._names and any(state.names for states in self._states.values() for state in states):
            self._names = False
            return True
        for kind in ("read", "failed", "temporary", "renamed", "deleted", "modified", "created"):
            lines = self._lines(kind)
            gone = 0
            while gone < len(lines) and excess > 0:
                excess -= count(lines[gone]) + 1
                gone += 1
            if gone:
                self._drop(kind, gone)
                return True
        return False

    def _lines(self, kind: str) -> list[str]:
        if kind == "failed":
            return [_failure(entry) for entry in self._failed]
        return [self._entry(state) for state in self._states[_status(kind)]]

    def _drop(self, kind: str, gone: int) -> None:
        self._out[kind] += gone
        if kind == "failed":
            self._failed = self._failed[gone:]
        else:
            self._states[_status(kind)] = self._states[_status(kind)][gone:]

    def _entry(self, state: FileState) -> str:
        text = state.path
        if state.original and state.status in ("created", "modified", "renamed"):
            text = f"{state.path} (was {state.original})"
        names = state.names[:_MOST_NAMES] if state.status in ("created", "modified") else ()
        return f"{text}: {', '.join(names)}" if names and self._names else text

    def _unknown(self) -> list[str]:
        labels = _labels(self._index.language)
        parts = [f"{labels[f'open_{kind}']} ({n})" for kind, n in self._index.open.items()]
        if programs := Counter(self._index.programs).most_common(_MOST_PROGRAMS):
            named = ", ".join(f"`{name}`" for name, _ in programs)
            more = len(self._index.programs) - len(programs)
            parts.append(f"{labels['programs']}: {named}" + (f" and {more} more" if more else ""))
        return [f"### {labels['open']}", "; ".join(parts)] if parts else []


def _status(kind: str) -> Status:
    return next(status for status in _SHOWN if status == kind)


def _failure(entry: FailedEntry) -> str:
    return entry.command if entry.exit_code is None else f"{entry.command} (exit {entry.exit_code})"


@cache
def _labels(language: Language) -> dict[str, str]:
    lines = prompt(_LABELS[language]).splitlines()
    return {key: text.strip() for key, _, text in (line.partition(":") for line in lines)}


def _call_keys(messages: Iterable[ChatMessage]) -> list[str]:
    return [
        _digest(json.dumps([call.id, call.function, call.arguments], default=str))
        for message in messages
        if isinstance(message, ChatMessageAssistant)
        for call in message.tool_calls or []
    ]


def _language(messages: Sequence[ChatMessage]) -> Language:
    """Return which language the user writes, by the scripts of their messages."""
    said = "".join(m.text for m in messages if isinstance(m, ChatMessageUser))
    kana = len(_KANA.findall(said))
    han = len(_HAN.findall(said))
    if kana + han < _WIDE_SHARE * len(said) or not said:
        return "en"
    return "ja" if kana >= han / 4 else "zh"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:10]


def _exists(state: FileState) -> bool:
    return not state.folder and state.status in ("created", "modified", "renamed", "read")


def _failed(index: ArtifactIndex, reading: Reading) -> list[FailedEntry]:
    """Return the latest failures, each command once."""
    found = {entry.command: entry for entry in index.failed}
    for failure in reading.failed:
        found.pop(failure.command, None)
        found[failure.command] = FailedEntry(
            command=failure.command,
            exit_code=failure.exit_code,
            step=index.step + 1 + failure.message,
        )
    return list(found.values())[-4 * _MOST_FAILED :]


def _counted(known: dict[str, int], reading: Reading, *, programs: bool) -> dict[str, int]:
    counts = Counter(known)
    for item in reading.unclassified:
        if (item.kind == "program") == programs:
            counts[item.what if programs else item.kind] += 1
    return dict(counts.most_common(40))


def _bounded(states: list[FileState]) -> list[FileState]:
    if len(states) <= _MOST_KEPT:
        return states
    read = sorted((s for s in states if s.status == "read"), key=lambda state: state.last)
    gone = {state.path for state in read[: len(states) - _MOST_KEPT]}
    return [state for state in states if state.path not in gone]
