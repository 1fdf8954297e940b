"""Grade second answers of a log again: ``inspect score LOG --scorer scorers/refetch.py``."""

from typing import Literal

from inspect_ai.scorer import Scorer, scorer

import compression_eval.grading.refetching as package


@scorer(metrics=package.refetch_metrics())
def refetch(
    criteria: Literal["by_type", "all"] = "by_type",
    grader_context: Literal["state", "none"] = "state",
    language: Literal["en", "zh", "ja"] | None = None,
) -> Scorer:
    """The answers with tools of ``compression_eval``, graded by the role ``grader``."""
    return package.refetch(criteria, grader_context, language)
