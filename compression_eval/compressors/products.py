"""The compactions of four coding agents: Claude Code, Codex CLI, Pi and OpenHands.

Each is written from what is public of it; all prompts are ours. Sources:

- `ClaudeCodeCompaction`: descriptions of ``/compact`` in Claude Code's releases (sections, private
  analysis, attachments and limits). Its cheaper layers (clearing old tool results, session memory)
  are arms of their own: ``masking`` and ``clear-tools``.
- `CodexCompaction`: ``codex-rs/core/src/compact.rs``, the local compaction.
- `PiCompaction`: ``packages/coding-agent/src/core/compaction``.
- `OpenHandsCompaction`: ``LLMSummarizingCondenser`` of ``software-agent-sdk``. The package itself
  cannot be used: it needs Python 3.12 and an ``openai`` older than the one that Inspect needs.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Annotated

from inspect_ai.model import ChatMessage, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo
from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt

from compression_eval.compressors.budget import CUT_KEY, fitted, groups, joined, split_system
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import filled, prompt
from compression_eval.compressors.strategy import carried, strategy
from compression_eval.compressors.summarising import (
    ProductStrategy,
    asked_about,
    asked_after,
    completion,
    tagged_summary,
)
from compression_eval.compressors.tokens import token_counter
from compression_eval.file_ops.calls import calls_of_messages
from compression_eval.file_ops.views import FileView, file_calls, file_views
from compression_eval.inspect_models import stop_reason

_FILE_KEY = "compression_eval_attached_file"


@strategy
class ClaudeCodeCompaction(ProductStrategy):
    """Replace a whole conversation by a summary in nine sections and the files it used last.

    To the model, an earlier summary and its attachments are ordinary messages; the attachments also
    count as the files used first.
    """

    summary = "Claude Code's summary in nine sections, then the files used last"
    name = "claude_code"

    max_files: NonNegativeInt = 5
    """Files attached after the summary, the last one used first."""
    file_tokens: PositiveInt = 5_000
    """Tokens of one attached file; its end is cut off over that."""
    files_tokens: PositiveInt = 50_000
    """Tokens of all attached files."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return system messages, summary, attached files; and the message with the summary."""
        system = [message for message in messages if message.role == "system"]
        conversation = [message for message in messages if message.role != "system"]
        if all(map(self._is_ours, conversation)):
            raise CompressionError("not_applied", "nothing was said since the last summary")
        reply = completion(await asked_after(model, messages, tools, self.instructions()))
        # The analysis stays private; a reply without tags is all summary.
        text = tagged_summary(_without_analysis(reply))
        message = self.message(text)
        return [*system, message, *self._attachments(conversation)], message

    def _attachments(self, messages: Sequence[ChatMessage]) -> Iterator[ChatMessageUser]:
        """Yield one message per file, within the limits, the last file used first."""
        earlier = [
            FileView(held["path"], message.text[held["skip"] :], held["exact"], held["changed"])
            for message in reversed(messages)
            if (held := (message.metadata or {}).get(_FILE_KEY))
        ]
        count = token_counter().count
        left = self.files_tokens
        views = file_views([m for m in messages if not self._is_ours(m)], earlier)
        for view in views[: self.max_files]:
            text = fitted(view.text, min(self.file_tokens, left), count, "start")
            if not text:
                break
            left -= count(text)
            exact = view.exact and text == view.text
            kind = "_part" if not exact else "_before" if view.changed else ""
            heading = filled(
                f"claude_code_file{kind}", path=json.dumps(view.path, ensure_ascii=False)
            )
            held = {"path": view.path, "exact": exact, "changed": view.changed}
            yield ChatMessageUser(
                content=f"{heading}\n\n{text}",
                metadata={_FILE_KEY: {**held, "skip": len(heading) + 2}},
            )

    def _is_ours(self, message: ChatMessage) -> bool:
        return bool({self.key, _FILE_KEY} & (message.metadata or {}).keys())


def _without_analysis(reply: str) -> str:
    # Nothing after the last end is looked through again for each beginning.
    analysed, end, rest = reply.rpartition("</analysis>")
    return re.sub(r"<analysis>.*?</analysis>", "", analysed + end, flags=re.DOTALL) + rest


