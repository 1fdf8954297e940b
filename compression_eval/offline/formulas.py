"""One formula per criterion of the rubric; ``docs/embedded-model.md`` shows them as a table.

All scores are 5 times a share, rounded to two places. An answer that is none (empty, does not
know, wants to read again) gets 0 on every criterion but the two of instruction following. Wrong
facts beside right ones cap accuracy at 3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compression_eval.grading.form import constraint_score, format_score
from compression_eval.offline.ground_truth import Case, is_code
from compression_eval.offline.question import content_terms

_CAP = 3.0
_BEST = 5.0


@dataclass(frozen=True)
class Outcome:
    """A score from 0 to 5, or None where nothing can be said, and the reason."""

    score: float | None
    reasoning: str


Formula = Callable[[Case], Outcome]


def _scored(found: Sequence[bool], of: str, *, cap: float = _BEST) -> Outcome:
    share = sum(found) / len(found)
    score = min(_BEST * share, cap)
    text = f"{sum(found)} of {len(found)} {of} found"
    if cap < _BEST * share:
        text += f"; at most {cap:g} because of superseded or forbidden facts"
    return Outcome(round(score, 2), text + ".")


def _content(formula: Formula) -> Formula:
    """Give 0 where there is no answer, as all criteria but instruction following do."""

    def guarded(case: Case) -> Outcome:
        outcome = formula(case)
        if case.no_answer and outcome.score is not None:
            return Outcome(0.0, f"0 because {case.no_answer}.")
        return outcome

    return guarded


def _cap(case: Case) -> float:
    return _CAP if case.spoiled else _BEST


def _facts(case: Case) -> Outcome:
    if not case.found:
        return Outcome(None, "The ground truth has no expected facts.")
    return _scored(case.found, "expected facts", cap=_cap(case))


def _technical(case: Case) -> Outcome:
    found = _code_facts(case)
    if not found:
        return Outcome(None, "No expected fact is a name, path, number or message of code.")
    return _scored(found, "expected code references", cap=_cap(case))


def _code_facts(case: Case) -> list[bool]:
    facts = case.ground_truth.expected_facts
    return [hit for fact, hit in zip(facts, case.found, strict=True) if is_code(fact.fact)]


def _conversation_state(case: Case) -> Outcome:
    if not case.found:
        return Outcome(None, "The ground truth has no expected facts.")
    current = [hit and not old for hit, old in zip(case.found, case.stale, strict=True)]
    return _scored(current, "facts in their current value")


def _files(case: Case, paths: list[str], kind: str) -> Outcome:
    if not paths:
        return Outcome(None, f"The answer key lists no {kind}.")
    return _scored([case.has_file(path) for path in paths], kind)


def _artifact_state(case: Case) -> Outcome:
    key = case.ground_truth.answer_key
    paths = [*key.files_created, *key.files_modified, *key.files_read]
    return _files(case, list(dict.fromkeys(paths)), "files that were accessed")


def _created(case: Case) -> Outcome:
    return _files(case, case.ground_truth.answer_key.files_created, "files created")


def _modified(case: Case) -> Outcome:
    return _files(case, case.ground_truth.answer_key.files_modified, "files modified")


def _details(case: Case) -> Outcome:
    found = _code_facts(case)
    if not found:
        return Outcome(None, "No expected fact is a technical detail.")
    return _scored(found, "technical details")


def _coverage(case: Case) -> Outcome:
    key = case.ground_truth.answer_key
    files = [*key.files_created, *key.files_modified]
    found = [
        *case.found,
        *(case.has_file(path) for path in files),
        *(case.has_statement(text) for text in [*key.open_tasks, *key.reasons]),
    ]
    if not found:
        return Outcome(None, "The ground truth lists nothing to cover.")
    return _scored(found, "parts of a full answer")


def _depth(case: Case) -> Outcome:
    wanted = sorted(set(content_terms(case.ground_truth.reference_answer)))
    if not wanted:
        return Outcome(None, "There is no reference answer to compare the detail with.")
    return _scored([term in case.words for term in wanted], "terms of the reference answer")


def _work_state(case: Case) -> Outcome:
    tasks = case.ground_truth.answer_key.open_tasks
    found = [*case.found, *(case.has_statement(task) for task in tasks)]
    if not found:
        return Outcome(None, "The ground truth has neither facts nor open tasks.")
    return _scored(found, "facts and open tasks to go on with", cap=_cap(case))


def _todo(case: Case) -> Outcome:
    tasks = case.ground_truth.answer_key.open_tasks
    if not tasks:
        return Outcome(None, "The answer key lists no open tasks.")
    return _scored([case.has_statement(task) for task in tasks], "open tasks")


def _reasoning(case: Case) -> Outcome:
    reasons = case.ground_truth.answer_key.reasons
    if not reasons:
        return Outcome(None, "The answer key lists no reasons.")
    return _scored([case.has_statement(reason) for reason in reasons], "reasons")


def _format(case: Case) -> Outcome:
    return Outcome(*format_score(case.model_response, case.ground_truth.requested_format))


def _constraints(case: Case) -> Outcome:
    return Outcome(*constraint_score(case.model_response, case.ground_truth.standing_constraint))


FORMULAS: dict[str, Formula] = {
    "accuracy_factual": _content(_facts),
    "accuracy_technical": _content(_technical),
    "context_conversation_state": _content(_conversation_state),
    "context_artifact_state": _content(_artifact_state),
    "artifact_files_created": _content(_created),
    "artifact_files_modified": _content(_modified),
    "artifact_key_details": _content(_details),
    "completeness_coverage": _content(_coverage),
    "completeness_depth": _content(_depth),
    "continuity_work_state": _content(_work_state),
    "continuity_todo_state": _content(_todo),
    "continuity_reasoning": _content(_reasoning),
    "instruction_format": _format,
    "instruction_constraints": _constraints,
}
"""The formula of every criterion, by its id."""
