"""Reading a grader's reply: tolerant about its wrapping, strict about its content.

Not every provider keeps to a schema, so the JSON may stand in a code fence or among prose. What
it says must be complete all the same: each requested criterion exactly once, nothing else, every
score a number from 0 to 5 or null; and each expected fact exactly once. Whatever a grader adds up
itself is ignored.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

from inspect_ai.model import ResponseSchema
from inspect_ai.util import JSONSchema
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval.facts.life import AnswerWord
from compression_eval.grading.rubric import MAX_SCORE, structure

RESPONSE_SCHEMA_NAME = "criterion_results"

Problem = Literal[
    "empty",
    "truncated",
    "not_json",
    "wrong_shape",
    "missing",
    "unknown",
    "duplicate",
    "out_of_range",
    "facts",
]
"""What can be wrong with the text of a reply; the rubric has a correction for each."""

_MOST_CHARACTERS = 400_000
_MOST_OBJECTS = 500
_SHOWN = 80


class CriterionResult(BaseModel):
    """One criterion's score with its reason, in the shape that is also kept in the log."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    criterionId: str  # noqa: N815
    score: Annotated[float, Field(strict=True)] | None
    """From 0 to 5; None where the criterion cannot apply to the question."""
    reasoning: str


class GraderReply(BaseModel):
    """The part of a grader's reply that counts."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    criterionResults: list[CriterionResult]  # noqa: N815


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    factId: str  # noqa: N815
    verdict: AnswerWord


class ReplyError(ValueError):
    """A reply that cannot be used.

    Attributes:
        problem: What kind of thing is wrong.
        detail: Which criteria, facts or field it concerns; short, fit to be shown to the grader.
    """

    def __init__(self, problem: Problem, detail: str = "") -> None:
        super().__init__(f"{problem}: {detail}" if detail else problem)
        self.problem: Problem = problem
        self.detail = detail


@dataclass(frozen=True)
class Reply:
    """What a grader said, as far as it can be used."""

    results: dict[str, CriterionResult]
    """By criterion id, in the order requested."""
    facts: dict[str, AnswerWord] | None = None
    """By fact id, in the order requested; None if none were asked for or they cannot be used."""
    problem: ReplyError | None = None
    """Why the facts cannot be used. The criteria are whole all the same."""


def response_schema() -> ResponseSchema:
    """Return the schema for providers that can hold a model to one.

    It is the same for every probe, because a schema that changes would spoil prompt caches.
    """
    result = JSONSchema(
        type="object",
        properties={
            "criterionId": JSONSchema(
                type="string", enum=[criterion.id for criterion in structure().criteria]
            ),
            "score": JSONSchema(
                anyOf=[JSONSchema(type="number"), JSONSchema(type="null")],
                description="from 0 to 5; null only where the criterion cannot apply",
            ),
            "reasoning": JSONSchema(type="string"),
        },
        required=["criterionId", "score", "reasoning"],
        additionalProperties=False,
    )
    fact = JSONSchema(
        type="object",
        properties={
            "factId": JSONSchema(type="string"),
            "verdict": JSONSchema(type="string", enum=list(get_args(AnswerWord))),
        },
        required=["factId", "verdict"],
        additionalProperties=False,
    )
    return ResponseSchema(
        name=RESPONSE_SCHEMA_NAME,
        json_schema=JSONSchema(
            type="object",
            properties={
                "criterionResults": JSONSchema(type="array", items=result),
                "facts": JSONSchema(type="array", items=fact),
            },
            required=["criterionResults", "facts"],
            additionalProperties=False,
        ),
        strict=True,
    )


def read_reply(
    text: str,
    requested: Sequence[str],
    facts: Sequence[str] = (),
    applicable: Collection[str] = (),
) -> Reply:
    """Return what a grader's reply says of criteria and facts.

    Args:
        text: The reply as it came.
        requested: Ids of the criteria that had to be graded.
        facts: Ids of the facts that a word was asked for.
        applicable: Ids of criteria that cannot be without a score.

    Raises:
        ReplyError: The criteria cannot be used, or there are two usable but different gradings.
            Of facts that cannot be used `Reply.problem` tells.
    """
    if not text.strip():
        raise ReplyError("empty")
    usable: list[Reply] = []
    error = ReplyError("not_json")
    for candidate in objects_with(text, "criterionResults"):
        try:
            results = _check(candidate, requested, applicable)
        except ReplyError as problem:
            error = problem
            continue
        try:
            usable.append(Reply(results, _facts(candidate, facts) if facts else None))
        except ReplyError as problem:
            usable.append(Reply(results, problem=problem))
    if not usable:
        raise error
    if any(_scores(other) != _scores(usable[0]) for other in usable):
        raise ReplyError("wrong_shape", "two different sets of results")
    words = [reply.facts for reply in usable if reply.facts is not None]
    if any(other != words[0] for other in words):
        return replace(usable[-1], facts=None, problem=ReplyError("facts", "two different lists"))
    return replace(usable[-1], facts=words[0], problem=None) if words else usable[-1]


def _scores(reply: Reply) -> list[float | None]:
    return [result.score for result in reply.results.values()]


def objects_with(text: str, key: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a model's reply that have a key, wherever they stand in it."""
    text = text[:_MOST_CHARACTERS]
    decoder = json.JSONDecoder(object_pairs_hook=_no_repeated_keys)
    at = text.find("{")
    tried = 0
    while at >= 0 and tried < _MOST_OBJECTS:
        tried += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, end = {}, at + 1
        if key in value:
            yield value
        else:
            end = at + 1  # the object that counts may be wrapped in another
        at = text.find("{", end)


