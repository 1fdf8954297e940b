"""How a model is asked for a summary, and how its reply is read.

Conversations are shown as data, one JSON object a line: no text inside them can then pass for the
end of the data. Only where a product itself puts its request after the conversation's own messages
is that done here too (`asked_after`).
"""

import re
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
    filled_tail,
    room_in_target,
    split,
    split_system,
)
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import filled, prompt
from compression_eval.compressors.strategy import ProductStrategy, Text, WindowStrategy, strategy
from compression_eval.compressors.tokens import token_counter
from compression_eval.fixtures.message_text import content_text
from compression_eval.inspect_models import NO_CHOICES, refused
from compression_eval.text.printable import one_line_json

_MIN_SUMMARY = 100
"""Tokens below which a summary is not worth asking for; empty headings alone take 60."""


@dataclass(frozen=True)
class SummaryPlan:
    """What is summarised, how long the summary may be, and what goes around it."""

    window: Window
    """Its span is what is to be summarised, without an earlier summary."""
    earlier: Any
    """What the earlier summary's message carries; None if there is none."""
    summary_tokens: int
    """Budget of the summary's text, without the message that it stands in."""


@strategy
class SummarisingCompaction(WindowStrategy):
    """Replace the middle of a conversation by what a model writes about it; base of our own two."""

    key: ClassVar[str]
    """Metadata key of the message that carries the summary from one compression to the next."""
    instructions: ClassVar[str]
    """Name of the text with the instructions; ``…_protocol`` is the one with the reply form."""

    summary_tokens: PositiveInt = 1_500
    """Budget of the summary in tokens. ``anchored`` enforces it; to a model it is a request. With
    ``target_tokens`` only its proportion to ``tail_tokens`` counts, and it is enforced."""
    prompt: Text | None = None
    """Text that replaces the strategy's instructions; the reply form is always added."""
    focus_topic: Text | None = None
    """A topic that deserves the most room."""

    def plan(self, messages: Sequence[ChatMessage]) -> SummaryPlan:
        """Divide the budget, and find what is to be summarised.

        Without a target, head, summary and tail have their own budgets. With one, what it leaves
        after the head and the frame of the summary's message is divided between summary and tail in
        the proportion of ``summary_tokens`` to ``tail_tokens``.

        Raises:
            CompressionError: There is nothing to summarise, or the target leaves no room for it.
        """
        summary_tokens, tail_tokens = self.summary_tokens, self.tail_tokens
        if self.target_tokens is not None:
            frame = token_counter().message(carrier("", {}))
            room = room_in_target(
                messages, self.target_tokens, self.head_tokens, frame, _MIN_SUMMARY
            )
            share = room * summary_tokens // (summary_tokens + tail_tokens)
            summary_tokens = max(_MIN_SUMMARY, share)
            tail_tokens = room - summary_tokens
        carriers = [message for message in messages if self.key in (message.metadata or {})]
        window = split(
            [message for message in messages if message not in carriers],
            self.head_tokens,
            tail_tokens,
            keep_last=self.target_tokens is None,
        )
        if not window.span:
            raise CompressionError(
                "not_applied",
                f"nothing to summarise: the conversation fits the head and tail budgets "
                f"({self.head_tokens} and {tail_tokens} tokens)",
            )
        earlier = (carriers[-1].metadata or {})[self.key] if carriers else None
        return SummaryPlan(window, earlier, summary_tokens)

    def request(self, plan: SummaryPlan, earlier: dict[str, Any]) -> list[ChatMessage]:
        """Return the messages of a summarising call: instructions as system, material as user.

        Args:
            plan: What is summarised, and how long the summary may be.
            earlier: The summary so far, if there is one, under the name that the instructions use.
        """
        header: dict[str, Any] = {**earlier, "budget_tokens": plan.summary_tokens}
        if self.focus_topic:
            header["focus_topic"] = self.focus_topic
        instructions_text = (self.prompt or prompt(self.instructions)).strip()
        return [
            ChatMessageSystem(
                content=f"{instructions_text}\n\n{prompt(f'{self.instructions}_protocol')}"
            ),
            ChatMessageUser(content=data_block(header, plan.window.span)),
        ]

    def state(self, plan: SummaryPlan, message: ChatMessage) -> list[ChatMessage]:
        """Return the state around the message that carries the summary.

        With a target, room that the summary left free is filled from the end of what was
        summarised, so that part stands in the state twice: in the summary and word for word.

        Raises:
            CompressionError: The summary alone is over the target.
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


def carrier(text: str, metadata: dict[str, Any]) -> ChatMessageUser:
    """Return the message that stands in a state for what was removed."""
    return ChatMessageUser(content=f"{prompt('carrier')}\n\n{text}", metadata=metadata)


def completion(output: ModelOutput) -> str:
    """Return the text of a summarising call.

    Raises:
        CompressionError: The model refused, ran out of room, or said nothing.
    """
    if output.error:
        raise CompressionError("error", f"the summarising model failed: {output.error}")
    if output.empty:
        raise CompressionError("error", NO_CHOICES)
    if refused(output):
        raise CompressionError("aborted", "the summarising model refused")
    if output.stop_reason in ("max_tokens", "model_length"):
        raise CompressionError(
            "error", f"the summary was cut off (stop reason {output.stop_reason})"
        )
    text = output.completion.strip()
    if not text:
        raise CompressionError("empty", "the summarising model returned no text")
    return text


def tagged_summary(reply: str) -> str:
    """Return what stands in the ``<summary>`` of a reply, else the whole reply.

    Raises:
        CompressionError: There is no text in it.
    """
    tagged = re.search(r"<summary>(.*)</summary>", reply, re.DOTALL)
    text = (tagged[1] if tagged else reply).strip()
    if not text:
        raise CompressionError("empty", "the summarising model returned no summary")
    return text


def data_block(header: dict[str, Any], messages: Sequence[ChatMessage]) -> str:
    """Return what a summarising model is shown: one JSON object a line.

    Args:
        header: Each entry becomes a line of its own, in order.
        messages: The conversation to be summarised: position, role, text and tool calls of each.
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


