"""The compaction of the Pi coding agent: recent tokens kept, a summary that is updated, file lists.

Source: ``packages/coding-agent/src/core/compaction`` of the public repository. The prompts are
written anew here.
"""

from collections.abc import Sequence

from inspect_ai.model import ChatMessage, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo
from pydantic import BaseModel, Field, PositiveInt

from compression_eval.compressors.budget import split_system
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import filled, prompt
from compression_eval.compressors.strategy import carried, strategy
from compression_eval.compressors.summarising import ProductStrategy, asked_about
from compression_eval.compressors.tokens import token_counter
from compression_eval.file_ops.calls import calls_of_messages
from compression_eval.file_ops.views import file_calls

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

    summary = "Pi's compaction: recent tokens, an updated summary, lists of files kept by code"
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
