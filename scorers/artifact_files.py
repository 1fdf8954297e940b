"""Compare named files in a log again: ``inspect score LOG --scorer scorers/artifact_files.py``."""

from inspect_ai.scorer import Scorer, scorer

import compression_eval.grading.artifact_files as package


@scorer(metrics=package.artifact_files_metrics())
def artifact_files() -> Scorer:
    """Precision and recall of files in artifact answers; calls no model."""
    return package.artifact_files()
