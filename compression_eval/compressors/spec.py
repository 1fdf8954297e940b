"""A named strategy, its arguments, and a spec of both.

The arguments of a strategy are its keyword arguments, defined once, as the fields of its class. A
model derived from them checks the arguments in command lines, YAML files and logs.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from inspect_ai.model import CompactionStrategy, Model
from pydantic import BaseModel, ConfigDict, create_model
from pydantic.fields import FieldInfo

from compression_eval.compressors.prompts import prompts_digest
from compression_eval.compressors.strategy import Strategy
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.models import Fixture


class Arguments(BaseModel):
    """No arguments; the base of all."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Compressor:
    """A strategy with a name."""

    name: str
    summary: str
    """What it does, in one line."""
    arguments: type[Arguments]
    build: Callable[[Any, Fixture | None], CompactionStrategy]
    """Makes a strategy from checked arguments, and the fixture to compress if it is known."""
    calls_model: bool
    exempt: bool = False
    """Whether it is a control that may shrink nothing or leave nothing."""
    readable: bool = True
    """Whether its state can be read; false for an encrypted one."""
    check_model: Callable[[Model], object] | None = None
    """Raises `CompressionError` for a model that this strategy cannot use."""
    unsupported: Callable[[Fixture, Sequence[int]], str | None] | None = None
    """Set if the strategy needs more of a fixture than its messages; see `CompressorSpec`."""
    borrowed: Callable[[Any], str] | None = None
    """Returns, for checked arguments, the text that it takes from another package: the prompt of
    the version that is installed."""


def compressor(name: str, kind: type[Strategy]) -> Compressor:
    """Return a strategy under a name; the fields of its class are the arguments.

    The field ``fixture`` receives the fixture to compress, and ``threshold`` is left to agents.
    """
    declared: dict[str, FieldInfo] = {}
    for base in reversed(kind.__mro__):
        for argument, field in vars(base).get("__pydantic_fields__", {}).items():
            # Only the class that declares a field has its description.
            described = field if field.description else declared.get(argument, field)
            declared[argument] = copy(field)
            declared[argument].description = " ".join((described.description or "").split())
    del declared["threshold"]
    takes_fixture = declared.pop("fixture", None) is not None
    fields: dict[str, Any] = {name: (field.annotation, field) for name, field in declared.items()}

    def build(given: Arguments, fixture: Fixture | None = None) -> CompactionStrategy:
        values = {name: getattr(given, name) for name in fields}
        make: Callable[..., CompactionStrategy] = kind
        return make(**values, fixture=fixture) if takes_fixture else make(**values)

    return Compressor(
        name,
        kind.summary,
        create_model(f"{kind.__name__}Arguments", __base__=Arguments, **fields),
        build,
        calls_model=kind.calls_model,
        exempt=kind.exempt,
        readable=kind.readable,
        check_model=kind.check_model,
        unsupported=kind.unsupported,
        borrowed=kind.borrowed,
    )


@dataclass(frozen=True)
class CompressorSpec:
    """A named strategy with its checked arguments, as logs and YAML files hold it."""

    compressor: Compressor
    arguments: Arguments

    @property
    def name(self) -> str:
        """The strategy's registered name."""
        return self.compressor.name

    def build(self, fixture: Fixture | None = None) -> CompactionStrategy:
        """Return a new strategy object.

        Args:
            fixture: The fixture to compress; without it, a strategy that needs one can be built but
                not used.
        """
        return self.compressor.build(self.arguments, fixture)

    def texts_digest(self) -> str:
        """Return a digest of the texts that the strategy may use beside its arguments.

        These are the prompts of this package, and what it takes from another one.
        """
        borrowed = self.compressor.borrowed
        own = prompts_digest()
        return digest(f"{own} {borrowed(self.arguments)}") if borrowed else own

    def unsupported(self, fixture: Fixture, cuts: Sequence[int]) -> str | None:
        """Return why compressing a fixture at the cuts must fail; None if it need not.

        Raises:
            DataError: The strategy has nothing for one of the cuts.
        """
        check = self.compressor.unsupported
        return check(fixture, cuts) if check else None

    def described(self) -> dict[str, Any]:
        """Return name and effective arguments as plain data."""
        return {"name": self.name, "arguments": self.arguments.model_dump(mode="json")}
