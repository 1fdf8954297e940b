"""Claude Code's full summary: nine sections, and recently used files attached again.

Source: public descriptions of ``/compact`` in Claude Code's releases (sections, private analysis,
attachments and limits). The prompt is ours. Its cheaper layers (clearing old tool results, session
memory) are arms of their own: ``masking`` and ``clear-tools``.
"""

import json
import re
from collections.abc import Iterator, Sequence

from inspect_ai.model import ChatMessage, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo
from pydantic import NonNegativeInt, PositiveInt

from compression_eval.compressors.budget import fitted
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import filled
from compression_eval.compressors.strategy import strategy
from compression_eval.compressors.summarising import (
    ProductStrategy,
    asked_after,
    completion,
    tagged_summary,
)
from compression_eval.compressors.tokens import token_counter
from compression_eval.file_ops.views import FileView, file_views

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
