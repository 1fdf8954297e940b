"""Everything that Inspect may look up by name. Light to import: every eval start loads it."""

from inspect_ai.model import ModelAPI, modelapi

from compression_eval.calibration.scoring import grader_calibration as grader_calibration_scorer
from compression_eval.calibration.task import grader_calibration
from compression_eval.grading.artifact_files import artifact_files
from compression_eval.grading.refetching import refetch
from compression_eval.grading.scorers import compression as compression_scorer
from compression_eval.grading.scorers import fact_retention, qualification, six_dimensions
from compression_eval.resumption.bubblewrap import BubblewrapSandboxEnvironment
from compression_eval.resumption.scoring import finishing
from compression_eval.resumption.task import resumption
from compression_eval.task import compression

__all__ = [
    "BubblewrapSandboxEnvironment",
    "artifact_files",
    "compression",
    "compression_scorer",
    "embedded",
    "fact_retention",
    "finishing",
    "grader_calibration",
    "grader_calibration_scorer",
    "qualification",
    "refetch",
    "resumption",
    "six_dimensions",
]


@modelapi(name="embedded")
def embedded() -> type[ModelAPI]:
    """Return the provider of ``embedded/…``, imported when a model of it is first asked for."""
    from compression_eval.embedded.model import EmbeddedAPI

    return EmbeddedAPI
