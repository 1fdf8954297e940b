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
    from compression_eval.calibration.task import grader_calibration
    from compression_eval.compressors.anchored import AnchoredCompaction
    from compression_eval.compressors.artifacts import ArtifactIndexCompaction
    from compression_eval.compressors.budget import safe_head, safe_tail
    from compression_eval.compressors.command import CommandCompaction
    from compression_eval.compressors.errors import CompressionError
    from compression_eval.compressors.hermes import HermesCompaction
    from compression_eval.compressors.langchain import LangChainCompaction
    from compression_eval.compressors.mechanical import (
        ClearToolsCompaction,
        FullContext,
        MaskingCompaction,
        NoContext,
        TailOnly,
    )
    from compression_eval.compressors.products import (
        ClaudeCodeCompaction,
        CodexCompaction,
        OpenHandsCompaction,
        PiCompaction,
    )
    from compression_eval.compressors.recorded import RecordedState
    from compression_eval.compressors.summarising import RegenerativeCompaction
    from compression_eval.compressors.vendors import (
        AnthropicEditCompaction,
        AnthropicTextCompaction,
        OpenAICompaction,
    )
    from compression_eval.task import compression

__all__ = [
    "AnchoredCompaction",
    "AnthropicEditCompaction",
    "AnthropicTextCompaction",
    "ArtifactIndexCompaction",
    "ClaudeCodeCompaction",
    "ClearToolsCompaction",
    "CodexCompaction",
    "CommandCompaction",
    "CompressionError",
    "FullContext",
    "HermesCompaction",
    "LangChainCompaction",
    "MaskingCompaction",
    "NoContext",
    "OpenAICompaction",
    "OpenHandsCompaction",
    "PiCompaction",
    "RecordedState",
    "RegenerativeCompaction",
    "TailOnly",
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
    "analysis": (
        "criteria_frame",
        "facts_frame",
        "gradings_frame",
        "samples_frame",
        "states_frame",
    ),
    "compressors.anchored": ("AnchoredCompaction",),
    "compressors.artifacts": ("ArtifactIndexCompaction",),
    "compressors.budget": ("safe_head", "safe_tail"),
    "compressors.command": ("CommandCompaction",),
    "compressors.errors": ("CompressionError",),
    "compressors.hermes": ("HermesCompaction",),
    "compressors.langchain": ("LangChainCompaction",),
    "compressors.mechanical": (
        "ClearToolsCompaction",
        "FullContext",
        "MaskingCompaction",
        "NoContext",
        "TailOnly",
    ),
    "compressors.products": (
        "ClaudeCodeCompaction",
        "CodexCompaction",
        "OpenHandsCompaction",
        "PiCompaction",
    ),
    "compressors.recorded": ("RecordedState",),
    "compressors.summarising": ("RegenerativeCompaction",),
    "compressors.vendors": (
        "AnthropicEditCompaction",
        "AnthropicTextCompaction",
        "OpenAICompaction",
    ),
    "calibration.task": ("grader_calibration",),
    "task": ("compression",),
}
"""Public names by module."""


def __getattr__(name: str) -> Any:
    """Import a public name on first use, because it imports Inspect."""
    for place, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{place}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