@strategy
class CodexCompaction(ProductStrategy):
    """Keep recent user messages and replace everything else by a summary after them."""

    summary = "Codex CLI's local compaction: recent user messages, then a handoff summary"
    name = "codex"

    user_tokens: NonNegativeInt = 20_000
    """Tokens of user messages kept, newest first; the one that no longer fits is shortened."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return system messages, user messages, summary; and the message with the summary.

        Over the model's window, the oldest messages are dropped and the call is repeated, dropping
        twice as many each time, so that a long conversation does not cost a call per message.
        """
        system, conversation = split_system(messages)
        _, body = carried(conversation, self.key)
        if all(message.role == "user" for message in body):
            raise CompressionError(
                "not_applied", "there are only user messages, and those are kept"
            )
        pieces = groups(conversation)
        left_out, step = 0, 1
        while True:
            shown = [*system, *joined(pieces[left_out:])]
            output = await asked_after(model, shown, tools, self.instructions())
            if stop_reason(output) != "model_length" or left_out >= len(pieces) - 1:
                break
            left_out = min(left_out + step, len(pieces) - 1)
            step *= 2
        message = self.message(completion(output))
        return [*system, *self._recent(body), message], message

    def _recent(self, messages: list[ChatMessage]) -> list[ChatMessageUser]:
        """Return the newest user messages within the budget, in order; the oldest may be cut."""
        count = token_counter().count
        kept: list[ChatMessageUser] = []
        left = self.user_tokens
        for message in reversed([m for m in messages if isinstance(m, ChatMessageUser)]):
            if left <= 0:
                break
            tokens = count(message.text)
            if tokens <= left:
                kept.append(message)
            elif text := fitted(message.text, left, count, "ends"):
                metadata = {**(message.metadata or {}), CUT_KEY: True}
                kept.append(message.model_copy(update={"content": text, "metadata": metadata}))
            left -= tokens
        return kept[::-1]


_SUMMARY_SHARE, _TURN_SHARE = 0.8, 0.5
"""Shares of the reserve for a summary and for the summary of a turn's start."""


class _Carried(BaseModel):
    """State carried from one compression to the next."""

    summary: str = ""
    read: list[str] = Field(default_factory=list)
    """Files that were only read, sorted."""
    modified: list[str] = Field(default_factory=list)

    def add_files(self, messages: Sequence[ChatMessage]) -> None:
        """Add the files that the messages' tool calls read or modified."""
        read, modified = set(self.read), set(self.modified)
        for _, deed, path in file_calls(calls_of_messages(messages)):
            (read if deed == "read" else modified).add(path)
        self.read, self.modified = sorted(read - modified), sorted(modified)


