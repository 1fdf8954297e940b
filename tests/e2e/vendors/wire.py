"""What the fake vendors have in common: requests taken apart, and what is said in reply."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Part:
    """One piece of a request's conversation, whatever its vendor calls it."""

    role: str
    kind: str
    """``text``, ``call`` or ``result``."""
    text: str
    """The text; the arguments of a call as JSON; the text of a result."""
    id: str = ""
    """Id of the call that this is, or is the result of."""
    name: str = ""
    """Name of the tool that is called."""


@dataclass(frozen=True)
class Asked:
    """A request that a vendor accepted."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    parts: list[Part]
    number: int
    """Which request about this model it is, from 0."""

    @property
    def model(self) -> str:
        """The model that is asked."""
        return str(self.body["model"])

    @property
    def trial(self) -> bool:
        """Whether Inspect only tries what the interface can do, with a bare text as input."""
        return isinstance(self.body.get("input"), str)

    @property
    def text(self) -> str:
        """All that is said in the request."""
        return "\n".join(part.text for part in self.parts)


@dataclass(frozen=True)
class Said:
    """A reply before it is put into a vendor's form."""

    text: str = ""
    call: tuple[str, dict[str, Any]] | None = None
    """Name and arguments of a tool call."""
    refused: bool = False
    cut_off: bool = False
    nothing: bool = False
    """Whether the list that contains the reply is empty."""
    input_tokens: int = 200
    output_tokens: int = 20


@dataclass(frozen=True)
class Failed:
    """An error in place of a reply."""

    status: int
    """HTTP status; 0 if the connection is closed without a word."""
    kind: str
    """The vendor's word for it."""
    message: str
    code: str | None = None


@dataclass(frozen=True)
class Broken:
    """Bytes in place of a vendor's reply, whole or in part."""

    content: str
    kind: str = "application/json"
    missing: int = 0
    """Bytes that are announced and never come: the connection is reset instead."""
    seconds: float = 0.0
    """How long the second half takes."""


class RefusedError(Exception):
    """A request that the vendor does not accept; the text says why."""


Speech = Callable[[Asked], "str | Said | Failed | Broken"]


@dataclass
class Vendor:
    """What the models of one fake vendor say, and what they were asked."""

    speeches: dict[str, Speech] = field(default_factory=dict)
    """By model."""
    asked: list[Asked] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Why requests were not accepted."""

    def begin(self, speeches: dict[str, Speech]) -> None:
        """Forget what was asked, and let the models speak so."""
        self.speeches = speeches
        self.asked.clear()
        self.refused.clear()

    def of(self, model: str) -> list[Asked]:
        """Return the requests to one model, but for Inspect's own trial of an interface."""
        return [asked for asked in self.asked if asked.model == model and not asked.trial]


def need(condition: object, problem: str) -> None:
    """Refuse a request unless a condition contains."""
    if not condition:
        raise RefusedError(problem)


def as_json(value: object) -> str:
    """Return a value as JSON with its keys in order, so that two can be compared."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def check_schema_is_meant(node: dict[str, Any]) -> None:
    """Refuse a JSON schema with a part that allows anything, such as ``items: {}``."""
    need(node.get("type") or node.get("anyOf"), f"schema: no type in {as_json(node)}")
    for branch in node.get("anyOf", []):
        check_schema_is_meant(branch)
    for part in node.get("properties", {}).values():
        check_schema_is_meant(part)
    if node.get("type") == "array":
        check_schema_is_meant(node.get("items", {}))
