"""A named strategy, its arguments, and a spec of both.

The arguments of a strategy are its keyword arguments, defined once: as the fields of its class, or
in a signature and its docstring. A model derived from them checks the arguments in command lines,
YAML files and logs.
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
"""Parameters that are no arguments: when an agent compresses, and the fixture."""

_ARGS_SECTION = re.compile(r"^Args:\n(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


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


def compressor(
    make: Callable[..., CompactionStrategy],
    summary: str,
    *,
    calls_model: bool,
    **more: Any,
) -> Compressor:
    """Return the entry of a strategy; the registry names it.

    Args:
        make: The class, or a function that returns the strategy. An argument named ``fixture``
            receives the fixture to compress; ``threshold`` is left to agents.
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
    """Return the fields of a class decorated with `strategy`, those of its bases first."""
    fields: dict[str, FieldInfo] = {}
    for base in reversed(kind.__mro__):
        for name, field in vars(base).get("__pydantic_fields__", {}).items():
            # Only the class that declares a field has its description.
            description = field.description or (fields[name].description if name in fields else "")
            fields[name] = copy(field)
            fields[name].description = " ".join((description or "").split())
    return fields


def _of_signature(function: Callable[..., CompactionStrategy]) -> dict[str, FieldInfo]:
    """Return the parameters of a function, described by its docstring."""
    hints = get_type_hints(function, include_extras=True)
    meanings = documented(inspect.getdoc(function) or "")
    return {
        each.name: FieldInfo.from_annotated_attribute(
            hints[each.name], Field(default=each.default, description=meanings.get(each.name))
        )
        for each in inspect.signature(function).parameters.values()
    }


def documented(docstring: str) -> dict[str, str]:
    """Return the description of each argument in a docstring's ``Args:``, on one line."""
    section = _ARGS_SECTION.search(docstring)
    entries = re.split(r"^    (?=\w+: )", section[1] if section else "", flags=re.MULTILINE)
    named = (entry.partition(": ") for entry in entries)
    return {name: " ".join(text.split()) for name, _, text in named}


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


def without_folders(name: str) -> str:
    """Return a strategy's name for display: a user's file as ``file.py@name``."""
    return re.split(r"[/\\]", name)[-1] if "@" in name else name
