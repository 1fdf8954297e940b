"""Look facts up in a log again: ``inspect score LOG --scorer scorers/fact_retention.py``."""

from typing import Literal

from inspect_ai.scorer import Scorer, scorer

import compression_eval.grading.scorers as package


@scorer(metrics=package.fact_retention_metrics())
def fact_retention(state_facts: Literal["reader", "match"] | None = None) -> Scorer:
    """The facts of ``compression_eval``, looked up and read by the role ``grader``."""
    return package.fact_retention(state_facts)
