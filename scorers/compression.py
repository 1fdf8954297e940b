"""Report compressions of a log again: ``inspect score LOG --scorer scorers/compression.py``."""

from inspect_ai.scorer import Scorer, scorer

import compression_eval.grading.scorers as package


@scorer(metrics=package.compression_metrics())
def compression() -> Scorer:
    """The compression figures of ``compression_eval``; calls no model."""
    return package.compression()
