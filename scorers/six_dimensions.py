"""Grade a log again: ``inspect score LOG --scorer scorers/six_dimensions.py``."""

from typing import Literal

from inspect_ai.scorer import Scorer, scorer

import compression_eval.grading.scorers as package


@scorer(metrics=package.six_dimensions_metrics())
def six_dimensions(
    criteria: Literal["by_type", "all"] = "by_type",
    grader_context: Literal["state", "none"] = "state",
    language: Literal["en", "zh", "ja"] | None = None,
) -> Scorer:
    """The six dimensions of ``compression_eval``, graded by the role ``grader``."""
    return package.six_dimensions(criteria, grader_context, language)
