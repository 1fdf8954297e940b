"""Grading an answer with a stated formula per criterion, from the ground truth in the request."""

import json
from typing import Any

from inspect_ai.model import ChatMessage

from compression_eval.offline.formulas import FORMULAS, Outcome
from compression_eval.offline.ground_truth import Case
from compression_eval.offline.reading import user_records


def grade(messages: list[ChatMessage]) -> str:
    """Return the grader's reply, JSON with one result for each criterion that was asked for.

    Criteria without a formula, and requests without a case to grade, get the score null with the
    reason: no value is better than a made-up one.
    """
    case, criteria = _request(messages)
    results = []
    for criterion in criteria:
        outcome = _outcome(criterion, case)
        results.append(
            {"criterionId": criterion, "score": outcome.score, "reasoning": outcome.reasoning}
        )
    return json.dumps({"criterionResults": results}, ensure_ascii=False)


def _outcome(criterion: str, case: Case | None) -> Outcome:
    if case is None:
        return Outcome(None, "The request holds no answer with its ground truth.")
    formula = FORMULAS.get(criterion)
    if formula is None:
        return Outcome(None, "There is no mechanical formula for this criterion.")
    return formula(case)


def _request(messages: list[ChatMessage]) -> tuple[Case | None, list[str]]:
    """Return the case of the last line that holds one, and the criteria that are asked for.

    Only whole lines of user messages are read: text of the graded answer stands inside a JSON
    string of such a line and cannot pose as one.
    """
    fields: dict[str, Any] = {}
    for records in user_records(messages):
        for record in records:
            fields.update(record)
    asked = fields.get("rubric_criteria")
    criteria = [_criterion_id(item) for item in asked] if isinstance(asked, list) else []
    return Case.read(fields), [name for name in dict.fromkeys(criteria) if name]


def _criterion_id(item: object) -> str:
    """Return a criterion's id, given alone or in an object with more about it."""
    if isinstance(item, dict):
        item = item.get("criterionId") or item.get("id")
    return item if isinstance(item, str) else ""
