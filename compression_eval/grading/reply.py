"""Read a grader's reply: tolerant about its wrapping, strict about its content.

It must be complete: each requested criterion exactly once and no other, every score a number from
0 to 5 or null; and each expected fact and wrong value exactly once. Totals that a grader computes
are ignored. A reply may contain several gradings if they agree. One that the graded answer contains
is not the grader's own, and does not count.
"""

import json
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, get_args

from inspect_ai.model import ResponseSchema
from inspect_ai.util import JSONSchema
from pydantic import BaseModel, Field, ValidationError

from compression_eval.facts.life import AnswerWord
from compression_eval.grading.asking import ReplyError, list_schema, object_schema, objects_with
from compression_eval.grading.rubric import MAX_SCORE, structure

MAX_SHOWN = 80
"""Characters of an invented id that are sent back."""

_RESULTS = "criterionResults"


class CriterionResult(BaseModel, frozen=True, strict=True):
    """One criterion's score with its reason, in the shape that is also kept in the log."""

    criterionId: str  # noqa: N815
    score: Annotated[float, Field(strict=True)] | None
    """From 0 to 5; None if the criterion cannot apply to the question."""
    reasoning: str


class _Results(BaseModel, frozen=True, strict=True):
    criterionResults: list[CriterionResult]  # noqa: N815


class _Fact(BaseModel, frozen=True, strict=True):
    factId: str  # noqa: N815
    verdict: AnswerWord


@dataclass(frozen=True)
class Reply:
    """The usable part of a grader's reply."""

    results: dict[str, CriterionResult]
    """By criterion id, in the order requested."""
    facts: dict[str, AnswerWord] | None = None
    """By fact id, in the order requested; None if none were asked for or they cannot be used."""
    problem: ReplyError | None = None
    """Why the facts are unusable; the criteria are complete regardless."""

    @property
    def content(self) -> list[tuple[float | None, str]]:
        """The scores with their reasons, but for white space."""
        return [(each.score, " ".join(each.reasoning.split())) for each in self.results.values()]


@cache
def response_schema() -> ResponseSchema:
    """Return the schema for providers that can force a model to keep to one.

    It is the same for every probe, because a schema that changes would spoil prompt caches.
    """
    return ResponseSchema(
        name="criterion_results",
        json_schema=object_schema(
            criterionResults=list_schema(
                criterionId=JSONSchema(type="string", enum=[c.id for c in structure().criteria]),
                score=JSONSchema(
                    anyOf=[JSONSchema(type="number"), JSONSchema(type="null")],
                    description="from 0 to 5; null only where the criterion cannot apply",
                ),
                reasoning=JSONSchema(type="string"),
            ),
            facts=list_schema(
                factId=JSONSchema(type="string"),
                verdict=JSONSchema(type="string", enum=list(get_args(AnswerWord))),
            ),
        ),
        strict=True,
    )


def read_reply(
    text: str,
    requested: Sequence[str],
    facts: Sequence[str] = (),
    applicable: Collection[str] = (),
    answer: str = "",
) -> Reply:
    """Parse a grader's reply into results by criterion and words by fact.

    Args:
        text: The reply without its thinking.
        requested: Ids of the criteria that had to be graded.
        facts: Ids of the facts and wrong values that a word was asked for.
        applicable: Ids of criteria that cannot be without a score.
        answer: The graded answer: a grading that it contains is not the grader's.

    Raises:
        ReplyError: The criteria cannot be used, or it is not certain that they are the grader's.
            Its problem is one for which the rubric has a correction. Of facts that cannot be used
            `Reply.problem` tells.
    """
    if not text.strip():
        raise ReplyError("empty")
    held = []
    for candidate in objects_with(answer, _RESULTS):
        with suppress(ReplyError):
            held.append(Reply(_results(candidate, requested, ())).content)
    found: list[Reply] = []
    for candidate in objects_with(text, _RESULTS):
        reply = Reply(_results(candidate, requested, applicable))
        try:
            words = _facts(candidate.get("facts"), facts) if facts else None
        except ReplyError as problem:
            found.append(replace(reply, problem=problem))
        else:
            found.append(replace(reply, facts=words))
    if not found:
        raise ReplyError("not_json")
    own = [reply for reply in found if reply.content not in held]
    if not own:
        raise ReplyError("wrong_shape", "the results that the response itself contains")
    scores = [[score for score, _ in reply.content] for reply in own]
    if any(other != scores[0] for other in scores):
        raise ReplyError("wrong_shape", "two different sets of results")
    words_of_all = [reply.facts for reply in own if reply.facts is not None]
    if any(other != words_of_all[0] for other in words_of_all):
        return replace(own[-1], facts=None, problem=ReplyError("facts", "two different lists"))
    return replace(own[-1], facts=words_of_all[0], problem=None) if words_of_all else own[-1]


def _results(
    candidate: dict[str, Any], requested: Sequence[str], applicable: Collection[str]
) -> dict[str, CriterionResult]:
    try:
        results = _Results.model_validate(candidate).criterionResults
    except ValidationError as error:
        raise _shape_error(candidate, error) from error
    by_id = {result.criterionId: result for result in results}
    graded = [result.criterionId for result in results]
    wrong = {
        "unknown": [_shown(id_) for id_ in graded if id_ not in requested],
        "duplicate": [id_ for id_, count in Counter(graded).items() if count > 1],
        "missing": [id_ for id_ in requested if id_ not in graded],
        "out_of_range": [each.criterionId for each in results if not _usable(each, applicable)],
    }
    for problem, ids in wrong.items():
        if ids:
            raise ReplyError(problem, ", ".join(ids))
    return {id_: by_id[id_] for id_ in requested}


def _usable(result: CriterionResult, applicable: Collection[str]) -> bool:
    """Return whether a score is on the scale, or missing with a reason where that is allowed."""
    if result.score is None:
        return bool(result.reasoning.strip()) and result.criterionId not in applicable
    return 0 <= result.score <= MAX_SCORE


def _shape_error(candidate: dict[str, Any], error: ValidationError) -> ReplyError:
    """Name the wrong field, or the criterion whose score is not a number."""
    where = error.errors(include_url=False, include_input=False, include_context=False)[0]["loc"]
    match where:
        case ("criterionResults", int(index), "score", *_):
            entry = candidate["criterionResults"][index]
            if "score" in entry:
                return ReplyError("out_of_range", _shown(str(entry.get("criterionId"))))
    return ReplyError("wrong_shape", ".".join(str(part) for part in where))


def _facts(entries: object, wanted: Sequence[str]) -> dict[str, AnswerWord]:
    """Return the word on each fact, in the order asked for."""
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


def _shown(invented: str) -> str:
    return json.dumps(invented[:MAX_SHOWN], ensure_ascii=False)