@strategy
class PiCompaction(ProductStrategy):
    """Replace everything before the recent messages by a summary with lists of files."""

    summary = "Pi's compaction: recent messages, an updated summary, lists of files"
    name = "pi"

    keep_recent_tokens: PositiveInt = 20_000
    """Tokens kept at the end, about: the message that reaches the number is the first one kept."""
    reserve_tokens: PositiveInt = 16_384
    """Room for replies; a summary may take 0.8 of it, that of a turn's start 0.5."""
    tool_result_chars: PositiveInt = 2_000
    """Characters of a tool result that the summarising model sees."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return system messages, summary, recent messages; and the message with the summary.

        If the cut splits a turn, there is a second model call.
        """
        system, conversation = split_system(messages)
        previous, body = carried(conversation, self.key)
        cut = self._cut_point(body)
        if cut == 0:
            raise CompressionError(
                "not_applied",
                f"nothing to summarise: what was said since the last summary is within "
                f"keep_recent_tokens ({self.keep_recent_tokens})",
            )
        notes = _Carried.model_validate(previous or {})
        turn = cut
        if cut < len(body) and body[cut].role != "user":
            turn = next((i for i in range(cut, -1, -1) if body[i].role == "user"), cut)
        notes.summary = await self._summary(model, body[:turn], body[turn:cut], notes.summary)
        notes.add_files(body[:cut])
        lists = [
            f"\n\n<{name}>\n" + "\n".join(" ".join(path.split()) for path in paths) + f"\n</{name}>"
            for name, paths in (("read-files", notes.read), ("modified-files", notes.modified))
            if paths
        ]
        message = self.message(notes.summary, notes.model_dump(), "".join(lists))
        return [*system, message, *body[cut:]], message

    def _cut_point(self, messages: Sequence[ChatMessage]) -> int:
        """Return the index of the first message kept; 0 if all are.

        Tokens are added up from the end. The cut is before the message that reaches the budget, or
        at the next possible place after it; never before a tool result. If there is no such place,
        the last call is kept with its results.
        """
        spent = 0
        later: int | None = None
        for index in range(len(messages) - 1, -1, -1):
            spent += token_counter().message(messages[index])
            if messages[index].role != "tool":
                later = index
            if spent >= self.keep_recent_tokens and later is not None:
                return later
        return 0

    async def _summary(
        self,
        model: Model,
        history: Sequence[ChatMessage],
        turn_start: Sequence[ChatMessage],
        earlier: str,
    ) -> str:
        """Return the summary of the history, and of the start of a split turn."""
        parts = [earlier] if earlier and not history else []
        if history:
            header = {"previous_summary": earlier} if earlier else {}
            request = self.instructions("pi_update" if earlier else "pi")
            most = int(_SUMMARY_SHARE * self.reserve_tokens)
            parts.append(await asked_about(model, self._shortened(history), header, request, most))
        if turn_start:
            request = prompt("pi_turn")
            most = int(_TURN_SHARE * self.reserve_tokens)
            text = await asked_about(model, self._shortened(turn_start), {}, request, most)
            parts.append(filled("pi_turn_part", summary=text))
        return "\n\n".join(parts)

    def _shortened(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return the messages with the end of long tool results cut off."""
        limit = self.tool_result_chars
        result = list(messages)
        for position, message in enumerate(result):
            text = message.text
            if message.role == "tool" and len(text) > limit:
                cut = f"{text[:limit]}\n{filled('left_out', count=len(text) - limit)}"
                result[position] = message.model_copy(update={"content": cut})
        return result


_RESET_ATTEMPTS = 5
_RESET_SCALE = 0.8


@strategy
class OpenHandsCompaction(ProductStrategy):
    """Replace a range of events after the first ones by a summary.

    A forced compression corresponds to the condenser's request: about half of the events are kept.
    """

    summary = "OpenHands' condenser: first and last events, a summary of the others"
    name = "openhands"

    max_size: PositiveInt = 240
    """Events from which the condenser would fire by itself; half of it is its target then."""
    keep_first: NonNegativeInt = 2
    """Events kept at the start; the system prompt is one."""
    minimum_progress: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Share of the events that must go, or everything is summarised instead."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_size // 2 - self.keep_first - 1 <= 0:
            raise ValueError("keep_first must be less than half of max_size, less one")

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return first events, summary, last events; and the message with the summary.

        If the range would be too small, everything is summarised; only that call is repeated on
        failure, with ever shorter messages.
        """
        pieces = groups(messages)
        sizes = [sum(map(_events, piece)) for piece in pieces]
        total = sum(sizes)
        if total <= self.keep_first + 1:
            raise CompressionError(
                "not_applied", f"{total} events, of which {self.keep_first} are kept first"
            )
        target = min(total // 2, self.max_size // 2) if total > self.max_size else total // 2
        kept_last = max(target - self.keep_first - 1, 0)
        # Number of events before each group: no call loses its result.
        before = [0, *accumulate(sizes)][:-1]
        start = sum(passed < self.keep_first for passed in before)
        end = max(sum(passed < total - kept_last for passed in before), start)
        if sum(sizes[start:end]) >= max(self.minimum_progress * total, 1):
            head, tail = joined(pieces[:start]), joined(pieces[end:])
            text = await self._summary(model, joined(pieces[start:end]))
        else:
            head, tail = [], []
            text = await self._reset(model, messages)
        message = self.message(text)
        return [*head, message, *tail], message

    async def _summary(self, model: Model, messages: Sequence[ChatMessage]) -> str:
        """Return the summary of the messages; an earlier summary among them is marked as such."""
        earlier, events = carried(messages, self.key)
        header = {"previous_summary": earlier} if earlier else {}
        return await asked_about(model, events, header, self.instructions())

    async def _reset(self, model: Model, messages: list[ChatMessage]) -> str:
        """Return a summary of everything, shortening the messages after every failure."""
        conversation = [message for message in messages if message.role != "system"]
        limit = max((len(message.text) for message in conversation), default=0)
        for _ in range(_RESET_ATTEMPTS - 1):
            try:
                return await self._summary(model, self._shortened(conversation, limit))
            except CompressionError:
                limit = int(limit * _RESET_SCALE)
        return await self._summary(model, self._shortened(conversation, limit))

    def _shortened(self, messages: Sequence[ChatMessage], limit: int) -> list[ChatMessage]:
        return [
            message
            if len(message.text) <= limit or self.key in (message.metadata or {})
            else message.model_copy(update={"content": fitted(message.text, limit, len, "ends")})
            for message in messages
        ]


def _events(message: ChatMessage) -> int:
    """Return the number of OpenHands events of a message: each call is an event of its own."""
    return max(len(getattr(message, "tool_calls", None) or []), 1)
