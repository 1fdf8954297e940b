"""The compaction of the Pi coding agent: recent tokens kept, a summary that is updated, file lists.

Source: ``packages/coding-agent/src/core/compaction`` of the public repository. The prompts are
written anew here.
"""

from collections.abc import Sequence
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    CompactionStrategy,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import BaseModel, Field

from compression_eval.compressors.file_calls import file_call
from compression_eval.compressors.products import (
    ProductArguments,
    asked_about,
    filled,
    nothing_to_do,
    set_apart,
)
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.spec import Compressor
from compression_eval.compressors.summarising import completion
from compression_eval.compressors.tokens import TokenCounter, token_counter

_KEY = "compression_eval_pi"
_SUMMARY_SHARE = 0.8
_TURN_SHARE = 0.5
"""Shares of the reserve that a summary and the summary of a turn's start may take."""


class PiArguments(ProductArguments):
    """Pi's settings, with its defaults."""

    keep_recent_tokens: int = Field(default=20_000, gt=0)
    """Tokens kept at the end, about: the message that reaches the number is the first one kept."""
    reserve_tokens: int = Field(default=16_384, gt=0)
    """Room for replies; a summary may take 0.8 of it, that of a turn's start 0.5."""
    tool_result_chars: int = Field(default=2_000, gt=0)
    """Characters of a tool result that the summarising model sees."""


class _Carried(BaseModel):
    """What a compression hands to the next one."""

    summary: str = ""
    read: list[str] = Field(default_factory=list)
    modified: list[str] = Field(default_factory=list)


class Pi(CompactionStrategy):
    """Replace everything before the recent messages by a summary with lists of files.

    Args:
        arguments: Budgets, prompt and focus.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(self, arguments: PiArguments, *, threshold: int | float = 0.9) -> None:
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.arguments = arguments

    async def compact(
        self,
        model: Model,
        messages: list[ChatMessage],
        tools: list[ToolInfo],  # noqa: ARG002
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation with one model call, or two where the cut parts a turn.

        Args:
            model: Writes the summaries.
            messages: The conversation, perhaps with the summary of an earlier compression.
            tools: Not used.

        Returns:
            System messages, summary, recent messages; and the message with the summary.

        Raises:
            CompressionError: Everything is recent, or no usable reply.
        """
        conversation = set_apart(messages, _KEY)
        body = conversation.body
        cut = cut_point(body, self.arguments.keep_recent_tokens, token_counter())
        if cut == 0:
            raise nothing_to_do(
                f"nothing to summarise: what was said since the last summary is within "
                f"keep_recent_tokens ({self.arguments.keep_recent_tokens})"
            )
        earlier = _Carried.model_validate(conversation.previous or {})
        turn = cut
        if cut < len(body) and body[cut].role != "user":
            turn = next((i for i in range(cut, -1, -1) if body[i].role == "user"), cut)
        summary = await self._summary(model, body[:turn], body[turn:cut], earlier.summary)
        read, modified = _files(body[:cut], earlier)
        carried = _Carried(summary=summary, read=read, modified=modified)
        message = ChatMessageUser(
            content=filled("pi_carrier", summary=summary) + _file_lists(read, modified),
            metadata={_KEY: carried.model_dump()},
        )
        return [*conversation.system, message, *body[cut:]], message

    async def _summary(
        self,
        model: Model,
        history: Sequence[ChatMessage],
        turn_start: Sequence[ChatMessage],
        earlier: str,
    ) -> str:
        """Return the summary of the history and, apart, of the start of a turn that was parted."""
        arguments = self.arguments
        parts = [earlier] if earlier and not history else []
        if history:
            header: dict[str, Any] = {"previous_summary": earlier} if earlier else {}
            output = await asked_about(
                model,
                self._shortened(history),
                header,
                arguments.instructions("pi_update" if earlier else "pi"),
                int(_SUMMARY_SHARE * arguments.reserve_tokens),
            )
            parts.append(completion(output))
        if turn_start:
            output = await asked_about(
                model,
                self._shortened(turn_start),
                {},
                prompt("pi_turn"),
                int(_TURN_SHARE * arguments.reserve_tokens),
            )
            parts.append(filled("pi_turn_part", summary=completion(output)))
        return "\n\n".join(parts)

    def _shortened(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return the messages with the end of long tool results cut off."""
        limit = self.arguments.tool_result_chars
        result: list[ChatMessage] = []
        for message in messages:
            text = message.text
            if isinstance(message, ChatMessageTool) and len(text) > limit:
                mark = filled("left_out", count=len(text) - limit)
                result.append(message.model_copy(update={"content": f"{text[:limit]}\n{mark}"}))
            else:
                result.append(message)
        return result


def cut_point(messages: Sequence[ChatMessage], keep: int, counter: TokenCounter) -> int:
    """Return the position of the first message kept; 0 if all are.

    Tokens are added up from the end. The message that reaches the number is kept if the
    conversation can be cut before it, else the cut is at the next place after it. No cut is before
    a tool result. If there is no such place, the last call is kept with its results.

    Args:
        messages: The conversation without system messages and earlier summaries.
        keep: Tokens to be kept.
        counter: Counts the tokens.
    """
    spent = 0
    later: int | None = None
    for index in range(len(messages) - 1, -1, -1):
        spent += counter.message(messages[index])
        possible = messages[index].role != "tool"
        if possible:
            later = index
        if spent >= keep and later is not None:
            return later
    return 0


def _files(messages: Sequence[ChatMessage], earlier: _Carried) -> tuple[list[str], list[str]]:
    """Return the files only read and the files modified, so far and in some messages, sorted."""
    read, modified = set(earlier.read), set(earlier.modified)
    for message in messages:
        calls = (message.tool_calls or []) if isinstance(message, ChatMessageAssistant) else []
        for call in calls:
            if found := file_call(call):
                (read if found.kind == "read" else modified).add(found.path)
    return sorted(read - modified), sorted(modified)


def _file_lists(read: list[str], modified: list[str]) -> str:
    parts = []
    for name, paths in (("read-files", read), ("modified-files", modified)):
        if paths:
            lines = "\n".join(" ".join(path.split()) for path in paths)
            parts.append(f"\n\n<{name}>\n{lines}\n</{name}>")
    return "".join(parts)


COMPRESSOR = Compressor(
    "pi",
    "Pi's compaction: recent tokens, an updated summary, lists of files kept by code",
    PiArguments,
    Pi,
    calls_model=True,
)
