"""What is known of a named strategy, and a strategy with its arguments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from inspect_ai.model import CompactionStrategy, Model

from compression_eval.compressors.arguments import Arguments
from compression_eval.fixtures.models import Fixture

A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True)
class PerFixture(Generic[A]):
    """How a strategy is made that needs more of a fixture than the messages before the cut."""

    build: Callable[[A, Fixture], CompactionStrategy]
    unsupported: Callable[[Fixture, Sequence[int]], str | None]
    """Returns why every compression of a fixture at some cuts must fail; None if it need not.

    Raises `DataError` where the strategy has nothing at all to do with a cut.
    """


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
    check_model: Callable[[Model], object] | None = None
    """Raises `CompressionError` for a model that this strategy cannot work with at all."""
    per_fixture: PerFixture[A] | None = None
    """Set for one that is made anew for each fixture; ``build`` then only checks arguments."""


@dataclass(frozen=True)
class CompressorSpec:
    """A named strategy with its checked arguments: what a log and a YAML file can hold."""

    compressor: Compressor[Any]
    arguments: Arguments

    @property
    def name(self) -> str:
        """The strategy's registered name."""
        return self.compressor.name

    def build(self, fixture: Fixture | None = None) -> CompactionStrategy:
        """Return a new strategy object.

        Args:
            fixture: What is to be compressed; without it a strategy that needs one can be built,
                but not used.
        """
        if fixture is not None and self.compressor.per_fixture is not None:
            return self.compressor.per_fixture.build(self.arguments, fixture)
        return self.compressor.build(self.arguments)

    def unsupported(self, fixture: Fixture, cuts: Sequence[int]) -> str | None:
        """Return why every compression of a fixture at some cuts must fail; None if it need not.

        Raises:
            DataError: The strategy has nothing at all to do with one of the cuts.
        """
        found = self.compressor.per_fixture
        return found.unsupported(fixture, cuts) if found else None

    def described(self) -> dict[str, Any]:
        """Return name and effective arguments as plain data."""
        return {"name": self.name, "arguments": self.arguments.model_dump(mode="json")}
