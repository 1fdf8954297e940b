"""A conversation as a reader hands it over: not yet a fixture, everything still accounted for.

Readers only say what a file holds. What every fixture needs whatever it came from (results right
behind their calls, no empty turns, images described) is done once, in `building`.
"""

from dataclasses import dataclass, field
from typing import Literal

from compression_eval.conversations.ledger import Ledger
from compression_eval.fixtures.models import ToolDefinition

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class Image:
    """An image in a message."""

    media_type: str = ""
    """As ``image/png``; empty if the file does not say."""
    url: str = ""
    """A ``data:`` or web address; empty if the image itself is not in the file."""
    size: int | None = None
    """Bytes, if known."""


@dataclass(frozen=True)
class DraftCall:
    """A tool call."""

    id: str
    name: str
    arguments: str
    """As the file has them: as a rule a JSON object as text; may be invalid or empty."""


@dataclass(eq=False)
class Draft:
    """One message to be. Two drafts are the same only if they are the same object."""

    role: Role
    content: list[str | Image] = field(default_factory=list)
    """Texts and images in their order; empty strings are dropped later."""
    calls: list[DraftCall] = field(default_factory=list)
    """Of an assistant message."""
    call_id: str | None = None
    """Of a tool message: the call that it answers."""
    injected: bool = False
    """Of a user message: whether the agent's client put it in, as the file says."""

    @property
    def text(self) -> str:
        """The texts, joined by line breaks."""
        return "\n".join(part for part in self.content if isinstance(part, str) and part)


@dataclass(eq=False)
class Compaction:
    """A compaction that the agent carried out while it was recorded."""

    after: Draft | None
    """The last message before it; none if there was nothing before."""
    kind: Literal["summary", "clear", "opaque"] = "summary"
    """As in `fixtures.models.RecordedCompaction`."""
    trigger: str = ""
    summary: str | None = None
    """The summary as the agent wrote it; None if it cannot be read."""
    tokens_before: int | None = None
    tokens_after: int | None = None
    state: list[Draft] | None = None
    """What the agent went on with, beside the system prompt.

    Drafts that also stand in the conversation were kept as they are; others were made by the
    compaction. None if the file does not tell.
    """


@dataclass(eq=False)
class Conversation:
    """One thread between a user and an agent; sub-agents and side chains are their own."""

    format: str
    """Name of the format that it was read from."""
    origin: str
    """What recorded it, for people, as ``Claude Code 2.1.36``."""
    session: str
    """The session's id in the file; empty if there is none."""
    ledger: Ledger
    """What became of every line or event of this thread."""
    drafts: list[Draft] = field(default_factory=list)
    """The whole true history, in order; never a summary that stands in for earlier messages."""
    compactions: list[Compaction] = field(default_factory=list)
    part: str = ""
    """Which thread of the session, as ``agent-3f2a`` or ``epoch-2``; empty for the main one."""
    model: str = ""
    context_length: int | None = None
    tools: list[ToolDefinition] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)
    """What the file lacks or what could not be carried over, in words without content."""
