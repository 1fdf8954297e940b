"""What a model may propose, and how a reply is read: a bad candidate does not spoil the rest."""

import json
from collections.abc import Iterator
from typing import Any

from inspect_ai.model import ResponseSchema
from inspect_ai.util import JSONSchema
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval.authoring.candidates import draft, fact
from compression_eval.authoring.history import History
from compression_eval.fixtures.banks import AnswerKey, Probe, ProbeType
from compression_eval.fixtures.models import BROKEN_TEXT, broken_text

_MOST_CHARACTERS = 400_000
_MOST_OBJECTS = 500
_MOST_CANDIDATES = 60


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ProposedFact(_Part):
    """A fact as a model gives it."""

    fact: str = Field(min_length=1)
    any_of: list[str] = Field(default_factory=list, max_length=20)
    superseded: list[str] = Field(default_factory=list, max_length=20)
    evidence: list[int] = Field(min_length=1, max_length=50)


class Proposal(_Part):
    """A probe as a model gives it."""

    question: str = Field(min_length=1)
    facts: list[ProposedFact] = Field(min_length=1, max_length=20)
    reference_answer: str = Field(min_length=1)
    reasons: list[str] = Field(default_factory=list, max_length=20)
    open_tasks: list[str] = Field(default_factory=list, max_length=20)

    def probe(self, history: History, kind: ProbeType, origin: str) -> Probe:
        """Return the proposal as a probe of a history."""
        keys = {"reasons": self.reasons if kind == "decision" else []}
        keys["open_tasks"] = self.open_tasks if kind == "continuation" else []
        filled = {name: _filled(values) for name, values in keys.items() if _filled(values)}
        facts = [
            fact(
                item.fact.strip() or item.fact,
                item.evidence,
                _filled(item.any_of),
                [*_filled(item.superseded)],
            )
            for item in self.facts
        ]
        key = AnswerKey.model_validate(filled) if filled else None
        answer = self.reference_answer.strip()
        return draft(history, kind, self.question.strip() or "?", facts, answer, origin, key)


class ReplyError(ValueError):
    """A reply without anything that can be read; the text is fit to be told to the model."""


def response_schema() -> ResponseSchema:
    """Return the form of a reply, for providers that can hold a model to one; the same for all."""
    text = JSONSchema(type="string")
    texts = JSONSchema(type="array", items=text)
    numbers = JSONSchema(type="array", items=JSONSchema(type="integer"))
    item = _object(fact=text, any_of=texts, superseded=texts, evidence=numbers)
    candidate = _object(
        question=text,
        facts=JSONSchema(type="array", items=item),
        reference_answer=text,
        reasons=texts,
        open_tasks=texts,
    )
    whole = _object(candidates=JSONSchema(type="array", items=candidate))
    return ResponseSchema(name="probe_candidates", json_schema=whole, strict=True)


def read_reply(text: str) -> list[Proposal | str]:
    """Return the candidates in a reply, in their order; for one that is malformed, what is wrong.

    Args:
        text: The reply; the JSON may stand in a code fence or among prose.

    Raises:
        ReplyError: There is no JSON object with candidates.
    """
    if not text.strip():
        raise ReplyError("it is empty")
    found = next((value for value in _objects(text[:_MOST_CHARACTERS])), None)
    if found is None:
        raise ReplyError("it holds no JSON object with a key `candidates`")
    listed = found["candidates"]
    if not isinstance(listed, list):
        raise ReplyError("`candidates` is not a list")
    return [_proposal(item) for item in listed[:_MOST_CANDIDATES]]


def _proposal(item: object) -> Proposal | str:
    if (place := broken_text(item)) is not None:
        return f"{place.lstrip('.')}: {BROKEN_TEXT}"
    try:
        return Proposal.model_validate(item)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in detail["loc"]) or "the candidate"
        return f"{where}: {detail['msg']}"


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            return
        try:
            value, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and "candidates" in value:
            yield value
        at = text.find("{", at + 1)


def _filled(values: list[str]) -> list[str]:
    return [value.strip() for value in values if value.strip()]


def _object(**properties: JSONSchema) -> JSONSchema:
    return JSONSchema(
        type="object",
        properties=properties,
        required=list(properties),
        additionalProperties=False,
    )
