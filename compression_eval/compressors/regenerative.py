"""Regenerative summarising: every compression rewrites the whole summary.

Source: the form of Anthropic's earlier client-side compaction, with sections for analysis, files,
pending tasks and current state. Unlike the original, it keeps a verbatim tail, for a fair
comparison with the other arms.
"""

from inspect_ai.model import ChatMessage, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo

from compression_eval.compressors.budget import clipped_sections
from compression_eval.compressors.strategy import strategy
from compression_eval.compressors.summarising import (
    SummarisingCompaction,
    completion,
    tagged_summary,
)


@strategy
class RegenerativeCompaction(SummarisingCompaction):
    """Replace the middle of a conversation by a summary written from it and the earlier summary."""

    summary = "the whole summary is written anew at each compression"
    key = "compression_eval_summary"
    instructions = "regenerative"

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return head, summary and tail; and the message with the summary."""
        plan = self.plan(messages)
        earlier = {} if plan.earlier is None else {"earlier_summary": plan.earlier}
        # A user's prompt may ask for tags around the summary.
        text = tagged_summary(completion(await model.generate(self.request(plan, earlier))))
        if self.target_tokens is not None:
            text = clipped_sections(text, plan.tokens) or text
        message = self.carrier(text, text)
        return self.state(plan, message), message