def instructions(name: str, product: ProductStrategy) -> str:
    """Return the instructions of a product: its text or the one in its place, and the focus."""
    text = product.prompt or prompt(name)
    focus = product.focus_topic
    return f"{text}\n\n{filled('focus', topic=focus)}" if focus else text


async def asked_after(
    model: Model, messages: Sequence[ChatMessage], tools: Sequence[ToolInfo], request: str
) -> ModelOutput:
    """Return the reply to a request that stands after the messages themselves.

    Args:
        model: Writes the summary.
        messages: The conversation, system messages included.
        tools: The tools it was had with; some providers demand them where there are tool calls.
        request: The instructions.
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
    """Return the text of the reply to a request that stands after the messages as data.

    Args:
        model: Writes the summary.
        messages: What is to be summarised.
        header: Further data, each entry on a line of its own before the messages.
        request: The instructions.
        max_tokens: Limit of the reply.

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


def set_apart(
    messages: Sequence[ChatMessage], key: str
) -> tuple[list[ChatMessage], Any, list[ChatMessage]]:
    """Part a conversation into system messages, the result of an earlier compression, and the rest.

    Args:
        messages: The conversation.
        key: Metadata key that marks a message which carries an earlier result.

    Returns:
        The leading system messages; what the newest carrier holds under the key, or None; all
        other messages but the carriers.
    """
    system, conversation = split_system(messages)
    held = [message.metadata[key] for message in conversation if key in (message.metadata or {})]  # type: ignore[index]
    rest = [message for message in conversation if key not in (message.metadata or {})]
    return system, held[-1] if held else None, rest
