"""What a callable of the user takes, as a model that checks arguments against it."""

import inspect
import typing
import warnings
from collections.abc import Callable, Iterable
from inspect import Parameter
from typing import Any, cast

from pydantic import ConfigDict, Field, create_model
from pydantic_core import PydanticSerializationError, to_jsonable_python

from compression_eval.compressors.arguments import Arguments
from compression_eval.fixtures.errors import DataError

_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class UserArguments(Arguments):
    """Arguments of something of the user's; subclasses are made from its signature."""

    model_config = ConfigDict(arbitrary_types_allowed=True, use_attribute_docstrings=False)


class OpenUserArguments(UserArguments):
    """The same for something that takes any further keyword argument."""

    model_config = ConfigDict(extra="allow")


class CallSignature:
    """The parameters of a callable, seen as a compressor.

    Args:
        name: How the user named it, for errors.
        call: A function, bound method or class.

    Raises:
        DataError: Its signature cannot be read.
    """

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.name = name
        try:
            signature = inspect.signature(call)
        except (TypeError, ValueError) as error:
            raise DataError(f"compressor: {name}: its signature cannot be read") from error
        self.returns = signature.return_annotation
        self.parameters = list(signature.parameters.values())
        self.hints = _hints(call)

    @property
    def takes_messages(self) -> bool:
        """Whether its first parameter must be given, and can be by position."""
        if not self.parameters:
            return False
        first = self.parameters[0]
        if first.kind is Parameter.VAR_POSITIONAL:
            return True
        return first.kind in _POSITIONAL and first.default is Parameter.empty

    def keywords(self, *, skip_messages: bool) -> list[Parameter]:
        """Return the parameters that arguments can be given to by name.

        Args:
            skip_messages: Leave out the first positional parameter.

        Raises:
            DataError: It has to be given something that cannot be given by name.
        """
        rest = self.parameters
        if skip_messages and rest and rest[0].kind in _POSITIONAL:
            rest = rest[1:]
        for parameter in rest:
            positional = parameter.kind is Parameter.POSITIONAL_ONLY
            hidden = parameter.kind in _NAMED and parameter.name.startswith("_")
            if (positional or hidden) and parameter.default is Parameter.empty:
                raise DataError(
                    f"compressor: {self.name}: parameter {parameter.name!r} has no default and "
                    "cannot be given by name"
                )
        return [p for p in rest if p.kind in _NAMED and not p.name.startswith("_")]

    @property
    def open(self) -> bool:
        """Whether it takes any keyword argument."""
        return any(p.kind is Parameter.VAR_KEYWORD for p in self.parameters)


def arguments_model(
    name: str, signatures: Iterable[tuple[CallSignature, list[Parameter]]]
) -> type[UserArguments]:
    """Return the model of the arguments that one or several callables take.

    Args:
        name: How the user named the compressor.
        signatures: Each with its parameters that can be given. A name that stands in several is
            one argument; it is required if one of them requires it.

    Raises:
        DataError: A parameter's name cannot be that of an argument.
    """
    fields: dict[str, Any] = {}
    open_ended = False
    for signature, parameters in signatures:
        open_ended = open_ended or signature.open
        for parameter in parameters:
            if parameter.name in fields and fields[parameter.name][1] is ...:
                continue
            fields[parameter.name] = _field(parameter, signature.hints.get(parameter.name, Any))
    base = OpenUserArguments if open_ended else UserArguments
    try:
        with warnings.catch_warnings():
            # A parameter called "copy" or "json" hides a method of the model, which is all right.
            warnings.simplefilter("ignore")
            model = create_model(f"Arguments of {name}", __base__=base, **fields)
    except Exception as error:
        raise DataError(
            f"compressor: {name}: its parameters {', '.join(fields)} cannot be arguments "
            f"({type(error).__name__}: {error})"
        ) from error
    return cast(type[UserArguments], model)


def given(arguments: Arguments, model: type[UserArguments]) -> dict[str, Any]:
    """Return the arguments to pass on; what is at its default is left to the callable.

    Args:
        arguments: Checked arguments, perhaps of a model that adds some of its own.
        model: The model that was made from the callable's signature.
    """
    values: dict[str, Any] = {}
    for name in sorted(arguments.model_fields_set):
        field = model.model_fields.get(name)
        if field is None and name not in (arguments.model_extra or {}):
            continue
        value = getattr(arguments, name)
        # A default that is not plain data is only described by the model, never passed on.
        if field is None or field.is_required() or value != field.default:
            values[name] = value
    return values


def _hints(call: Callable[..., Any]) -> dict[str, Any]:
    function = call.__init__ if inspect.isclass(call) else call
    if not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return typing.get_type_hints(function)
    except Exception:  # names that only a type checker knows
        return {}


def _field(parameter: Parameter, hint: Any) -> tuple[Any, Any]:
    if parameter.default is Parameter.empty:
        return hint, ...
    try:
        default = to_jsonable_python(parameter.default)
    except PydanticSerializationError:
        # Only described, never passed on. No repr: that of an object names an address.
        return Any, Field(default=f"<{type(parameter.default).__name__}>")
    return (hint if default == parameter.default else Any) | None, Field(default=default)
