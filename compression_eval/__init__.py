"""Measure what a coding agent still knows after its context was compressed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from compression_eval._version import __version__

if TYPE_CHECKING:
    from compression_eval.analysis import (
        criteria_frame,
        facts_frame,
        gradings_frame,
        samples_frame,
        states_frame,
    )
    from compression_eval.compressors.window import safe_head, safe_tail
    from compression_eval.tasks import compression, grader_calibration

__all__ = [
    "__version__",
    "compression",
    "criteria_frame",
    "facts_frame",
    "grader_calibration",
    "gradings_frame",
    "safe_head",
    "safe_tail",
    "samples_frame",
    "states_frame",
]

_PLACES = {
    "compression": "compression_eval.tasks",
    "criteria_frame": "compression_eval.analysis",
    "facts_frame": "compression_eval.analysis",
    "grader_calibration": "compression_eval.tasks",
    "gradings_frame": "compression_eval.analysis",
    "samples_frame": "compression_eval.analysis",
    "states_frame": "compression_eval.analysis",
    "safe_head": "compression_eval.compressors.window",
    "safe_tail": "compression_eval.compressors.window",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, and not before: it brings Inspect along."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
