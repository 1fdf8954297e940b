"""Grade an answer with a formula per criterion, from the ground truth in the request.

A score is 5 times a share, such as that of the expected facts that the answer states;
``docs/embedded-model.md`` shows the formulas as a table. Where the ground truth calls a question
unanswerable, only an answer that says it does not know gets 5. Wrong facts cap accuracy at 3.
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

from compression_eval.embedded.extracts import content_terms
from compression_eval.fixtures.banks import AnswerKey, Constraint, RequestedFormat
from compression_eval.grading.form import constraint_score, format_score
from compression_eval.grading.rubric import MAX_SCORE, load_rubric
from compression_eval.text.lookup import Text

_CAP = 3.0
_CODE = re.compile(r"[\w-]/[\w-]|\w[_.:]\w|[a-z][A-Z]|\w\(|[A-Z]{2,}|[{}\[\]<>=]|\d")
"""Facts that are code: a name, path, number, flag or message of a program."""
_STATEMENT_SHARE = 0.6
"""Share of a statement's words that an answer with it has."""


class _Fact(BaseModel):
    fact: str
    also_accepted: list[str] = []
    superseded: list[str] = []
    derived: bool = False

    @property
    def forms(self) -> list[str]:
        return [self.fact, *self.also_accepted]


class _Truth(BaseModel):
    expected_facts: list[_Fact] = []
    must_not_appear: list[_Fact] = []
    reference_answer: str = ""
    answer_key: AnswerKey = AnswerKey()
    unanswerable: bool = False
    requested_format: RequestedFormat | None = None
    standing_constraint: Constraint | None = None


class _Case(BaseModel):
    """One answer with its ground truth."""

    ground_truth: _Truth
    model_response: str

    @cached_property
    def text(self) -> Text:
        return Text(self.model_response)

    @cached_property
    def facts(self) -> list[tuple[_Fact, bool]]:
        """Each expected fact that can be looked up, and whether the answer states it."""
        facts = (fact for fact in self.ground_truth.expected_facts if not fact.derived)
        return [(fact, self.text.has_any(fact.forms)) for fact in facts]

    def found(self) -> list[bool]:
        return [hit for _, hit in self.facts]

    def code(self) -> list[bool]:
        return [hit for fact, hit in self.facts if _CODE.search(fact.fact)]

    def files(self, paths: Iterable[str]) -> list[bool]:
        """Return for each file whether the answer names it, by its path or its name alone."""
        return [self.text.has_any([path, path.rsplit("/", 1)[-1]]) for path in paths]

    def statements(self, sentences: Iterable[str]) -> list[bool]:
        """Return for each sentence whether the answer has most of its words."""
        said = set(content_terms(self.model_response))
        wanted = [set(content_terms(sentence)) for sentence in sentences]
        return [len(each & said) >= _STATEMENT_SHARE * len(each) > 0 for each in wanted]

    def words(self) -> list[bool]:
        """Return for each word of the reference answer whether the answer has it."""
        said = set(content_terms(self.model_response))
        return [word in said for word in set(content_terms(self.ground_truth.reference_answer))]

    def spoiled(self) -> bool:
        """Return whether the answer has a forbidden value, or a superseded one in place of ours."""
        forbidden = [form for fact in self.ground_truth.must_not_appear for form in fact.forms]
        stale = [value for fact, hit in self.facts if not hit for value in fact.superseded]
        return any(map(self.text.spells, [*forbidden, *stale]))

    def abstains(self) -> bool:
        """Return whether the answer says that it does not know, in any language of the rubric."""
        said = self.model_response.casefold()
        rubrics = (load_rubric(language) for language in ("en", "zh", "ja"))
        return any(phrase in said for each in rubrics for phrase in each.text.abstention.phrases)


_FORMULAS: dict[str, tuple[str, Callable[[_Case, AnswerKey], list[bool]]]] = {
    "accuracy_factual": ("expected facts", lambda c, _: c.found()),
    "accuracy_technical": ("facts that are code", lambda c, _: c.code()),
    "context_conversation_state": ("expected facts", lambda c, _: c.found()),
    "context_artifact_state": (
        "files accessed",
        lambda c, key: c.files({*key.files_created, *key.files_modified, *key.files_read}),
    ),
    "artifact_files_created": ("files created", lambda c, key: c.files(key.files_created)),
    "artifact_files_modified": ("files modified", lambda c, key: c.files(key.files_modified)),
    "artifact_key_details": ("facts that are code", lambda c, _: c.code()),
    "completeness_coverage": (
        "parts of a full answer",
        lambda c, key: [
            *c.found(),
            *c.files([*key.files_created, *key.files_modified]),
            *c.statements([*key.open_tasks, *key.reasons]),
        ],
    ),
    "completeness_depth": ("words of a reference answer", lambda c, _: c.words()),
    "continuity_work_state": (
        "facts and open tasks",
        lambda c, key: [*c.found(), *c.statements(key.open_tasks)],
    ),
    "continuity_todo_state": ("open tasks", lambda c, key: c.statements(key.open_tasks)),
    "continuity_reasoning": ("reasons", lambda c, key: c.statements(key.reasons)),
}
"""What the share of each criterion about content is of, and for each part whether it is there."""
_CAPPED = ("accuracy_factual", "accuracy_technical", "continuity_work_state")


def grade(records: list[dict[str, Any]]) -> str:
    """Return the grader's reply: JSON with one result per requested criterion.

    What cannot be computed gets the score null with a reason: no value is better than an invented
    one. The graded answer is inside a JSON string of a line and cannot pose as one.

    Args:
        records: The JSON lines of the request.
    """
    fields = {key: value for record in records for key, value in record.items()}
    results = []
    for criterion in fields.get("rubric_criteria") or []:
        try:
            score, reason = _outcome(criterion, _Case.model_validate(fields))
        except ValidationError:  # a field is missing or has another type
            score, reason = None, "The request holds no answer with its ground truth."
        results.append({"criterionId": criterion, "score": score, "reasoning": reason})
    return json.dumps({"criterionResults": results}, ensure_ascii=False)


def _outcome(criterion: str, case: _Case) -> tuple[float | None, str]:
    """Return a score from 0 to 5, None if there is none, and the reason."""
    truth = case.ground_truth
    if criterion == "instruction_format":
        return format_score(case.model_response, truth.requested_format)
    if criterion == "instruction_constraints":
        return constraint_score(case.model_response, truth.standing_constraint)
    if truth.unanswerable and criterion in _FORMULAS:
        right = case.abstains() and not case.spoiled()
        return MAX_SCORE * right, "Only not to know is right here."
    what, parts = _FORMULAS.get(criterion, ("that this criterion has a formula for", _nothing))
    held = parts(case, truth.answer_key)
    if not held:
        return None, f"The ground truth lists no {what}."
    score = MAX_SCORE * sum(held) / len(held)
    if score > _CAP and criterion in _CAPPED and case.spoiled():
        return _CAP, f"At most {_CAP:g} because of superseded or forbidden facts."
    return round(score, 2), f"{sum(held)} of {len(held)} {what} found."


def _nothing(_case: _Case, _key: AnswerKey) -> list[bool]:
    return []
