"""Measure what a coding agent still knows after its context was compressed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from compression_eval._version import __version__

if TYPE_CHECKING:
    from compression_eval.compressors.window import safe_head, safe_tail

__all__ = ["__version__", "safe_head", "safe_tail"]

_PLACES = {
    "safe_head": "compression_eval.compressors.window",
    "safe_tail": "compression_eval.compressors.window",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, and not before: it brings Inspect along."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
