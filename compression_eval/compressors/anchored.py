"""Anchored iterative summarising: a persistent memory in sections, updated by code.

Source: "Evaluating Context Compression for AI Agents" (Factory, 2025) describes the idea: fixed
sections, and only the newly dropped span is summarised. The rest is ours: a model proposes typed
operations, and code applies them. An entry that no operation names stays unchanged, byte for byte,
and entries over the budget are evicted by a stated rule (`Memory.fitted`).
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, get_args

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ResponseSchema,
)
from inspect_ai.tool import ToolInfo
from inspect_ai.util import JSONSchema
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.strategy import strategy
from compression_eval.compressors.summarising import SummarisingCompaction, completion
from compression_eval.compressors.tokens import token_counter

Section = Literal["intent", "constraints", "files", "decisions", "state", "problems", "next_steps"]
SECTIONS: tuple[Section, ...] = get_args(Section)

_PREFIXES = dict(zip(SECTIONS, "icfdspn", strict=True))
_EVICTED_LAST: tuple[Section, ...] = ("constraints", "intent")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Add(_Model):
    """Put a new entry into a section."""

    op: Literal["add"]
    section: Section
    text: str = Field(min_length=1)


class Supersede(_Model):
    """Replace an entry's text by what contains now."""

    op: Literal["supersede"]
    id: str
    text: str = Field(min_length=1)


class Close(_Model):
    """Mark an entry as done or settled."""

    op: Literal["close"]
    id: str
    text: str = ""


class Operations(_Model):
    """A model's reply."""

    operations: list[Annotated[Add | Supersede | Close, Field(discriminator="op")]]

    @classmethod
    def parsed(cls, reply: str) -> "Operations":
        """Return the operations of a reply: a JSON object, in a code fence or prose or alone.

        Raises:
            ValidationError: It contains no such object.
        """
        start, end = reply.find("{"), reply.rfind("}")
        return cls.model_validate_json(reply[start : end + 1] if 0 <= start < end else reply)


class Entry(_Model):
    """One fact of the memory."""

    id: str
    text: str
    closed: bool = False
    cycle: int
    """The compression that wrote it, from 1."""


def _no_entries() -> dict[Section, list[Entry]]:
    return {name: [] for name in SECTIONS}


class Memory(_Model):
    """All entries by section, with the counters that later compressions continue."""

    sections: dict[Section, list[Entry]] = Field(default_factory=_no_entries)
    cycle: int = 0
    next_number: int = 1
    evicted: int = 0
    """Entries evicted so far to stay within the budget."""
    refused: int = 0
    """Operations that named no existing entry, or would have written a blank one."""

    def merged(self, operations: Operations) -> "Memory":
        """Return this memory after a model's operations; `self` does not change.

        An operation with an unknown id or a blank text is not applied; `refused` counts it.
        """
        memory = self.model_copy(deep=True)
        memory.cycle += 1
        known = {entry.id: entry for entries in memory.sections.values() for entry in entries}
        for operation in operations.operations:
            text = " ".join(operation.text.split())
            target = None if isinstance(operation, Add) else known.get(operation.id)
            if isinstance(operation, Close) and target:
                target.closed = True
                if text:
                    target.text = f"{target.text} -> {text}"
            elif isinstance(operation, Supersede) and target and text:
                target.text, target.closed, target.cycle = text, False, memory.cycle
            elif isinstance(operation, Add) and text:
                identifier = f"{_PREFIXES[operation.section]}{memory.next_number}"
                memory.next_number += 1
                entry = Entry(id=identifier, text=text, cycle=memory.cycle)
                memory.sections[operation.section].append(entry)
            else:
                memory.refused += 1
        return memory

    def fitted(self, budget: int, count: Callable[[str], int]) -> "Memory":
        """Return this memory with entries evicted until its text fits the budget.

        Closed entries go first, oldest first; then the oldest entry of the longest section among
        problems, state, files, decisions and next steps; then, if nothing else is left, of
        constraints and intent.

        Example, with the cycle that wrote each entry and its tokens::

            files     f2 (cycle 1, 20)  f5 (cycle 2, 20)
            state     s3 (cycle 1, 25)  s6 (cycle 2, 10)
            problems  p4 (cycle 2, 15, closed)
            intent    i1 (cycle 1, 90)

        p4 goes first, because it is closed. Of the open ones files are then the longest, 40 tokens
        to 35: f2 goes, the oldest of them. Now state is longer, 35 to 20: s3 goes, then f5 and s6,
        and i1 only after all of these.

        Args:
            budget: Tokens for the rendered text.
            count: Counts the tokens of a text.
        """
        memory = self.model_copy(deep=True)
        if count(memory.render()) <= budget:
            return memory
        order = list(memory._eviction_order(count))

        def without(number: int) -> Memory:
            gone = {id(entry) for entry in order[:number]}
            left = {
                name: [entry for entry in entries if id(entry) not in gone]
                for name, entries in memory.sections.items()
            }
            return memory.model_copy(update={"sections": left, "evicted": self.evicted + len(gone)})

        # Counting the whole text after each of thousands of evictions would take minutes.
        numbers = range(1, len(order) + 1)
        return without(
            1 + bisect_left(numbers, True, key=lambda n: count(without(n).render()) <= budget)
        )

    def _eviction_order(self, count: Callable[[str], int]) -> Iterator[Entry]:
        entries = [entry for section in self.sections.values() for entry in section]
        yield from sorted((e for e in entries if e.closed), key=lambda entry: entry.cycle)
        left = {name: [e for e in own if not e.closed] for name, own in self.sections.items()}
        by_age = {name: deque(sorted(left[name], key=lambda entry: entry.cycle)) for name in left}
        totals = {name: sum(count(e.text) for e in entries) for name, entries in left.items()}
        for last in (False, True):
            while choice := [n for n in by_age if by_age[n] and (n in _EVICTED_LAST) is last]:
                longest = max(choice, key=totals.__getitem__)
                entry = by_age[longest].popleft()
                totals[longest] -= count(entry.text)
                yield entry

    def render(self) -> str:
        """Return the memory as the agent reads it, empty sections marked as such."""
        blocks = []
        for name, entries in self.sections.items():
            lines = [f"- {'[closed] ' if entry.closed else ''}{entry.text}" for entry in entries]
            title = name.replace("_", " ").capitalize()
            blocks.append("\n".join([f"## {title}", *(lines or ["(none)"])]))
        if self.evicted:
            blocks.append(f"({self.evicted} older entries were dropped to stay within the budget.)")
        return "\n\n".join(blocks)

    def for_model(self) -> dict[str, Any]:
        """Return the memory as the summarising model reads it, with ids to refer to."""
        return {
            "sections": {
                name: [
                    {"id": e.id, "text": e.text, **({"closed": "yes"} if e.closed else {})}
                    for e in entries
                ]
                for name, entries in self.sections.items()
            }
        }


