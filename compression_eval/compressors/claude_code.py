"""The full summary of Claude Code: nine sections, and recently used files attached again.

Source: the behaviour of Claude Code's ``/compact`` as public descriptions of its releases give it
(sections, the private analysis, what is attached afterwards and the limits). The prompt is ours.
Its cheaper layers (clearing old tool results, session memory) are arms of their own: ``masking``
and ``clear-tools``.
"""

import json
import re
from collections.abc import Sequence

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo
from pydantic import Field

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.file_views import FileView, file_views
from compression_eval.compressors.fitting import fitted
from compression_eval.compressors.products import (
    ProductArguments,
    asked_after,
    filled,
    nothing_to_do,
)
from compression_eval.compressors.spec import Compressor
from compression_eval.compressors.summarising import completion
from compression_eval.compressors.tokens import token_counter

_KEY = "compression_eval_claude_code"
_FILE_KEY = "compression_eval_attached_file"


class ClaudeCodeArguments(ProductArguments):
    """Limits of what is attached; the published ones by default."""

    max_files: int = Field(default=5, ge=0)
    """Files attached after the summary, the last one used first."""
    file_tokens: int = Field(default=5_000, gt=0)
    """Tokens of one attached file; its end is cut off over that."""
    files_tokens: int = Field(default=50_000, gt=0)
    """Tokens of all attached files."""


class ClaudeCode(CompactionStrategy):
    """Replace a whole conversation by a summary in nine sections and the files it used last.

    Args:
        arguments: Prompt, focus and limits.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(self, arguments: ClaudeCodeArguments, *, threshold: int | float = 0.9) -> None:
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.arguments = arguments

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation with one model call.

        An earlier summary and its attachments are messages like any other to the model; the
        attachments also count as the files that were used before the rest.

        Args:
            model: Writes the summary.
            messages: The conversation.
            tools: The tools it was had with.

        Returns:
            System messages, summary, attached files; and the message with the summary.

        Raises:
            CompressionError: Nothing new to summarise, or no usable reply.
        """
        system = [message for message in messages if message.role == "system"]
        said = [message for message in messages if message.role != "system"]
        if all(_is_ours(message) for message in said):
            raise nothing_to_do("nothing was said since the last summary")
        instructions = self.arguments.instructions("claude_code")
        output = await asked_after(model, messages, tools, instructions)
        text = summary_part(completion(output))
        if not text:
            raise CompressionError("empty", "the summarising model returned no summary")
        message = ChatMessageUser(
            content=filled("claude_code_carrier", summary=text), metadata={_KEY: text}
        )
        return [*system, message, *self._attachments(said)], message

    def _attachments(self, messages: Sequence[ChatMessage]) -> list[ChatMessageUser]:
        """Return one message per file, within the limits, the last file used first."""
        count = token_counter().count
        left = self.arguments.files_tokens
        result: list[ChatMessageUser] = []
        views = file_views([m for m in messages if not _is_ours(m)], _attached(messages))
        for view in views[: self.arguments.max_files]:
            text = fitted(view.text, min(self.arguments.file_tokens, left), count, "start")
            if not text:
                break
            left -= count(text)
            exact = view.exact and text == view.text
            heading = filled(
                "claude_code_file" if exact else "claude_code_file_part",
                path=json.dumps(view.path, ensure_ascii=False),
            )
            result.append(
                ChatMessageUser(
                    content=f"{heading}\n\n{text}",
                    metadata={
                        _FILE_KEY: {"path": view.path, "exact": exact, "skip": len(heading) + 2}
                    },
                )
            )
        return result


def summary_part(text: str) -> str:
    """Return a reply's summary: without the private analysis, and out of its tags."""
    text = re.sub(r"<analysis>.*?</analysis>", "", text, flags=re.DOTALL)
    found = re.search(r"<summary>(.*)</summary>", text, re.DOTALL)
    return (found[1] if found else text).strip()


def _is_ours(message: ChatMessage) -> bool:
    return bool({_KEY, _FILE_KEY} & (message.metadata or {}).keys())


def _attached(messages: Sequence[ChatMessage]) -> list[FileView]:
    """Return the files attached by the last compression, the last one used last."""
    result = []
    for message in messages:
        if held := (message.metadata or {}).get(_FILE_KEY):
            result.append(FileView(held["path"], message.text[held["skip"] :], held["exact"]))
    return result[::-1]


COMPRESSOR = Compressor(
    "claude-code",
    "Claude Code's summary in nine sections, then the files used last",
    ClaudeCodeArguments,
    ClaudeCode,
    calls_model=True,
)
