"""A wrapper for any strategy that adds an index of the session's files to its summary.

Every published method is weakest at naming the files that were created, modified and read. The tool
calls name them exactly, so code can keep them, without a model and without loss between cycles.
"""

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    CompactionResult,
    CompactionStrategy,
    ContentText,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, create_model

from compression_eval.compressors.budget import groups
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.names import SUFFIX
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.strategy import (
    Arguments,
    Compressor,
    carried,
)
from compression_eval.compressors.tokens import is_opaque, token_counter
from compression_eval.compressors.validity import state_problem
from compression_eval.file_ops.calls import calls_of_messages
from compression_eval.file_ops.ledger import FileState, Inventory, Status
from compression_eval.file_ops.tools import read_calls
from compression_eval.fixtures.conversation import message_text
from compression_eval.fixtures.models import Fixture, Language

_KEY = "compression_eval_artifacts"
_DEFAULT_TOKENS = 800
_TARGET = "target_tokens"
_FRAME = 5
"""Tokens of the index beyond its text: a blank line, or a message of its own."""

_SHOWN: tuple[Status, ...] = ("created", "modified", "renamed", "deleted", "temporary", "read")
_LEFT_OUT_FIRST = ("read", "failed", "temporary", "renamed", "deleted", "modified", "created")
_MAX_NAMES = 4
_MAX_COUNTED = 40
_MAX_PROGRAMS = 4
_MAX_FAILED = 8
_LABELS: dict[Language, str] = {
    "en": "artifact_index",
    "zh": "artifact_index_zh",
    "ja": "artifact_index_ja",
}
_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u4e00-\u9fff]")
_WIDE_SHARE = 0.15


class FailedEntry(BaseModel):
    """A command that failed."""

    model_config = ConfigDict(extra="forbid")

    command: str
    exit_code: int | None = None
    step: int


class ArtifactIndex(BaseModel):
    """The files and failed commands of all cycles so far."""

    model_config = ConfigDict(extra="forbid")

    files: list[FileState] = Field(default_factory=list)
    failed: list[FailedEntry] = Field(default_factory=list)
    programs: dict[str, int] = Field(default_factory=dict)
    """Programs with unknown effects on files, and how often they ran."""
    open: dict[str, int] = Field(default_factory=dict)
    """Other effects that the calls do not show, by kind."""
    root: str = ""
    language: Language = "en"
    """Language of the headings: the one that the user writes."""
    step: int = 0
    """Number of messages that were read."""
    seen: list[str] = Field(default_factory=list)
    """Digests of the calls already included: an agent may show its history again."""

    def merged(self, messages: Sequence[ChatMessage]) -> "ArtifactIndex":
        """Return this index with the tool calls of a conversation added, each only once."""
        seen = set(self.seen)
        fresh = {
            key: call
            for call, key in zip(calls_of_messages(messages), _call_keys(messages), strict=True)
            if key not in seen and call.result is not None
        }
        there = ("created", "modified", "renamed", "read")
        known = [state.path for state in self.files if state.status in there and not state.folder]
        reading = read_calls(list(fresh.values()), root=self.root, existing=known)
        inventory = Inventory(self.model_copy(deep=True).files)
        for event in reading.events:
            inventory.add(event, self.step + 1 + event.message)
        failed = {entry.command: entry for entry in self.failed}
        for failure in reading.failed:
            failed.pop(failure.command, None)  # each once, the latest last
            failed[failure.command] = FailedEntry(
                command=failure.command,
                exit_code=failure.exit_code,
                step=self.step + 1 + failure.message,
            )
        programs = Counter(self.programs)
        programs.update(item.what for item in reading.unclassified if item.kind == "program")
        unknown = Counter(self.open)
        unknown.update(item.kind for item in reading.unclassified if item.kind != "program")
        return ArtifactIndex(
            files=list(inventory.states.values()),
            failed=list(failed.values())[-4 * _MAX_FAILED :],
            programs=dict(programs.most_common(_MAX_COUNTED)),
            open=dict(unknown.most_common(_MAX_COUNTED)),
            root=self.root or reading.root,
            language=_language(messages) if not self.step else self.language,
            step=self.step + len(messages),
            seen=[*self.seen, *fresh],
        )

    def render(self, budget: int, count: Callable[[str], int]) -> str:
        """Return the index as the agent reads it.

        What does not fit is left out by a fixed rule, and the text says so: the names that a file
        defines, then files only read, then failed commands, then files of the other kinds, the
        least informative first; within each, the oldest first.

        Args:
            budget: Maximum tokens; a heading alone may exceed a very small one.
            count: Counts the tokens of a text.
        """
        states = sorted(self.files, key=lambda state: state.last)
        shown: dict[str, list[FileState | FailedEntry]] = {
            status: [state for state in states if state.status == status and not state.folder]
            for status in _SHOWN
        }
        shown["failed"] = [*self.failed[-_MAX_FAILED:]]
        names = any(state.names for state in states if not state.folder)
        left_out: Counter[str] = Counter()
        while True:
            text = self._page(shown, left_out, names)
            excess = count(text) - budget
            kind = next((kind for kind in _LEFT_OUT_FIRST if shown[kind]), None)
            if excess <= 0 or not (names or kind):
                return text
            if names or kind is None:
                names = False
                continue
            sizes = (count(_line(entry, names)) + 1 for entry in shown[kind])
            gone = 1 + sum(saved < excess for saved in itertools.accumulate(sizes))
            left_out[kind] += len(shown[kind][:gone])
            shown[kind] = shown[kind][gone:]

    def _page(
        self, shown: dict[str, list[FileState | FailedEntry]], left_out: Counter[str], names: bool
    ) -> str:
        labels = _labels(self.language)
        lines = [labels["title"], labels["note"]]
        for kind, entries in shown.items():
            if entries:
                lines += [f"### {labels[kind]}", *(f"- {_line(each, names)}" for each in entries)]
        unknown = [f"{labels[f'open_{kind}']} ({n})" for kind, n in self.open.items()]
        if programs := Counter(self.programs).most_common(_MAX_PROGRAMS):
            named = ", ".join(f"`{name}`" for name, _ in programs)
            more = len(self.programs) - len(programs)
            unknown.append(f"{labels['programs']}: {named}" + (f" and {more} more" if more else ""))
        if unknown:
            lines += [f"### {labels['open']}", "; ".join(unknown)]
        if left_out:
            counts = ", ".join(f"{n} {labels[kind].lower()}" for kind, n in left_out.items())
            lines.append(f"({labels['left_out']}: {counts}; {labels['rule']}.)")
        return "\n".join(lines)