def operations_schema() -> ResponseSchema:
    """Return the schema of `Operations`, for providers that can enforce one.

    It is written out because a schema derived from the models loses what an operation is, and
    because strict modes want every field named as required.
    """

    def schema(**properties: JSONSchema) -> JSONSchema:
        return JSONSchema(
            type="object",
            properties=properties,
            required=list(properties),
            additionalProperties=False,
        )

    def named(*names: str) -> JSONSchema:
        return JSONSchema(type="string", enum=list(names))

    text = JSONSchema(type="string")
    operations = [
        schema(op=named("add"), section=named(*SECTIONS), text=text),
        schema(op=named("supersede"), id=text, text=text),
        schema(op=named("close"), id=text, text=text),
    ]
    several = JSONSchema(type="array", items=JSONSchema(anyOf=operations))
    return ResponseSchema(
        name="anchored_operations", json_schema=schema(operations=several), strict=True
    )


@strategy
class AnchoredCompaction(SummarisingCompaction):
    """Replace the middle of a conversation by a memory that is carried from cycle to cycle.

    The memory lives in the metadata of the message that carries it, not in this object, so that
    one object can serve many conversations at once.
    """

    summary = "a memory in sections; a model adds what is dropped, and code merges it"
    key = "compression_eval_memory"
    instructions = "anchored"

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return head, memory and tail; and the message that carries the memory."""
        plan = self.plan(messages)
        memory = Memory.model_validate(plan.earlier or {})
        request = self.request(plan, {"current_summary": memory.for_model()})
        memory = memory.merged(await self._operations(model, request))
        memory = memory.fitted(plan.tokens, token_counter().count)
        if not any(memory.sections.values()):
            raise CompressionError("empty", "the memory has no entries")
        message = self.carrier(memory.render(), memory.model_dump(mode="json"))
        return self.state(plan, message), message

    async def _operations(self, model: Model, request: list[ChatMessage]) -> Operations:
        """Return the operations that a model proposes; it may repair its reply once."""
        config = GenerateConfig(response_schema=operations_schema())
        reason = ""
        for _ in range(2):
            reply = completion(await model.generate(request, config=config))
            try:
                return Operations.parsed(reply)
            except ValidationError as error:
                detail = error.errors(include_url=False, include_input=False)[0]
                where = ".".join(str(part) for part in detail["loc"])
                reason = f"{where}: {detail['msg']}" if where else detail["msg"]
            repair = ChatMessageUser(content=f"{prompt('repair')}\n\n{reason}")
            request = [*request, ChatMessageAssistant(content=reply), repair]
        reason = f"the summarising model's operations are unusable: {reason}"
        raise CompressionError("error", reason)
