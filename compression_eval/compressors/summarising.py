"""Ask a model for a summary, and read its reply: the bases of all that do, and `regenerative`.

Conversations are shown as data, one JSON object per line, so that no text inside them can pass for
the end of the data. Only for products that send their request after the conversation's own messages
is that done here too (`asked_after`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
)
from inspect_ai.tool import ToolInfo
from pydantic import PositiveInt

from compression_eval.compressors.budget import (
    Window,
    clipped_sections,
    filled_tail,
    room_in_target,
    split,
)
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import filled, prompt
from compression_eval.compressors.strategy import (
    Strategy,
    Text,
    WindowStrategy,
    carried,
    carrier,
    strategy,
)
from compression_eval.compressors.tokens import token_counter
from compression_eval.fixtures.conversation import content_text
from compression_eval.inspect_models import NO_CHOICES, cut_off, refused, said
from compression_eval.text.printable import blank, one_line_json

_MIN_SUMMARY = 100
"""Minimum tokens of a summary; empty headings alone take 60."""


@dataclass(frozen=True)
class SpanPlan:
    """What to replace, the budget of its replacement, and what surrounds it."""

    window: Window
    """Its span is to be replaced, without what an earlier compression wrote."""
    earlier: Any
    """What that left for this one, from its message's metadata; None if there is nothing."""
    tokens: int
    """Budget of the text in place of the span, without the frame around it."""


