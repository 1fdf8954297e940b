"""One line of a Claude Code session: what is needed of it, and the names that link it."""

from dataclasses import dataclass, field
from typing import Any

from compression_eval.conversations.fields import label, list_of, mapping_of, text_of
from compression_eval.conversations.readers.claude_code_marks import marks
from compression_eval.conversations.sources import Value

LINKED = ("user", "assistant", "system", "attachment", "progress")
"""Types of lines that form the tree of a session."""

_TRANSCRIPT_ONLY = "isVisibleInTranscriptOnly"
_KEPT = {
    "user": ("message", "origin", "planContent", "isMeta", "isCompactSummary", _TRANSCRIPT_ONLY),
    "assistant": ("message", "isApiErrorMessage"),
    "attachment": ("attachment",),
    "system": ("compactMetadata", "microcompactMetadata"),
    "queue-operation": ("content",),
}
"""Other fields are not held while a file is read: they repeat results for the display."""


@dataclass(eq=False)
class Record:
    """One line."""

    place: str
    kind: str
    """As it is entered in the account: ``attachment:queued_command``."""
    type: str = ""
    subtype: str = ""
    uuid: str = ""
    parent: str = ""
    """The line before it in its branch; empty at a root."""
    session: str = ""
    agent: str = ""
    """Id of the subagent, if its lines carry one."""
    sidechain: bool = False
    version: str = ""
    value: dict[str, Any] = field(default_factory=dict)
    """The fields that are looked into later."""
    problem: str = ""
    foreign: bool = False
    """Whether the line is JSON, but no object."""
    hook: str = ""
    """Name of the hook that the line reports on."""
    restart: bool = False
    """Whether the context was cleared before this line, so as to carry out a plan."""
    replaced: bool = False
    display_copy: bool = False
    """Whether a second form of a tool's result stood beside it."""

    @property
    def linked(self) -> bool:
        """Whether the line is part of the tree."""
        return bool(self.uuid) and self.type in LINKED

    @property
    def speaks(self) -> bool:
        """Whether the line is of a message."""
        return self.type in ("user", "assistant")

    @property
    def boundary(self) -> bool:
        """Whether the context was compacted here."""
        return self.kind == "system:compact_boundary"

    @property
    def summary(self) -> bool:
        """Whether this is the user message that hands a summary on."""
        return self.type == "user" and self.value.get("isCompactSummary") is True

    @property
    def plan(self) -> bool:
        """Whether this is the user message that hands a plan on to a cleared context."""
        return self.type == "user" and (
            bool(text_of(self.value, "planContent")) or self.said.startswith(marks().plan_start)
        )

    @property
    def injected(self) -> bool:
        """Whether a user line says of itself that no person wrote it."""
        kind = text_of(mapping_of(self.value, "origin"), "kind")
        return self.value.get("isMeta") is True or kind not in ("", "human")

    @property
    def message(self) -> dict[str, Any]:
        """The API message, or what of it is in this line."""
        return mapping_of(self.value, "message")

    def blocks(self, kind: str) -> list[dict[str, Any]]:
        """Return the content blocks of a kind."""
        return [
            block for block in list_of(self.message, "content") if text_of(block, "type") == kind
        ]

    @property
    def said(self) -> str:
        """What the user typed, trimmed; empty for lines of any other sort."""
        prompt: Any = None
        if self.kind == "attachment:queued_command":
            prompt = mapping_of(self.value, "attachment").get("prompt")
        elif self.type == "user":
            prompt = self.message.get("content")
        if isinstance(prompt, list):
            prompt = "\n".join(text_of(block, "text") for block in prompt)
        return prompt.strip() if isinstance(prompt, str) else ""


def record(item: Value) -> Record:
    """Return a line as a record."""
    value = item.value
    if item.problem:
        return Record(item.place, "unreadable", problem=item.problem)
    if not isinstance(value, dict):
        return Record(item.place, "no object", foreign=True)
    kind = text_of(value, "type")
    subtype = _subtype(kind, value)
    return Record(
        place=item.place,
        kind=label(kind) + (f":{label(subtype)}" if subtype else ""),
        type=kind,
        subtype=subtype,
        uuid=text_of(value, "uuid"),
        parent=text_of(value, "parentUuid") or text_of(value, "logicalParentUuid"),
        session=text_of(value, "sessionId"),
        agent=text_of(value, "agentId"),
        sidechain=value.get("isSidechain") is True,
        hook=text_of(mapping_of(value, "data"), "hookName")
        or text_of(mapping_of(value, "attachment"), "hookName"),
        version=text_of(value, "version"),
        value={key: value[key] for key in _KEPT.get(kind, ()) if key in value},
        replaced=item.replaced,
        display_copy="toolUseResult" in value,
    )


def _subtype(kind: str, value: dict[str, Any]) -> str:
    if kind == "system":
        return text_of(value, "subtype")
    if kind == "queue-operation":
        return text_of(value, "operation")
    if kind == "attachment":
        return text_of(mapping_of(value, "attachment"), "type")
    if kind == "progress":
        return text_of(mapping_of(value, "data"), "type")
    return ""
