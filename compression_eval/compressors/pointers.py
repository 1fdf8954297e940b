"""A summary that ends with pointers: which earlier messages hold the details it leaves out.

Products tell the agent after a compaction where the whole transcript is kept (Cursor's chat history
as files, the transcript lookup of GitHub Copilot in VS Code, Claude's transcripts), so that it can
search there. Here the model also says where in it to look. Prompt and form of reply are ours.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo
from pydantic import BaseModel, Field

from compression_eval.compressors.budget import clipped_sections
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.references import Numbers
from compression_eval.compressors.strategy import strategy
from compression_eval.compressors.summarising import (
    SummarisingCompaction,
    completion,
    tagged_summary,
)
from compression_eval.compressors.tokens import token_counter

_POINTERS = re.compile(r"<pointers>(.*?)(?:</pointers>|\Z)", re.DOTALL)

_POINTER = re.compile(r"[-*\s]*(?P<what>.*\S)\s*[:：](?P<numbers>[^:：]*\d[^:：]*)")
"""A line: what it is about, which may hold colons of its own, and the numbers after the last."""

_NUMBERS = re.compile(r"(\d+)(?:\s*[-–]\s*(\d+))?")


class Pointer(BaseModel):
    """Messages that hold the details of something."""

    what: str
    messages: list[int]
    """Their numbers in the original conversation, rising."""

    def text(self) -> str:
        """Return the pointer as the agent reads it."""
        return f"{self.what}: {', '.join(map(str, self.messages))}"


class _Carried(BaseModel):
    summary: str = ""
    pointers: list[Pointer] = Field(default_factory=list)
    refused: int = 0
    """Numbers so far that no message of the history has."""
    numbers: Numbers = Field(default_factory=Numbers)


@strategy
class PointersCompaction(SummarisingCompaction):
    """Replace the middle of a conversation by a summary and pointers to the messages behind it.

    A pointer names a file, a decision or a failed attempt, and the numbers of the messages in the
    original conversation that hold it. Code drops every number that no message of the history has,
    and every pointer without one.
    """

    summary = "a summary, and for each file, decision and failed attempt the messages that hold it"
    key = "compression_eval_pointers"
    instructions = "pointers"

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return head, summary with pointers, and tail; and the message with the summary."""
        plan = self.plan(messages)
        earlier = _Carried.model_validate(plan.earlier or {})
        numbers = earlier.numbers.of(messages, self.key)
        header: dict[str, Any] = {}
        if earlier.summary:
            header["earlier_summary"] = earlier.summary
            header["earlier_pointers"] = [pointer.text() for pointer in earlier.pointers]
        request = self.request(plan, header, numbers.among(plan.window.span))
        reply = completion(await model.generate(request))
        summary = tagged_summary(_POINTERS.sub("", reply))
        pointers, refused = _pointers(reply, numbers.total)
        if self.target_tokens is not None:
            pointers, summary = _fitted(pointers, summary, plan.tokens)
        text = f"{summary}\n\n{_listed(pointers)}" if pointers else summary
        kept = _Carried(
            summary=summary, pointers=pointers, refused=earlier.refused + refused, numbers=numbers
        )
        message = self.carrier(text, kept.model_dump(mode="json"))
        return self.state(plan, message), message


def _pointers(reply: str, total: int) -> tuple[list[Pointer], int]:
    """Return the pointers of a reply without unknown numbers, and how many of those it had."""
    pointers: dict[str, set[int]] = {}
    refused = 0
    for line in "\n".join(_POINTERS.findall(reply)).splitlines():
        if match := _POINTER.fullmatch(line):
            named = set(_numbers(match["numbers"], total))
            known = {number for number in named if number < total}
            refused += len(named - known)
            if known:
                pointers.setdefault(" ".join(match["what"].split()), set()).update(known)
    found = [Pointer(what=what, messages=sorted(known)) for what, known in pointers.items()]
    return found, refused


def _numbers(text: str, total: int) -> Iterator[int]:
    for numbers in _NUMBERS.findall(text):
        # Python refuses numbers of thousands of digits; so long a one is unknown in any case.
        first, last = (int(number[:9] or 0) for number in numbers)
        yield first
        # A range may be any text: it is not spelled out beyond the first number that is unknown.
        yield from range(first + 1, min(last, total) + 1)


def _listed(pointers: Sequence[Pointer]) -> str:
    return "\n".join([prompt("pointers_list"), *(f"- {pointer.text()}" for pointer in pointers)])


def _fitted(pointers: list[Pointer], summary: str, budget: int) -> tuple[list[Pointer], str]:
    """Return as many pointers as half of a budget holds, and the summary cut to the rest."""
    count = token_counter().count
    while pointers and count(_listed(pointers)) > budget // 2:
        pointers = pointers[:-1]
    room = budget - (count(f"\n\n{_listed(pointers)}") if pointers else 0)
    return pointers, clipped_sections(summary, room) or summary