def _line(entry: FileState | FailedEntry, names: bool) -> str:
    if isinstance(entry, FailedEntry):
        return entry.command + ("" if entry.exit_code is None else f" (exit {entry.exit_code})")
    text = entry.path
    if entry.original and entry.status in ("created", "modified", "renamed"):
        text = f"{text} (was {entry.original})"
    if names and entry.names and entry.status in ("created", "modified"):
        text = f"{text}: {', '.join(entry.names[:_MAX_NAMES])}"
    return text


@cache
def _labels(language: Language) -> dict[str, str]:
    lines = prompt(_LABELS[language]).splitlines()
    return {key: text.strip() for key, _, text in (line.partition(":") for line in lines)}


def _call_keys(messages: Iterable[ChatMessage]) -> list[str]:
    """Return a digest of each call, in their order."""
    texts = [
        json.dumps([call.id, call.function, call.arguments], default=str)
        for message in messages
        if isinstance(message, ChatMessageAssistant)
        for call in message.tool_calls or []
    ]
    return [hashlib.sha256(text.encode(errors="replace")).hexdigest()[:10] for text in texts]


def _language(messages: Sequence[ChatMessage]) -> Language:
    """Return the user's language, by the scripts of their messages."""
    text = "".join(m.text for m in messages if isinstance(m, ChatMessageUser))
    kana = len(_KANA.findall(text))
    han = len(_HAN.findall(text))
    if kana + han < _WIDE_SHARE * len(text) or not text:
        return "en"
    return "ja" if kana >= han / 4 else "zh"


