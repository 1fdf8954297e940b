"""Measure what a coding agent still knows after its context was compressed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from compression_eval._version import __version__

if TYPE_CHECKING:  # an alias of the same name makes it public for type checkers
    from compression_eval.analysis import criteria_frame as criteria_frame
    from compression_eval.analysis import facts_frame as facts_frame
    from compression_eval.analysis import gradings_frame as gradings_frame
    from compression_eval.analysis import samples_frame as samples_frame
    from compression_eval.analysis import states_frame as states_frame
    from compression_eval.calibration.task import grader_calibration as grader_calibration
    from compression_eval.compressors.anchored import AnchoredCompaction as AnchoredCompaction
    from compression_eval.compressors.artifacts import (
        ArtifactIndexCompaction as ArtifactIndexCompaction,
    )
    from compression_eval.compressors.budget import safe_head as safe_head
    from compression_eval.compressors.budget import safe_tail as safe_tail
    from compression_eval.compressors.command import CommandCompaction as CommandCompaction
    from compression_eval.compressors.errors import CompressionError as CompressionError
    from compression_eval.compressors.hermes import HermesCompaction as HermesCompaction
    from compression_eval.compressors.langchain import LangChainCompaction as LangChainCompaction
    from compression_eval.compressors.mechanical import ClearToolsCompaction as ClearToolsCompaction
    from compression_eval.compressors.mechanical import FullContext as FullContext
    from compression_eval.compressors.mechanical import MaskingCompaction as MaskingCompaction
    from compression_eval.compressors.mechanical import NoContext as NoContext
    from compression_eval.compressors.mechanical import TailOnly as TailOnly
    from compression_eval.compressors.products import ClaudeCodeCompaction as ClaudeCodeCompaction
    from compression_eval.compressors.products import CodexCompaction as CodexCompaction
    from compression_eval.compressors.products import OpenHandsCompaction as OpenHandsCompaction
    from compression_eval.compressors.products import PiCompaction as PiCompaction
    from compression_eval.compressors.recorded import RecordedState as RecordedState
    from compression_eval.compressors.summarising import (
        RegenerativeCompaction as RegenerativeCompaction,
    )
    from compression_eval.compressors.vendors import (
        AnthropicEditCompaction as AnthropicEditCompaction,
    )
    from compression_eval.compressors.vendors import (
        AnthropicTextCompaction as AnthropicTextCompaction,
    )
    from compression_eval.compressors.vendors import OpenAICompaction as OpenAICompaction
    from compression_eval.postmortem.figures import compactions_frame as compactions_frame
    from compression_eval.resumption.task import resumption as resumption
    from compression_eval.task import compression as compression

_PLACES = {
    "analysis": (
        "criteria_frame",
        "facts_frame",
        "gradings_frame",
        "samples_frame",
        "states_frame",
    ),
    "postmortem.figures": ("compactions_frame",),
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
    "resumption.task": ("resumption",),
    "task": ("compression",),
}
"""Public names by module."""

__all__ = ["__version__", *sorted(name for names in _PLACES.values() for name in names)]  # noqa: PLE0604


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> Any:
    """Import a public name on first use, because it imports Inspect."""
    for place, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{place}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
