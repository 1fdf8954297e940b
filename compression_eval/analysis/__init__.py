"""Tables, comparisons and reports from logs."""

from compression_eval.analysis.comparison.measures import mean_score
from compression_eval.analysis.frames import (
    criteria_frame,
    facts_frame,
    gradings_frame,
    samples_frame,
    states_frame,
)

__all__ = [
    "criteria_frame",
    "facts_frame",
    "gradings_frame",
    "mean_score",
    "samples_frame",
    "states_frame",
]
