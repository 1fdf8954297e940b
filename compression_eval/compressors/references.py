"""References in place of what was removed, so that an agent with a tool can read it again.

Products keep the transcript on disk and tell the agent where it is after a compaction: Cursor's
chat history as files, the transcript lookup of GitHub Copilot in VS Code, Claude's transcripts.
This is the form without a summary: a line for each removed message or group, written by code.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, Model
from inspect_ai.tool import ToolCall, ToolInfo
from pydantic import BaseModel, Field, PositiveInt

from compression_eval.compressors.budget import groups
from compression_eval.compressors.strategy import strategy
from compression_eval.compressors.summarising import SpanCompaction
from compression_eval.compressors.tokens import token_counter
from compression_eval.file_ops.tools import command_of, paths_of

_MAX_QUOTED = 80
"""Characters of a path, a command or the beginning of a text."""


class Numbers(BaseModel):
    """Numbers of messages in the original conversation, from one compression to the next."""

    total: int = 0
    """How many messages the conversation had so far."""
    given: dict[str, int] = Field(default_factory=dict)
    """Number of each message, by id, that the last compression was given."""

    def of(self, messages: Sequence[ChatMessage], key: str) -> "Numbers":
        """Return these numbers with those of new messages.

        Without an earlier compression every message is new, and its number its position. After
        one, those are new that stand after all that it left; any other unknown message was written
        or restored by somebody else, and has no number.

        Args:
            messages: What a strategy was given.
            key: Metadata key of the message that an earlier compression wrote.
        """
        known = {position for position, m in enumerate(messages) if m.id in self.given}
        known |= {position for position, m in enumerate(messages) if key in (m.metadata or {})}
        new = messages[max(known, default=-1) + 1 :]
        there = {m.id: self.given[m.id] for m in messages if m.id in self.given}
        added = {m.id: self.total + place for place, m in enumerate(new) if m.id}
        return Numbers(total=self.total + len(new), given=there | added)

    def among(self, messages: Sequence[ChatMessage]) -> list[int | None]:
        """Return the numbers of some messages; None for one that has none."""
        return [self.given.get(message.id or "") for message in messages]


class Reference(BaseModel):
    """What a line stands for: some messages that follow one another."""

    first: int
    last: int
    tokens: int
    what: str = ""
    """Roles, and the calls or the beginning of the text; empty for what was merged."""
    messages: int = 1
    tools: dict[str, int] = Field(default_factory=dict)
    """How often each tool was called."""

    def line(self) -> str:
        """Return the line in the list."""
        which = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        calls = ", ".join(f"{name} {number}" for name, number in self.tools.items())
        what = self.what or f"{self.messages} messages" + (f" (calls: {calls})" if calls else "")
        return f"- {which} {what}, {self.tokens:,} tokens"


class _Carried(BaseModel):
    references: list[Reference] = Field(default_factory=list)
    numbers: Numbers = Field(default_factory=Numbers)


@strategy
class ReferencesCompaction(SpanCompaction):
    """Replace the middle of a conversation by a list of references to its messages.

    A reference has the numbers of a message, or of a call with its results, in the original
    conversation; the roles; the tools with their paths or commands, or the beginning of a text; and
    the size. No model is called.
    """

    summary = "what is removed becomes a list of its messages, by number, tool and path or command"
    calls_model = False
    key = "compression_eval_references"
    frame = "references_carrier"
    deed = "refer to"
    kind = "edit"

    reference_tokens: PositiveInt = 1_500
    """Budget of the list in tokens: over that, the oldest references become one. With
    ``target_tokens`` only its proportion to ``tail_tokens`` counts."""

    @property
    def budget(self) -> int:
        """The budget of the list."""
        return self.reference_tokens

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return head, references and tail; and the message with the references."""
        plan = self.plan(messages)
        earlier = _Carried.model_validate(plan.earlier or {})
        numbers = earlier.numbers.of(messages, self.key)
        references = earlier.references
        for group in groups(plan.window.span):
            found = [number for number in numbers.among(group) if number is not None]
            # A target's tail may repeat what is referred to already.
            if found and found[-1] > max((each.last for each in references), default=-1):
                references = [*references, _reference(group, found)]
        references = _fitted(references, plan.tokens, token_counter().count)
        carried = _Carried(references=references, numbers=numbers)
        message = self.carrier(_listed(references), carried.model_dump(mode="json"))
        return self.state(plan, message), message


def _reference(group: Sequence[ChatMessage], numbers: Sequence[int]) -> Reference:
    first = group[0]
    calls = (first.tool_calls or []) if isinstance(first, ChatMessageAssistant) else []
    what = "; ".join(map(_call, calls)) or _quoted(first.text)
    roles = ", ".join(dict.fromkeys(message.role for message in group))
    return Reference(
        first=min(numbers),
        last=max(numbers),
        tokens=token_counter().messages(group),
        what=f"{roles}: {what}",
        messages=len(group),
        tools=Counter(map(_name, calls)),
    )


def _call(call: ToolCall) -> str:
    command = command_of(call.arguments)
    named = [command] if isinstance(command, str) else command or paths_of(call.arguments)
    named = named or [value for value in call.arguments.values() if isinstance(value, str)][:1]
    return " ".join([_name(call), *map(_quoted, named)])


def _name(call: ToolCall) -> str:
    return "".join(call.function.split())[:_MAX_QUOTED]  # a name may be any text


def _quoted(text: str) -> str:
    """Return the beginning of a text in one line, in quotation marks that it cannot end."""
    line = " ".join(text.split())
    short = line if len(line) <= _MAX_QUOTED else f"{line[:_MAX_QUOTED]}…"
    return json.dumps(short, ensure_ascii=False)


def _listed(references: Sequence[Reference]) -> str:
    return "\n".join(reference.line() for reference in references)


def _fitted(
    references: list[Reference], budget: int, count: Callable[[str], int]
) -> list[Reference]:
    """Merge as many of the oldest references into one as the budget asks for."""

    def merged(number: int) -> list[Reference]:
        old = references[:number]
        tools: Counter[str] = sum((Counter(each.tools) for each in old), Counter())
        one = Reference(
            first=min(each.first for each in old),
            last=max(each.last for each in old),
            tokens=sum(each.tokens for each in old),
            messages=sum(each.messages for each in old),
            tools=dict(tools.most_common()),
        )
        return [one, *references[number:]]

    if count(_listed(references)) <= budget or len(references) < 2:
        return references
    numbers = range(2, len(references))
    return merged(2 + bisect_left(numbers, True, key=lambda n: count(_listed(merged(n))) <= budget))