@strategy
class SummarisingCompaction(WindowStrategy):
    """Replace the middle of a conversation by a model's summary; base of our own strategies."""

    key: ClassVar[str]
    """Metadata key of the summary's message, with what the next compression needs of this one."""
    instructions: ClassVar[str]
    """Name of the text with the instructions; ``…_protocol`` is the one with the reply form."""

    summary_tokens: PositiveInt = 1_500
    """Budget of the summary in tokens. ``anchored`` enforces it; to a model it is a request. With
    ``target_tokens`` only its proportion to ``tail_tokens`` counts, and it is enforced."""
    prompt: Text | None = None
    """Text that replaces the strategy's instructions; the reply form is always added."""
    focus_topic: Text | None = None
    """A topic that deserves the most room."""

    def plan(self, messages: Sequence[ChatMessage]) -> SpanPlan:
        """Divide the budget and select the span to replace.

        Without a target, head, summary and tail have their own budgets. With one, the rest of it
        after the head and the frame is divided between summary and tail in proportion of their
        budgets.

        Raises:
            CompressionError: There is nothing to replace, or the target leaves no room for it.
        """
        tokens, tail_tokens = self.summary_tokens, self.tail_tokens
        if self.target_tokens is not None:
            frame = token_counter().message(self.carrier("", {}))
            room = room_in_target(
                messages, self.target_tokens, self.head_tokens, frame, _MIN_SUMMARY
            )
            tokens = max(_MIN_SUMMARY, room * tokens // (tokens + tail_tokens))
            tail_tokens = room - tokens
        earlier, rest = carried(messages, self.key)
        keep_last = self.target_tokens is None
        window = split(rest, self.head_tokens, tail_tokens, keep_last=keep_last)
        if not window.span:
            raise CompressionError(
                "not_applied",
                "nothing to summarise: the conversation fits the head and tail budgets "
                f"({self.head_tokens} and {tail_tokens} tokens)",
            )
        return SpanPlan(window, earlier, tokens)

    def carrier(self, text: str, kept: Any) -> ChatMessageUser:
        """Return the message that replaces the span, with what the next compression needs."""
        return carrier(text, {self.key: kept})

    def state(self, plan: SpanPlan, message: ChatMessage) -> list[ChatMessage]:
        """Return the state around the message that replaces the span.

        With a target, the room that the message left is filled from the end of the span, so that
        part is in the state twice: replaced and verbatim.

        Raises:
            CompressionError: The message alone is over the target.
        """
        start = [*plan.window.head, message]
        if self.target_tokens is None:
            return [*start, *plan.window.tail]
        room = self.target_tokens - token_counter().messages(start)
        if room < 0:
            raise CompressionError(
                "error", f"the summary is over target_tokens ({self.target_tokens}) by {-room}"
            )
        if self.tail_tokens == 0:
            return start
        rest = [*plan.window.span, *plan.window.tail]
        return [*start, *filled_tail(rest, room, self.target_tokens)]

    def request(self, plan: SpanPlan, earlier: dict[str, Any]) -> list[ChatMessage]:
        """Return the messages of a summarising call: instructions as system, material as user.

        The previous summary, if there is one, stands under the name that the instructions use.
        """
        header: dict[str, Any] = {**earlier, "budget_tokens": plan.tokens}
        if self.focus_topic:
            header["focus_topic"] = self.focus_topic
        text = (self.prompt or prompt(self.instructions)).strip()
        return [
            ChatMessageSystem(content=f"{text}\n\n{prompt(f'{self.instructions}_protocol')}"),
            ChatMessageUser(content=data_block(header, plan.window.span)),
        ]


@strategy
class RegenerativeCompaction(SummarisingCompaction):
    """Replace the middle of a conversation by a summary written from it and the earlier summary.

    Source: the form of Anthropic's earlier client-side compaction, with sections for analysis,
    files, pending tasks and current state. Unlike the original, it keeps a verbatim tail, for a
    fair comparison with the other arms.
    """

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


@strategy
class ProductStrategy(Strategy):
    """A strategy that imitates a product, with a model and instructions."""

    name: ClassVar[str]
    """Name of its texts: instructions, and ``…_carrier`` for the message around the summary."""

    prompt: Text | None = None
    """Text that replaces the instructions to the summarising model."""
    focus_topic: Text | None = None
    """A topic that deserves the most room; added to the instructions."""

    @property
    def key(self) -> str:
        """Metadata key of the message that carries the summary to the next compression."""
        return f"compression_eval_{self.name}"

    def instructions(self, name: str = "") -> str:
        """Return the instructions, or the user's in their place, with the focus topic."""
        text = self.prompt or prompt(name or self.name)
        focus = self.focus_topic
        return f"{text}\n\n{filled('focus', topic=focus)}" if focus else text

    def message(self, summary: str, carried: Any = None, after: str = "") -> ChatMessageUser:
        """Return the message with a summary, what the next compression needs, and text after it."""
        return ChatMessageUser(
            content=filled(f"{self.name}_carrier", summary=summary) + after,
            metadata={self.key: carried or summary},
        )


def completion(output: ModelOutput) -> str:
    """Return the text of a summarising call, without thinking.

    Raises:
        CompressionError: The model refused, hit the token limit, or said nothing.
    """
    if output.error:
        raise CompressionError("error", f"the summarising model failed: {output.error}")
    if output.empty:
        raise CompressionError("error", NO_CHOICES)
    if refused(output):
        raise CompressionError("aborted", "the summarising model refused")
    if cut_off(output):
        raise CompressionError(
            "error", f"the summary was cut off (stop reason {output.stop_reason})"
        )
    text = said(output).strip()
    if blank(text):
        raise CompressionError("empty", "the summarising model returned no text")
    return text


def tagged_summary(reply: str) -> str:
    """Return the content of the ``<summary>`` tag of a reply, else the whole reply.

    Raises:
        CompressionError: It is empty.
    """
    inside, end, _ = reply.partition("<summary>")[2].rpartition("</summary>")
    text = (inside if end else reply).strip()
    if not text:
        raise CompressionError("empty", "the summarising model returned no summary")
    return text


def data_block(header: dict[str, Any], messages: Sequence[ChatMessage]) -> str:
    """Return the material for a summarising model: one JSON object per line.

    Each entry of the header becomes a line, then each message with its position, role, text and
    tool calls.
    """
    lines = [one_line_json({key: value}) for key, value in header.items()]
    for index, message in enumerate(messages):
        line: dict[str, Any] = {"index": index, "role": message.role, "text": content_text(message)}
        if isinstance(message, ChatMessageAssistant) and message.tool_calls:
            line["calls"] = [
                {"name": call.function, "arguments": call.arguments} for call in message.tool_calls
            ]
        lines.append(one_line_json(line))
    return "\n".join(lines)


async def asked_after(
    model: Model, messages: Sequence[ChatMessage], tools: Sequence[ToolInfo], request: str
) -> ModelOutput:
    """Return the reply to a request after the conversation's own messages.

    Some providers require the tools if there are tool calls.
    """
    return await model.generate(
        [*messages, ChatMessageUser(content=request)], tools=list(tools), tool_choice="none"
    )


async def asked_about(
    model: Model,
    messages: Sequence[ChatMessage],
    header: dict[str, Any],
    request: str,
    max_tokens: int | None = None,
) -> str:
    """Return the text of the reply to a request after the messages as data; see `data_block`.

    Raises:
        CompressionError: The reply is unusable; see `completion`.
    """
    output = await model.generate(
        [
            ChatMessageSystem(content=prompt("summariser")),
            ChatMessageUser(content=f"{data_block(header, messages)}\n\n{request}"),
        ],
        config=GenerateConfig(max_tokens=max_tokens),
    )
    return completion(output)
