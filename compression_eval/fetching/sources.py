"""What can be fetched again: the messages before a cut, and the files as they was there.

Both are made of what lies before the cut and nothing else. Files are a mapping from path to text: a
path from a model is only looked up in it, so none of its forms can reach the file system.
"""

import logging
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import anyio
from inspect_ai.model import ChatMessage

from compression_eval.compressors.running import CompressionPlan
from compression_eval.errors import DataError
from compression_eval.file_ops.calls import calls_of_messages
from compression_eval.file_ops.ledger import inventory_of
from compression_eval.file_ops.tools import read_calls
from compression_eval.file_ops.views import file_views
from compression_eval.fixtures.conversation import message_text
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.recording import WORKSPACE, Workspace, recording_of, workspace_at
from compression_eval.text.ranking import Bm25, terms

logger = logging.getLogger(__name__)

PASSAGE = 600
"""Characters of a passage that a search can find."""

MAX_FILE_BYTES = 1_000_000

MAX_SOURCES = 64
"""Conversations, each at one cut, whose messages and files stay in memory."""

_GONE = ("deleted", "temporary", "former")
_LENGTH_WEIGHT = 0.6
"""How much a short passage is preferred to a long one (b of BM25)."""


@dataclass(frozen=True)
class Passage:
    """A part of one message."""

    number: int
    """Of the message, from 0."""
    offset: int
    """Its first character in the message's text."""
    text: str


@dataclass(frozen=True)
class CodeBase:
    """The files of a project at a cut."""

    texts: dict[str, str]
    """By path within the project."""
    uncertain: frozenset[str] = frozenset()
    """Files whose text is a part of the file, or was changed later in a way that is not shown."""
    unseen: tuple[str, ...] = ()
    """Files that are known to exist, but not their text."""
    root: str = WORKSPACE
    """The folder that the conversation gives as the project's."""


class Sources:
    """What the tools give out for one conversation and cut."""

    def __init__(self, fixture: Fixture, history: Sequence[ChatMessage]) -> None:
        """Take over what lies before the cut.

        Args:
            fixture: The conversation; the files of its recording are rebuilt when they are needed.
            history: Its messages before the cut.
        """
        self.messages = [(message.role, message_text(message)) for message in history]
        self._fixture = fixture
        self._recorded = recording_of(fixture) is not None
        self._rebuilding = anyio.Lock()
        self._rebuilt: CodeBase | None = None
        reading = read_calls(calls_of_messages(history))
        states = inventory_of(reading.events).states
        self.touched = frozenset(path for path, state in states.items() if not state.folder)
        """Every file that the history read, wrote, moved or deleted."""
        gone = {path for path in self.touched if states[path].status in _GONE}

        def place(path: str) -> str:
            path = posixpath.normpath(path)
            return path.removeprefix(f"{reading.root}/") if reading.root else path

        views = {place(view.path): view for view in reversed(file_views(history))}
        self._seen = CodeBase(
            {path: view.text for path, view in views.items() if path not in gone},
            frozenset(path for path, view in views.items() if not view.exact or view.changed),
            tuple(sorted(self.touched - gone - views.keys())),
            reading.root,
        )

    @property
    def has_files(self) -> bool:
        """Whether any file can be read."""
        return self._recorded or bool(self._seen.texts)

    @cached_property
    def _indexed(self) -> tuple[list[Passage], Bm25]:
        passages = [
            Passage(number, offset, text)
            for number, (_, whole) in enumerate(self.messages)
            for offset, text in _parts(whole)
        ]
        return passages, Bm25([passage.text for passage in passages], b=_LENGTH_WEIGHT)

    def search(self, query: str, limit: int) -> list[Passage]:
        """Return the passages that share most with a query, the best first.

        Args:
            query: Any words.
            limit: At most so many.
        """
        passages, index = self._indexed
        scores = index.scores(terms(query))
        ranked = sorted(range(len(passages)), key=lambda at: -scores[at])[:limit]
        return [passages[at] for at in ranked if scores[at] > 0]

    async def code_base(self) -> CodeBase:
        """Return the files at the cut, rebuilt once where there is a recording.

        Of other conversations they are what the agent saw or wrote.
        """
        if not self._recorded:
            return self._seen
        async with self._rebuilding:
            if self._rebuilt is None:
                self._rebuilt = await anyio.to_thread.run_sync(self._rebuild)
        return self._rebuilt

    def _rebuild(self) -> CodeBase:
        try:
            with workspace_at(self._fixture, len(self.messages)) as workspace:
                return CodeBase(dict(_files(workspace)))
        except (DataError, OSError) as error:
            logger.warning("files are those that the conversation shows: %s", error)
            return self._seen


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, passage) of a text, cut after a line or else a space where there is one."""
    start = 0
    while start < len(text):
        end = start + PASSAGE
        if end < len(text):
            least = start + PASSAGE // 2
            end = next((at + 1 for mark in "\n " if (at := text.rfind(mark, least, end)) >= 0), end)
        yield start, text[start:end]
        start = end


def _files(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Yield path and text of each file; links, other data and what git keeps are left out."""
    project = workspace.project.resolve()
    for place in sorted(project.rglob("*")):
        path = place.relative_to(project)
        if ".git" in path.parts or place.resolve() != place or not place.is_file():
            continue
        if place.stat().st_size <= MAX_FILE_BYTES:
            try:
                yield path.as_posix(), place.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


class SharedSources:
    """The sources of a run's last conversations, each made once for all samples."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, int], Sources] = {}
        self._making = anyio.Lock()

    async def get(self, plan: CompressionPlan) -> Sources:
        """Return what lies before a plan's last cut."""
        key = (plan.fixture.name, plan.cut)
        async with self._making:
            sources = self._made.pop(key, None)
            if sources is None:
                fixture = plan.loaded()
                history = await plan.history(fixture)
                sources = await anyio.to_thread.run_sync(Sources, fixture, history)
            self._made[key] = sources  # the last used one comes last
            while len(self._made) > MAX_SOURCES:
                del self._made[next(iter(self._made))]
        return sources
