"""What is known of a strategy by name, its arguments, and a strategy together with them.

The arguments of a strategy are its keyword arguments, and are written once: as the fields of its
class, or in a signature and its docstring. What the command line, a YAML file or a log holds of
them is checked by a model that is derived from that.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, get_type_hints

from inspect_ai.model import CompactionStrategy, Model
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from compression_eval.fixtures.models import Fixture

_NO_ARGUMENTS = ("threshold", "fixture")
"""Parameters of a strategy that are not set by name: when an agent compresses, and what."""

_ARGS_SECTION = re.compile(r"^Args:\n(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


class Arguments(BaseModel):
    """No arguments; the base of all."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Compressor:
    """A strategy as it is known by name."""

    name: str
    summary: str
    """What it does, in one line."""
    arguments: type[Arguments]
    build: Callable[[Any, Fixture | None], CompactionStrategy]
    """Makes a new strategy from checked arguments, and what is to be compressed if it is known."""
    calls_model: bool
    exempt: bool = False
    """A control that need not shrink anything nor leave anything."""
    readable: bool = True
    """Whether the state that it leaves can be read; false for an encrypted one."""
    check_model: Callable[[Model], object] | None = None
    """Raises `CompressionError` for a model that this strategy cannot work with at all."""
    unsupported: Callable[[Fixture, Sequence[int]], str | None] | None = None
    """Set for one that needs more of a fixture than its messages; see `CompressorSpec`."""


def compressor(
    make: Callable[..., CompactionStrategy],
    summary: str,
    *,
    calls_model: bool,
    **more: Any,
) -> Compressor:
    """Return the entry of a strategy; the registry names it.

    Args:
        make: The class, or a function that returns the strategy. An argument that is called
            ``fixture`` is given what is to be compressed; ``threshold`` is left to agents.
        summary: What it does, in one line.
        calls_model: Whether it calls a model.
        more: Further fields of `Compressor`.
    """
    parameters = _declared(make) if inspect.isclass(make) else _of_signature(make)
    fields = {
        argument: (field.annotation, field)
        for argument, field in parameters.items()
        if argument not in _NO_ARGUMENTS
    }

    def build(given: Arguments, fixture: Fixture | None = None) -> CompactionStrategy:
        values = {field: getattr(given, field) for field in fields}
        return make(**values, fixture=fixture) if "fixture" in parameters else make(**values)

    own: dict[str, Any] = dict(fields)
    arguments = create_model(f"{make.__name__}Arguments", __base__=Arguments, **own)
    return Compressor("", summary, arguments, build, calls_model=calls_model, **more)


def _declared(kind: type) -> dict[str, FieldInfo]:
    """Return the fields of a class that `strategy` was made of, those of its bases first."""
    fields: dict[str, FieldInfo] = {}
    for base in reversed(kind.__mro__):
        for name, field in vars(base).get("__pydantic_fields__", {}).items():
            # Only the class that declares a field has what is said of it.
            description = field.description or (fields[name].description if name in fields else "")
            fields[name] = copy(field)
            fields[name].description = " ".join((description or "").split())
    return fields


def _of_signature(function: Callable[..., CompactionStrategy]) -> dict[str, FieldInfo]:
    """Return the parameters of a function, with what its docstring says of each."""
    hints = get_type_hints(function, include_extras=True)
    meanings = documented(inspect.getdoc(function) or "")
    return {
        each.name: FieldInfo.from_annotated_attribute(
            hints[each.name], Field(default=each.default, description=meanings.get(each.name))
        )
        for each in inspect.signature(function).parameters.values()
    }


def documented(docstring: str) -> dict[str, str]:
    """Return what the ``Args:`` of a docstring say of each argument, on one line."""
    section = _ARGS_SECTION.search(docstring)
    entries = re.split(r"^    (?=\w+: )", section[1] if section else "", flags=re.MULTILINE)
    named = (entry.partition(": ") for entry in entries)
    return {name: " ".join(text.split()) for name, _, text in named}


@dataclass(frozen=True)
class CompressorSpec:
    """A named strategy with its checked arguments: what a log and a YAML file can hold."""

    compressor: Compressor
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
        return self.compressor.build(self.arguments, fixture)

    def unsupported(self, fixture: Fixture, cuts: Sequence[int]) -> str | None:
        """Return why every compression of a fixture at some cuts must fail; None if it need not.

        Raises:
            DataError: The strategy has nothing at all to do with one of the cuts.
        """
        check = self.compressor.unsupported
        return check(fixture, cuts) if check else None

    def described(self) -> dict[str, Any]:
        """Return name and effective arguments as plain data."""
        return {"name": self.name, "arguments": self.arguments.model_dump(mode="json")}


def without_folders(name: str) -> str:
    """Return a strategy's name for people: a file of the user's as ``file.py@name``."""
    return re.split(r"[/\\]", name)[-1] if "@" in name else name
