"""Reading a grader's reply: tolerant about its wrapping, strict about its content.

Not every provider keeps to a schema, so the JSON may stand in a code fence or among prose. What
it says must be complete all the same: each requested criterion exactly once, nothing else, every
score a number from 0 to 5. Whatever a grader adds up itself is ignored.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from inspect_ai.model import ResponseSchema
from inspect_ai.util import JSONSchema
from pydantic import BaseModel, ConfigDict, Field, ValidationError

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
    """From 0 to 5; None where the grader has no way to tell."""
    reasoning: str


class GraderReply(BaseModel):
    """The part of a grader's reply that counts."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    criterionResults: list[CriterionResult]  # noqa: N815


class ReplyError(ValueError):
    """A reply that cannot be used.

    Attributes:
        problem: What kind of thing is wrong.
        detail: Which criteria or field it concerns; short, fit to be shown to the grader.
    """

    def __init__(self, problem: Problem, detail: str = "") -> None:
        super().__init__(f"{problem}: {detail}" if detail else problem)
        self.problem: Problem = problem
        self.detail = detail


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
            "score": JSONSchema(type="number", description="from 0 to 5"),
            "reasoning": JSONSchema(type="string"),
        },
        required=["criterionId", "score", "reasoning"],
        additionalProperties=False,
    )
    return ResponseSchema(
        name=RESPONSE_SCHEMA_NAME,
        json_schema=JSONSchema(
            type="object",
            properties={"criterionResults": JSONSchema(type="array", items=result)},
            required=["criterionResults"],
            additionalProperties=False,
        ),
        strict=True,
    )


def read_reply(
    text: str, requested: Sequence[str], *, allow_ungraded: bool = False
) -> dict[str, CriterionResult]:
    """Return the results in a grader's reply, in the order requested.

    Args:
        text: The reply as it came.
        requested: Ids of the criteria that had to be graded.
        allow_ungraded: Whether ``null`` is a score, meaning that there is no value.

    Raises:
        ReplyError: The reply cannot be used, or holds two usable but different gradings.
    """
    if not text.strip():
        raise ReplyError("empty")
    usable: list[dict[str, CriterionResult]] = []
    error = ReplyError("not_json")
    for candidate in _candidates(text[:_MOST_CHARACTERS]):
        try:
            usable.append(_check(candidate, requested, allow_ungraded))
        except ReplyError as problem:
            error = problem
    if not usable:
        raise error
    if any(_scores(other) != _scores(usable[0]) for other in usable):
        raise ReplyError("wrong_shape", "two different sets of results")
    return usable[-1]


def _scores(results: dict[str, CriterionResult]) -> list[float | None]:
    return [result.score for result in results.values()]


def _candidates(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in ``text`` that claim to be results."""
    decoder = json.JSONDecoder(object_pairs_hook=_no_repeated_keys)
    at = text.find("{")
    tried = 0
    while at >= 0 and tried < _MOST_OBJECTS:
        tried += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, end = {}, at + 1
        if "criterionResults" in value:
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
    candidate: dict[str, Any], requested: Sequence[str], allow_ungraded: bool
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
            if not (allow_ungraded if result.score is None else 0 <= result.score <= MAX_SCORE)
        ],
    )
    by_id = {result.criterionId: result for result in reply.criterionResults}
    return {id_: by_id[id_] for id_ in requested}


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
