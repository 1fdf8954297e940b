"""Read a grader's reply: tolerant about its wrapping, strict about its content.

It must be complete: each requested criterion exactly once and no other, every score a number from
0 to 5 or null; and each expected fact exactly once. Totals that a grader computes are ignored.

It must also be the grader's own. An answer may hold a grading to be quoted, so a reply with more
than one grading counts only if they agree, and not if one of them cannot be read or used.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, get_args

from inspect_ai.model import ResponseSchema
from inspect_ai.util import JSONSchema
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval.facts.life import AnswerWord
from compression_eval.grading.asking import (
    ReplyError,
    list_schema,
    located_objects,
    object_schema,
    objects_with,
)
from compression_eval.grading.rubric import MAX_SCORE, structure

MAX_SHOWN = 80
"""Characters of an invented id that are sent back."""

_RESULTS = "criterionResults"
_KEY = re.compile(_RESULTS + r"""[\\"'`\s]{0,8}:(?:\s|\\+[nrt])*+(?:[\[{]|-\s)""")
"""The key of a grading with the beginning of its value, in JSON or in what was to be JSON."""
_LINE_BEGINS = re.compile(r"(?:[\s\u200b\ufeff\[({`~]|json\b|<[^<>\n]{1,40}>)*+")
"""What may stand between the beginning of a line and a grading: what it is wrapped in."""
_LINE_ENDS = re.compile(r"(?:[^\S\n]|[\u200b\ufeff}\])`~;]|<[^<>\n]{1,40}>)*+(?:\n|\Z)")
"""What may stand between a grading and the end of its line."""
_REMARK = re.compile(r"[}\])`]*+[;,.]*+(?:[\s\u200b]++(?P<letter>[^\W\d_])|[^\S\n]*+(?:\n|\Z))")
"""How a line goes on that has begun with a grading: another sentence, or nothing."""


class _Lenient(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class CriterionResult(_Lenient):
    """One criterion's score with its reason, in the shape that is also kept in the log."""

    criterionId: str  # noqa: N815
    score: Annotated[float, Field(strict=True)] | None
    """From 0 to 5; None if the criterion cannot apply to the question."""
    reasoning: str


class GraderReply(_Lenient):
    """The part of a grader's reply that counts."""

    criterionResults: list[CriterionResult]  # noqa: N815


class _Fact(_Lenient):
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
    def scores(self) -> list[float | None]:
        """The scores in the order requested."""
        return [result.score for result in self.results.values()]


@cache
def response_schema() -> ResponseSchema:
    """Return the schema for providers that can hold a model to one.

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
        facts: Ids of the facts that a word was asked for.
        applicable: Ids of criteria that cannot be without a score.
        answer: The graded answer: a grading that it holds is not the grader's.

    Raises:
        ReplyError: The criteria cannot be used, or it is not certain that they are the grader's.
            Its problem is one for which the rubric has a correction. Of facts that cannot be used
            `Reply.problem` tells.
    """
    if not text.strip():
        raise ReplyError("empty")
    usable: list[Reply] = []
    error: ReplyError | None = None
    in_sentence = True
    rest, place = "", 0
    for candidate, found, outer in located_objects(text, _RESULTS):
        rest += text[place : found.start]
        place = found.stop
        in_sentence = in_sentence and not _stands_apart(text, outer)
        try:
            reply = Reply(_results(candidate, requested, applicable))
        except ReplyError as problem:
            error = problem
            continue
        try:
            usable.append(replace(reply, facts=_facts(candidate, facts) if facts else None))
        except ReplyError as problem:
            usable.append(replace(reply, problem=problem))
    if not usable:
        raise error or ReplyError("not_json")
    if error or _KEY.search(rest + text[place:]):
        raise ReplyError("wrong_shape", "an unusable set of results beside a usable one")
    if any(other.scores != usable[0].scores for other in usable):
        raise ReplyError("wrong_shape", "two different sets of results")
    if in_sentence:
        raise ReplyError("wrong_shape", "results inside of a sentence")
    held = [*_held(answer, requested)]
    usable = [each for each in usable if _content(each) not in held]
    if not usable:
        raise ReplyError("wrong_shape", "the results that the response itself holds")
    words = [reply.facts for reply in usable if reply.facts is not None]
    if any(other != words[0] for other in words):
        return replace(usable[-1], facts=None, problem=ReplyError("facts", "two different lists"))
    return replace(usable[-1], facts=words[0], problem=None) if words else usable[-1]


def _stands_apart(text: str, outer: slice) -> bool:
    """Return whether a grading is not part of a sentence.

    Args:
        text: The whole reply.
        outer: The place of the outermost object that holds the grading.
    """
    if _LINE_ENDS.match(text, outer.stop):
        return True
    line = text.rfind("\n", 0, outer.start) + 1
    remark = _REMARK.match(text, outer.stop)
    return (
        _LINE_BEGINS.fullmatch(text, line, outer.start) is not None
        and remark is not None
        and not (remark["letter"] or "").islower()
    )


def _content(reply: Reply) -> list[tuple[float | None, str]]:
    return [(each.score, " ".join(each.reasoning.split())) for each in reply.results.values()]


def _held(answer: str, requested: Sequence[str]) -> Iterator[list[tuple[float | None, str]]]:
    """Yield the scores and reasons of each complete grading that an answer holds."""
    for candidate in objects_with(answer, _RESULTS):
        with suppress(ReplyError):
            yield _content(Reply(_results(candidate, requested, ())))


def _results(
    candidate: dict[str, Any], requested: Sequence[str], applicable: Collection[str]
) -> dict[str, CriterionResult]:
    try:
        results = GraderReply.model_validate(candidate).criterionResults
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


def _shown(text: str) -> str:
    """Shorten and quote an invented id, to send it back."""
    return json.dumps(text[:MAX_SHOWN], ensure_ascii=False)
