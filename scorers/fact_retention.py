"""Look facts up in a log again: ``inspect score LOG --scorer scorers/fact_retention.py``."""

from inspect_ai.scorer import Scorer, scorer

import compression_eval.grading.fact_retention as package


@scorer(metrics=package.fact_retention_metrics())
def fact_retention() -> Scorer:
    """The mechanical facts of ``compression_eval``; calls no model."""
    return package.fact_retention()