class ArtifactIndexCompaction(CompactionStrategy):
    """Run another strategy, then add the index to its result.

    The index is read from every tool call that the strategy was given, merged with that of the
    previous compression, and kept in the metadata of the message that shows it. The inner strategy
    never sees it: the index of an earlier compression is removed first.

    Args:
        inner: The strategy that compresses.
        index_tokens: Budget of the index in tokens.
        always: Whether to add the index even if the inner strategy changed nothing or left nothing
            but the system prompt, as controls may.
        leaving_room: Builds the inner strategy with a target smaller by so many tokens; set if the
            whole state has a target.
    """

    def __init__(
        self,
        inner: CompactionStrategy,
        *,
        index_tokens: int = _DEFAULT_TOKENS,
        always: bool = False,
        leaving_room: Callable[[int], CompactionStrategy] | None = None,
    ) -> None:
        super().__init__(type=inner.type, threshold=inner.threshold, memory=inner.memory)
        self.inner = inner
        self.index_tokens = index_tokens
        self.always = always
        self.leaving_room = leaving_room

    @property
    def preserve_prefix(self) -> bool:
        """The inner strategy's own value."""
        return self.inner.preserve_prefix

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation; see ``compact_outcome``."""
        result = await self.compact_outcome(model, messages, tools)
        return result.input, result.message

    async def compact_outcome(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> CompactionResult:
        """Compress a conversation with the inner strategy and add the index.

        Returns:
            The inner result with the index in its summary message, or in a message of its own
            after the rewritten ones. A result that is unchanged, empty or malformed is returned
            unchanged, so that the validity gate still sees it.
        """
        plain = [message for message in map(_without_index, messages) if message is not None]
        earlier, _ = carried(messages, _KEY)
        index = ArtifactIndex.model_validate(earlier["index"] if earlier else {}).merged(plain)
        count = token_counter().count
        text = index.render(self.index_tokens, count)
        inner = self.leaving_room(count(text) + _FRAME) if self.leaving_room else self.inner
        result = await inner.compact_outcome(model, list(plain), tools)
        if not self.always and state_problem(plain, result.input):
            return result
        return _with_index(plain, result, index, text)


def _without_index(message: ChatMessage) -> ChatMessage | None:
    """Return a message without its index; None if it consists of the index alone."""
    kept = (message.metadata or {}).get(_KEY)
    if kept is None or not isinstance(message, ChatMessageUser):
        return message
    if kept["alone"]:
        return None
    content = message.content
    plain: Any = content[:-1]
    if isinstance(content, str):
        plain = content.removesuffix(f"\n\n{kept['text']}")
    metadata = {key: value for key, value in (message.metadata or {}).items() if key != _KEY}
    return message.model_copy(update={"content": plain, "metadata": metadata or None})


def _with_index(
    before: list[ChatMessage], result: CompactionResult, index: ArtifactIndex, text: str
) -> CompactionResult:
    kept = {"index": index.model_dump(mode="json"), "text": text}
    messages = list(result.input)
    texts = {message.id: message_text(message) for message in before}
    rewritten = [
        position
        for position, message in enumerate(messages)
        if message.role != "system" and texts.get(message.id) != message_text(message)
    ]
    summaries = [
        at for at in rewritten if messages[at].role == "user" and messages[at].id not in texts
    ]
    if not summaries or _is_vendors(messages[summaries[-1]]):
        alone = ChatMessageUser(content=text, metadata={_KEY: {**kept, "alone": True}})
        messages.insert(_place(before, messages, rewritten), alone)
        return result._replace(input=messages, message=result.message or alone)
    old = messages[summaries[-1]]
    content: Any = old.content
    content = content + (f"\n\n{text}" if isinstance(content, str) else [ContentText(text=text)])
    metadata = {**(old.metadata or {}), _KEY: {**kept, "alone": False}}
    new = old.model_copy(update={"content": content, "metadata": metadata})
    messages[summaries[-1]] = new
    # The message for the agent's history must be the one in the state.
    same = result.message is not None and result.message.id == old.id
    message = new if same and isinstance(new, ChatMessageUser) else result.message
    return result._replace(input=messages, message=message)


def _is_vendors(message: ChatMessage) -> bool:
    """Return whether a message represents a vendor's item, which must be sent back unchanged."""
    parts = [] if isinstance(message.content, str) else message.content
    return is_opaque(message) or not all(isinstance(part, ContentText) for part in parts)


def _place(before: list[ChatMessage], after: list[ChatMessage], rewritten: list[int]) -> int:
    """Return the position of the index message: after the rewritten ones, else after the head.

    It never separates a call from its result.
    """
    pairs = zip(before, after, strict=False)
    head = sum(1 for _ in itertools.takewhile(lambda pair: pair[0].id == pair[1].id, pairs))
    least = rewritten[-1] + 1 if rewritten else head
    ends = itertools.accumulate((len(group) for group in groups(after)), initial=0)
    return next((end for end in ends if end >= least), len(after))


def with_artifacts(compressor: Compressor) -> Compressor:
    """Return the entry ``NAME+artifacts`` for a strategy: its arguments and ``index_tokens``."""

    def build(given: Arguments, fixture: Fixture | None = None) -> CompactionStrategy:
        def inner(less: int = 0) -> CompactionStrategy:
            own = {name: getattr(given, name) for name in given.model_fields_set}
            own.pop("index_tokens", None)
            if less:
                own[_TARGET] -= less
            try:
                return compressor.build(compressor.arguments.model_validate(own), fixture)
            except ValidationError as error:
                raise CompressionError(
                    "error", f"{_TARGET} is too small: the artifact index alone takes {less}"
                ) from error

        return ArtifactIndexCompaction(
            inner(),
            index_tokens=getattr(given, "index_tokens", _DEFAULT_TOKENS),
            always=compressor.kind.exempt,
            leaving_room=inner if getattr(given, _TARGET, None) is not None else None,
        )

    return replace(
        compressor,
        name=compressor.name + SUFFIX,
        summary=f"{compressor.summary}; with an index of the files, read from the tool calls",
        arguments=create_model(
            f"{compressor.arguments.__name__}WithArtifacts",
            __base__=compressor.arguments,
            index_tokens=(
                PositiveInt,
                Field(
                    default=_DEFAULT_TOKENS,
                    description="Most tokens of the artifact index: on top of the other budgets, "
                    "within target_tokens.",
                ),
            ),
        ),
        build=build,
    )
