"""A strategy spoilt on purpose in one of three ways, so that it is known where its facts went.

Each wraps the `regenerative` strategy: what it does wrong is all that differs from it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    CompactionStrategy,
    Model,
)
from inspect_ai.tool import ToolInfo

from compression_eval.compressors.budget import groups
from compression_eval.compressors.summarising import RegenerativeCompaction
from compression_eval.fixtures.banks import ExpectedFact
from compression_eval.fixtures.conversation import decoded_text

STRATEGY = RegenerativeCompaction(tail_tokens=200, summary_tokens=6_000)
"""Much room for the summary and little for the tail.

So what is missing is missing for the reason that was seeded, and little is saved by the tail.
"""

SECTIONS = 7
"""Sections of the embedded model's summaries."""

_SECTION = re.compile(r"^## ", re.MULTILINE)


class Truncating(CompactionStrategy):
    """Gives up the older part of the conversation before anything is summarised.

    Args:
        share: How much of the conversation goes, by messages.
    """

    def __init__(self, share: float) -> None:
        super().__init__(type="summary", memory=False)
        self.share = share
        self.gone: frozenset[str | None] = frozenset()
        """Ids of the messages that were given up."""
        self.left = ""
        """Text of the others."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Summarise what is left after the older part is gone."""
        system = [message for message in messages if message.role == "system"]
        pieces = groups(messages[len(system) :])
        wanted = self.share * len(messages)
        passed = 0
        while pieces and passed < wanted:
            passed += len(pieces.pop(0))
        kept = [message for piece in pieces for message in piece]
        known = {message.id for message in [*system, *kept]}
        self.gone = frozenset(message.id for message in messages if message.id not in known)
        self.left = "\n".join(decoded_text(message) for message in kept)
        return await STRATEGY.compact(model, [*system, *kept], tools)


class SectionDropping(CompactionStrategy):
    """Loses one section of the finished summary.

    Args:
        number: Which, from 0.
    """

    def __init__(self, number: int) -> None:
        super().__init__(type="summary", memory=False)
        self.number = number
        self.before = ""
        """The whole summary."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Summarise, then cut the section out."""
        state, carrier = await STRATEGY.compact(model, messages, tools)
        if carrier is None:
            raise ValueError("no summary to spoil")
        self.before = carrier.text
        parts = _SECTION.split(carrier.text)
        if len(parts) != SECTIONS + 1:
            raise ValueError(f"expected {SECTIONS} sections, found {len(parts) - 1}")
        del parts[self.number + 1]
        return _with_text(state, carrier, "## ".join(parts))


@dataclass(frozen=True)
class Seed:
    """A stale statement that a summary is made to hold."""

    fact: ExpectedFact
    line: str


class StaleKeeping(CompactionStrategy):
    """Keeps what the conversation first said of some things, and not what was said later.

    Args:
        facts: Those whose current value is lost; they have superseded values.
    """

    def __init__(self, facts: Sequence[ExpectedFact]) -> None:
        super().__init__(type="summary", memory=False)
        self.facts = facts
        self.seeds: list[Seed] = []
        """The lines that were put in, each as it is in the conversation."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Summarise, take out lines with current values, and put in lines with earlier ones."""
        state, carrier = await STRATEGY.compact(model, messages, tools)
        if carrier is None:
            raise ValueError("no summary to spoil")
        lines = list(_said(messages))
        self.seeds = []
        for fact in self.facts:
            line = next((line for line in lines if _states_earlier_value(line, fact)), None)
            if line is not None:
                self.seeds.append(Seed(fact, line))
        forms = [form for seed in self.seeds for form in seed.fact.forms]
        kept = [line for line in carrier.text.splitlines() if not holds_any(line, forms)]
        text = "\n".join([*kept, *(f"- {seed.line}" for seed in self.seeds)])
        return _with_text(state, carrier, text)


def _with_text(
    state: Sequence[ChatMessage], carrier: ChatMessageUser, text: str
) -> tuple[list[ChatMessage], ChatMessageUser]:
    spoilt = ChatMessageUser(content=text, metadata=carrier.metadata)
    return [spoilt if message is carrier else message for message in state], spoilt


def _said(messages: Sequence[ChatMessage]) -> Iterator[str]:
    """Yield the lines of a conversation: what was said first, then what was called and shown."""
    for message in messages:
        if message.role in ("user", "assistant"):
            yield from _lines(message.text)
    for message in messages:
        for call in (message.tool_calls or []) if isinstance(message, ChatMessageAssistant) else []:
            for value in call.arguments.values():
                yield from _lines(str(value))
    for message in messages:
        if message.role == "tool":
            yield from _lines(message.text)


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.strip():
            yield line.strip()


def _states_earlier_value(line: str, fact: ExpectedFact) -> bool:
    # A bare number may be said of something else.
    named = [value for value in fact.superseded if re.search(r"[^\W\d_]", value)]
    return holds_any(line, named) and not holds_any(line, fact.forms)


def holds_any(line: str, forms: Sequence[str]) -> bool:
    """Return whether a text contains a form, letter by letter: not by the rules under test."""
    plain = _plain(line)
    return any(
        re.search(rf"(?<![a-z0-9_.]){re.escape(_plain(form))}(?![a-z0-9_]|\.\d)", plain)
        for form in forms
    )


def _plain(text: str) -> str:
    return re.sub(r"[\s`*\"'=:|,]+", " ", text).strip().casefold()