def _no_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return value


def _check(
    candidate: dict[str, Any], requested: Sequence[str], applicable: Collection[str]
) -> dict[str, CriterionResult]:
    try:
        reply = GraderReply.model_validate(candidate)
    except ValidationError as error:
        raise _shape_error(candidate, error) from error
    given = [result.criterionId for result in reply.criterionResults]
    _refuse("unknown", [_shown(id_) for id_ in given if id_ not in requested])
    _refuse("duplicate", [id_ for id_, count in Counter(given).items() if count > 1])
    _refuse("missing", [id_ for id_ in requested if id_ not in given])
    _refuse(
        "out_of_range",
        [
            result.criterionId
            for result in reply.criterionResults
            if not _usable(result, applicable)
        ],
    )
    by_id = {result.criterionId: result for result in reply.criterionResults}
    return {id_: by_id[id_] for id_ in requested}


def _usable(result: CriterionResult, applicable: Collection[str]) -> bool:
    """Say whether a score is on the scale, or missing with a reason where it may be."""
    if result.score is None:
        return bool(result.reasoning.strip()) and result.criterionId not in applicable
    return 0 <= result.score <= MAX_SCORE


def _facts(candidate: dict[str, Any], wanted: Sequence[str]) -> dict[str, AnswerWord]:
    """Return the word on each fact, in the order asked for."""
    entries = candidate.get("facts")
    if not isinstance(entries, list):
        raise ReplyError("facts", "no list")
    words: dict[str, AnswerWord] = {}
    for number, entry in enumerate(entries, start=1):
        try:
            fact = _Fact.model_validate(entry)
        except ValidationError as error:
            raise ReplyError("facts", f"entry {number} has another shape") from error
        if fact.factId not in wanted:
            raise ReplyError("facts", f"not asked for: {_shown(fact.factId)}")
        if fact.factId in words:
            raise ReplyError("facts", f"more than once: {fact.factId}")
        words[fact.factId] = fact.verdict
    if missing := [name for name in wanted if name not in words]:
        raise ReplyError("facts", f"missing: {', '.join(missing)}")
    return {name: words[name] for name in wanted}


def _refuse(problem: Problem, ids: list[str]) -> None:
    if ids:
        raise ReplyError(problem, ", ".join(ids))


def _shape_error(candidate: dict[str, Any], error: ValidationError) -> ReplyError:
    """Say which field is wrong, or which criterion's score is not a number."""
    where = error.errors(include_url=False, include_input=False, include_context=False)[0]["loc"]
    match where:
        case ("criterionResults", int(index), "score", *_):
            entry = candidate["criterionResults"][index]
            if "score" in entry:
                return ReplyError("out_of_range", _shown(str(entry.get("criterionId"))))
    return ReplyError("wrong_shape", ".".join(str(part) for part in where))


def _shown(text: str) -> str:
    """Quote something that a grader made up, short enough to be sent back."""
    return json.dumps(text[:_SHOWN], ensure_ascii=False)
