"""Grade an answer with a formula per criterion, from the ground truth in the request.

All scores are 5 times a share, rounded to two places; ``docs/embedded-model.md`` shows the formulas
as a table. An empty answer, an abstention and a wish to read again get 0 on every criterion but the
two of instruction following; where the ground truth calls a question unanswerable, only an answer
that says it does not know gets 5. Wrong facts beside right ones cap accuracy at 3.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from inspect_ai.model import ChatMessage
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from compression_eval.embedded.conversation import user_records
from compression_eval.embedded.language import content_terms, words
from compression_eval.fixtures.banks import AnswerKey, Constraint, RequestedFormat
from compression_eval.grading.form import constraint_score, format_score
from compression_eval.text.lookup import Text

_MAX_SCORE = 5.0
_CAP = 3.0
_CODE = re.compile(r"[\w-]/[\w-]|\w[_.:]\w|[a-z][A-Z]|\w\(|[A-Z]{2,}|--?\w+-?\w*=|[{}\[\]<>=]|\d")
"""Facts that are code: a name, path, number, flag or message of a program."""
_SENTENCES = re.compile(r"\n|(?<=[.!?;])\s+|(?<=[。！？；])")
_TASK_SHARE = 0.6
_SHORT_ANSWER = 600
"""Maximum characters of an answer that abstains or wants to read."""

_UNKNOWN = "the answer says that it does not know"
_NO_CASE = "The request holds no answer with its ground truth."
_NO_FORMULA = "There is no mechanical formula for this criterion."
_Outcome = tuple[float | None, str]
"""A score from 0 to 5, or None if there is none, and the reason."""


def grade(messages: list[ChatMessage]) -> str:
    """Return the grader's reply: JSON with one result per requested criterion.

    Criteria without a formula, and requests without a case to grade, get the score null with a
    reason: no value is better than an invented one. Only whole lines of user messages are read: the
    graded answer is inside a JSON string of such a line and cannot pose as one.
    """
    fields: dict[str, Any] = {}
    for records in user_records(messages):
        for record in records:
            fields.update(record)
    asked = fields.get("rubric_criteria")
    criteria = map(_criterion_id, asked if isinstance(asked, list) else [])
    try:
        case = _Case.model_validate(fields)
    except ValidationError:  # a field is missing or has another type
        case = None
    results = []
    for criterion in filter(None, dict.fromkeys(criteria)):
        score, reasoning = _outcome(criterion, case) if case else (None, _NO_CASE)
        results.append({"criterionId": criterion, "score": score, "reasoning": reasoning})
    return json.dumps({"criterionResults": results}, ensure_ascii=False)


def _criterion_id(item: object) -> str:
    """Return a criterion's id, given alone or in an object."""
    if isinstance(item, dict):
        item = item.get("criterionId") or item.get("id")
    return item if isinstance(item, str) else ""


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Fact(_Lenient):
    fact: str
    also_accepted: list[str] = []
    superseded: list[str] = []
    derived: bool = False

    @property
    def forms(self) -> list[str]:
        return [self.fact, *self.also_accepted]


class _Truth(_Lenient):
    expected_facts: list[_Fact] = []
    """Those that can be looked up."""
    must_not_appear: list[_Fact] = []
    reference_answer: str = ""
    answer_key: AnswerKey = AnswerKey()
    unanswerable: bool = False
    requested_format: RequestedFormat | None = None
    standing_constraint: Constraint | None = None

    @field_validator("expected_facts")
    @classmethod
    def _looked_up(cls, facts: list[_Fact]) -> list[_Fact]:
        return [fact for fact in facts if not fact.derived]


class _Case(_Lenient):
    """One answer with its question and ground truth."""

    probe_question: str = ""
    ground_truth: _Truth
    model_response: str

    @cached_property
    def text(self) -> Text:
        return Text(self.model_response)

    @cached_property
    def words(self) -> set[str]:
        """The content terms of the answer."""
        return set(content_terms(self.model_response))

    def has(self, forms: list[str]) -> bool:
        return any(self.text.spells(form) for form in forms)

    def has_files(self, *paths: str) -> list[bool]:
        """Return for each file whether the answer names it, by its path or name alone."""
        return [self.has([path, path.rsplit("/", 1)[-1]]) for path in paths]

    def has_statements(self, *statements: str) -> list[bool]:
        """Return for each sentence whether the answer has its text or most of its content words."""
        return [self.text.spells(each) or self._has_words_of(each) for each in statements]

    def _has_words_of(self, statement: str) -> bool:
        wanted = set(content_terms(statement))
        return bool(wanted) and len(wanted & self.words) >= _TASK_SHARE * len(wanted)

    @cached_property
    def found(self) -> list[bool]:
        """For each expected fact, whether the answer states it."""
        return [self.has(fact.forms) for fact in self.ground_truth.expected_facts]

    @property
    def code_found(self) -> list[bool]:
        """The same for the facts that are code."""
        facts = zip(self.ground_truth.expected_facts, self.found, strict=True)
        return [hit for fact, hit in facts if _CODE.search(fact.fact)]

    @cached_property
    def stale(self) -> list[bool]:
        """For each expected fact, whether the answer gives a superseded value as current."""
        return [
            any(self._as_current(value, fact) for value in fact.superseded)
            for fact in self.ground_truth.expected_facts
        ]

    def _as_current(self, value: str, fact: _Fact) -> bool:
        """Return whether a sentence gives a superseded value without marking it as such.

        A sentence marks it by a word such as "previously", or by giving the current value as well
        ("45 instead of 30").
        """
        if not self.text.spells(value):
            return False
        split = _SENTENCES.split(self.model_response)
        sentences = [each for each in split if each and Text(each).spells(value)]
        return not sentences or any(
            words("states", "earlier").search(sentence) is None
            and not any(Text(sentence).spells(form) for form in fact.forms)
            for sentence in sentences
        )

    @cached_property
    def spoiled(self) -> bool:
        """Whether the answer has a forbidden fact, or a superseded one as current."""
        forbidden = [form for fact in self.ground_truth.must_not_appear for form in fact.forms]
        return any(map(self.text.spells, forbidden)) or any(self.stale)

    @property
    def cap(self) -> float:
        """Maximum accuracy score, lower if the answer has wrong facts."""
        return _CAP if self.spoiled else _MAX_SCORE

    @cached_property
    def no_answer(self) -> str:
        """Why this is no answer (empty, abstained, wants to read again); "" if it is one.

        An answer with an expected fact is one, whatever else it says, and so is a long one, which
        may quote such a phrase.
        """
        if re.search(r"\w", self.model_response) is None:
            return "the answer is empty"
        if any(self.found) or len(self.model_response) > _SHORT_ANSWER:
            return ""
        if words("states", "unknown").search(self.model_response):
            return _UNKNOWN
        if words("states", "fetch").search(self.model_response):
            return "the answer asks to read again instead of answering"
        return ""


