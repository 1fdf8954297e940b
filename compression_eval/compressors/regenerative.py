"""Regenerative summarising: the whole summary is written anew at every compression.

Source: the form of Anthropic's earlier client-side compaction as the seeds describe it, sections
for analysis, files, pending tasks and current state. Unlike the original, a verbatim tail is kept,
so that it stands on the same footing as the other arms.
"""

import re
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo

from compression_eval.compressors.arguments import SummaryArguments
from compression_eval.compressors.budget import plan_summary
from compression_eval.compressors.clipping import clipped_sections
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.material import data_block
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.summarising import carrier, completion, request
from compression_eval.compressors.tokens import token_counter

_KEY = "compression_eval_summary"


class RegenerativeCompaction(CompactionStrategy):
    """Replace the middle of a conversation by a summary written from it and the earlier summary.

    Args:
        arguments: Budgets, prompt and focus topic.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(self, arguments: SummaryArguments, *, threshold: int | float = 0.9) -> None:
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.arguments = arguments

    async def compact(
        self,
        model: Model,
        messages: list[ChatMessage],
        tools: list[ToolInfo],  # noqa: ARG002
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation with one model call.

        Args:
            model: Writes the summary.
            messages: The conversation, perhaps with the summary of an earlier compression.
            tools: Not used.

        Returns:
            Head, summary and tail; and the message that carries the summary.

        Raises:
            CompressionError: Nothing to summarise, or no usable reply.
        """
        arguments = self.arguments
        counter = token_counter()
        plan = plan_summary(messages, _KEY, arguments, counter)
        header: dict[str, Any] = {}
        if previous := plan.span.previous:
            header["earlier_summary"] = (previous.metadata or {})[_KEY]
        header["budget_tokens"] = plan.summary_tokens
        if arguments.focus_topic:
            header["focus_topic"] = arguments.focus_topic
        output = await model.generate(
            request(
                arguments.prompt or prompt("regenerative"),
                "regenerative_protocol",
                data_block(header, plan.span.dropped),
            )
        )
        text = _summary_part(completion(output))
        if not text:
            raise CompressionError("empty", "the summarising model returned no summary")
        if plan.target_tokens is not None:
            text = clipped_sections(text, plan.summary_tokens, counter.count) or text
        message = carrier(text, {_KEY: text})
        return plan.state(message), message


def _summary_part(text: str) -> str:
    """Return what stands in summary tags, if a replaced prompt asked for them; else everything."""
    found = re.search(r"<summary>(.*)</summary>", text, re.DOTALL)
    return (found.group(1) if found else text).strip()
