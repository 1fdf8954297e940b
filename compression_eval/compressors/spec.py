"""What is known of a named strategy, and a strategy with its arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from inspect_ai.model import CompactionStrategy

from compression_eval.compressors.arguments import Arguments

A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True)
class Compressor(Generic[A]):
    """A strategy as it is known by name."""

    name: str
    summary: str
    """What it does, in one line."""
    arguments: type[A]
    build: Callable[[A], CompactionStrategy]
    calls_model: bool
    exempt: bool = False
    """A control that need not shrink anything nor leave anything."""
    readable: bool = True
    """Whether the state that it leaves can be read; false for an encrypted one."""


@dataclass(frozen=True)
class CompressorSpec:
    """A named strategy with its checked arguments: what a log and a YAML file can hold."""

    compressor: Compressor[Any]
    arguments: Arguments

    @property
    def name(self) -> str:
        """The strategy's registered name."""
        return self.compressor.name

    def build(self) -> CompactionStrategy:
        """Return a new strategy object."""
        return self.compressor.build(self.arguments)

    def described(self) -> dict[str, Any]:
        """Return name and effective arguments as plain data."""
        return {"name": self.name, "arguments": self.arguments.model_dump(mode="json")}