@dataclass(frozen=True)
class _Formula:
    """A share of parts that the answer has."""

    parts: Callable[[_Case, AnswerKey], list[bool]]
    """Returns for each part whether the answer has it."""
    named: str
    """Name of the parts."""
    missing: str
    """Why there is no score if the ground truth has no parts."""
    capped: bool = False
    """Whether wrong facts beside right ones cap the score."""


_NO_FACTS = "The ground truth has no expected facts."

_FORMULAS = {
    "accuracy_factual": _Formula(lambda c, _: c.found, "expected facts", _NO_FACTS, capped=True),
    "accuracy_technical": _Formula(
        lambda c, _: c.code_found,
        "expected code references",
        "No expected fact is a name, path, number or message of code.",
        capped=True,
    ),
    "context_conversation_state": _Formula(
        lambda c, _: [hit and not old for hit, old in zip(c.found, c.stale, strict=True)],
        "facts in their current value",
        _NO_FACTS,
    ),
    "context_artifact_state": _Formula(
        lambda c, key: c.has_files(
            *dict.fromkeys([*key.files_created, *key.files_modified, *key.files_read])
        ),
        "files that were accessed",
        "The answer key lists no files that were accessed.",
    ),
    "artifact_files_created": _Formula(
        lambda c, key: c.has_files(*key.files_created),
        "files created",
        "The answer key lists no files created.",
    ),
    "artifact_files_modified": _Formula(
        lambda c, key: c.has_files(*key.files_modified),
        "files modified",
        "The answer key lists no files modified.",
    ),
    "artifact_key_details": _Formula(
        lambda c, _: c.code_found, "technical details", "No expected fact is a technical detail."
    ),
    "completeness_coverage": _Formula(
        lambda c, key: [
            *c.found,
            *c.has_files(*key.files_created, *key.files_modified),
            *c.has_statements(*key.open_tasks, *key.reasons),
        ],
        "parts of a full answer",
        "The ground truth lists nothing to cover.",
    ),
    "completeness_depth": _Formula(
        lambda c, _: [
            term in c.words for term in set(content_terms(c.ground_truth.reference_answer))
        ],
        "terms of the reference answer",
        "There is no reference answer to compare the detail with.",
    ),
    "continuity_work_state": _Formula(
        lambda c, key: [*c.found, *c.has_statements(*key.open_tasks)],
        "facts and open tasks to go on with",
        "The ground truth has neither facts nor open tasks.",
        capped=True,
    ),
    "continuity_todo_state": _Formula(
        lambda c, key: c.has_statements(*key.open_tasks),
        "open tasks",
        "The answer key lists no open tasks.",
    ),
    "continuity_reasoning": _Formula(
        lambda c, key: c.has_statements(*key.reasons),
        "reasons",
        "The answer key lists no reasons.",
    ),
}
"""The formula of every criterion about content, by its id."""


def _outcome(criterion: str, case: _Case) -> _Outcome:
    truth = case.ground_truth
    if criterion == "instruction_format":
        return format_score(case.model_response, truth.requested_format)
    if criterion == "instruction_constraints":
        return constraint_score(case.model_response, truth.standing_constraint)
    formula = _FORMULAS.get(criterion)
    if formula and truth.unanswerable:
        right = case.no_answer == _UNKNOWN and not case.spoiled
        return _MAX_SCORE if right else 0.0, case.no_answer or "the answer claims to know it"
    held = formula.parts(case, truth.answer_key) if formula else []
    if not formula or not held:
        return None, formula.missing if formula else _NO_FORMULA
    if case.no_answer:
        return 0.0, f"0 because {case.no_answer}."
    score = _MAX_SCORE * sum(held) / len(held)
    cap = case.cap if formula.capped else _MAX_SCORE
    lowered = f"; at most {cap:g} because of superseded or forbidden facts" if cap < score else ""
    text = f"{sum(held)} of {len(held)} {formula.named} found{lowered}."
    return round(min(score, cap), 2), text
