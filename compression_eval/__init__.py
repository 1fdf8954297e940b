"""Measure what a coding agent still knows after its context was compressed."""

from compression_eval._version import __version__

__all__ = ["__version__"]
