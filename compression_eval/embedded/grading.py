"""Grade an answer with a formula per criterion, from the ground truth in the request.

A score is 5 times a share, such as that of the expected facts that the answer states;
``docs/embedded-model.md`` shows the formulas as a table. Where the ground truth calls a question
unanswerable, only an answer that says it does not know gets 5. Wrong facts cap accuracy at 3.
"""

import json
import re
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


_PARTS: dict[str, tuple[str, ...]] = {
    "accuracy_factual": ("facts",),
    "accuracy_technical": ("facts that are code",),
    "context_conversation_state": ("facts",),
    "context_artifact_state": ("files created", "files modified", "files read"),
    "artifact_files_created": ("files created",),
    "artifact_files_modified": ("files modified",),
    "artifact_key_details": ("facts that are code",),
    "completeness_coverage": ("facts", "files created", "files modified", "tasks", "reasons"),
    "completeness_depth": ("words of the reference answer",),
    "continuity_work_state": ("facts", "tasks"),
    "continuity_todo_state": ("tasks",),
    "continuity_reasoning": ("reasons",),
}
"""What the share of each criterion about content is of."""
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
    try:
        case = _Case.model_validate(fields)
    except ValidationError:  # a field is missing or has another type
        case = None
    held = _held(case.ground_truth, case.model_response) if case else {}
    for criterion in fields.get("rubric_criteria") or []:
        score, reason = None, "The request holds no answer with its ground truth."
        if case:
            score, reason = _outcome(criterion, case, held)
        results.append({"criterionId": criterion, "score": score, "reasoning": reason})
    return json.dumps({"criterionResults": results}, ensure_ascii=False)


def _outcome(criterion: str, case: _Case, known: dict[str, list[bool]]) -> tuple[float | None, str]:
    """Return a score from 0 to 5, None if there is none, and the reason."""
    truth, answer = case.ground_truth, case.model_response
    if criterion == "instruction_format":
        return format_score(answer, truth.requested_format)
    if criterion == "instruction_constraints":
        return constraint_score(answer, truth.standing_constraint)
    if truth.unanswerable:
        right = _abstains(answer) and not _spoiled(truth, Text(answer))
        return MAX_SCORE * right, "Only not to know is right here."
    counted = _PARTS.get(criterion, ())
    held = [hit for name in counted for hit in known[name]]
    if not held:
        return None, f"The ground truth lists no {' or '.join(counted) or 'part of this'}."
    score = MAX_SCORE * sum(held) / len(held)
    if score > _CAP and criterion in _CAPPED and _spoiled(truth, Text(answer)):
        return _CAP, f"At most {_CAP:g} because of superseded or forbidden facts."
    return round(score, 2), f"{sum(held)} of {len(held)} {' and '.join(counted)} found."


def _held(truth: _Truth, answer: str) -> dict[str, list[bool]]:
    """Return for each kind of part what the truth lists, and whether the answer has it.

    A file counts by its path or its name alone, a task or reason by most of its words.
    """
    text, said, key = Text(answer), set(content_terms(answer)), truth.answer_key
    facts = [fact for fact in truth.expected_facts if not fact.derived]

    def files(paths: list[str]) -> list[bool]:
        return [text.has_any([path, path.rsplit("/", 1)[-1]]) for path in paths]

    def statements(sentences: list[str]) -> list[bool]:
        wanted = [set(content_terms(sentence)) for sentence in sentences]
        return [len(each & said) >= _STATEMENT_SHARE * len(each) > 0 for each in wanted]

    return {
        "facts": [text.has_any(fact.forms) for fact in facts],
        "facts that are code": [
            text.has_any(fact.forms) for fact in facts if _CODE.search(fact.fact)
        ],
        "files created": files(key.files_created),
        "files modified": files(key.files_modified),
        "files read": files(key.files_read),
        "tasks": statements(key.open_tasks),
        "reasons": statements(key.reasons),
        "words of the reference answer": [
            word in said for word in set(content_terms(truth.reference_answer))
        ],
    }


def _spoiled(truth: _Truth, text: Text) -> bool:
    """Return whether a forbidden value is there, or a superseded one in place of the current."""
    forbidden = [form for fact in truth.must_not_appear for form in fact.forms]
    missed = [fact for fact in truth.expected_facts if not text.has_any(fact.forms)]
    stale = [value for fact in missed for value in fact.superseded]
    return any(map(text.spells, [*forbidden, *stale]))


def _abstains(answer: str) -> bool:
    """Return whether an answer says that it does not know, in any language of the rubric."""
    rubrics = (load_rubric(language) for language in ("en", "zh", "ja"))
    phrases = (phrase for rubric in rubrics for phrase in rubric.abstention.phrases)
    return any(phrase in answer.casefold() for phrase in phrases)
