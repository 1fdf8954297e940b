"""Make a strategy of a user's object, class or function; its signature gives the arguments."""

import hashlib
import inspect
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any, cast

import anyio
from inspect_ai.model import CompactionStrategy
from pydantic import ConfigDict, Field, PositiveFloat, create_model
from pydantic_core import PydanticSerializationError, to_jsonable_python

from compression_eval.compressors.errors import description
from compression_eval.compressors.spec import Arguments, Compressor, CompressorSpec
from compression_eval.compressors.user_supplied.calling import CallableCompaction, KeptRecognised
from compression_eval.compressors.user_supplied.loading import load
from compression_eval.errors import DataError
from compression_eval.fixtures.finding_files import invoked_folder
from compression_eval.fixtures.models import Fixture

DEFAULT_TIMEOUT = 600.0
"""Default time limit in seconds of one compression by a user's function."""

_METHOD = "compress"
_LIMIT = "timeout_seconds"

_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class UserCompressor(Compressor):
    """A user's strategy."""

    source_digest: str = ""
    """Digest of the files that define it, when they were imported."""


class _UserArguments(Arguments):
    model_config = ConfigDict(arbitrary_types_allowed=True, use_attribute_docstrings=False)


class _OpenUserArguments(_UserArguments):
    """Arguments of a target that takes any further keyword argument."""

    model_config = ConfigDict(extra="allow")


def user_compressor(name: str) -> UserCompressor | None:
    """Return the strategy of a name with ``:`` or ``@``; None for any other name.

    Its arguments are those of its signature, and the time limit of one compression.

    Raises:
        DataError: It cannot be imported, does not exist, or cannot be used as a strategy.
    """
    if ":" not in name and "@" not in name:
        return None
    loaded = load(name)
    adapted = _Adapted(name, loaded.target)
    arguments: type[Arguments] = adapted.arguments
    # A function may have an argument of that name itself.
    own = _LIMIT in arguments.model_fields
    if not own:
        limit: Any = (PositiveFloat, DEFAULT_TIMEOUT)
        arguments = create_model(arguments.__name__, __base__=arguments, **{_LIMIT: limit})

    def build(values: Arguments, fixture: Fixture | None = None) -> CompactionStrategy:  # noqa: ARG001
        seconds = DEFAULT_TIMEOUT if own else getattr(values, _LIMIT, DEFAULT_TIMEOUT)
        return adapted.strategy(values, seconds)

    return UserCompressor(
        name, "yours", arguments, build, calls_model=True, source_digest=loaded.source_digest
    )


def source_digest(spec: CompressorSpec) -> str | None:
    """Return a digest of the user's own code behind a spec, for the version of a task.

    For a module or file: the file named and the one that defines the target; not what they import.
    For a command: its program, unless that is found by ``PATH``, and arguments that name files.
    None for what is not the user's.
    """
    if isinstance(spec.compressor, UserCompressor):
        return spec.compressor.source_digest
    if spec.name.removesuffix("+artifacts") != "command":
        return None
    command: list[str] = spec.arguments.command  # type: ignore[attr-defined]
    whole = hashlib.sha256()
    for part in command:
        file = invoked_folder(command) / part
        if file.is_file():
            whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def _unfit(name: str, problem: str) -> DataError:
    return DataError(f"compressor: {name}: {problem}")


def _signature(name: str, call: Callable[..., Any], *, unbound: bool = False) -> Signature:
    """Return how a function, method or class is called, without an unbound method's ``self``."""
    with suppress(Exception):  # names that only a type checker knows
        signature = inspect.signature(call, eval_str=True)
        return signature.replace(parameters=list(signature.parameters.values())[unbound:])
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError) as error:
        raise _unfit(name, "its signature cannot be read") from error
    return signature.replace(parameters=list(signature.parameters.values())[unbound:])


def _takes_messages(signature: Signature) -> bool:
    """Return whether the first parameter is required and positional."""
    first = next(iter(signature.parameters.values()), None)
    return first is not None and (
        first.kind is Parameter.VAR_POSITIONAL
        or (first.kind in _POSITIONAL and first.default is Parameter.empty)
    )


def _is_open(signature: Signature) -> bool:
    return any(p.kind is Parameter.VAR_KEYWORD for p in signature.parameters.values())


def _fields(name: str, parameters: Iterable[Parameter]) -> dict[str, tuple[Any, Any]]:
    """Return the parameters that can be passed by name, as type and default for pydantic."""
    fields: dict[str, tuple[Any, Any]] = {}
    for each in parameters:
        if each.kind in _NAMED and not each.name.startswith("_"):
            known = each.annotation is not Parameter.empty and not isinstance(each.annotation, str)
            fields[each.name] = _field(each.annotation if known else Any, each.default)
        elif each.kind in (*_NAMED, *_POSITIONAL) and each.default is Parameter.empty:
            problem = "has no default and cannot be given by name"
            raise _unfit(name, f"parameter {each.name!r} {problem}")
    return fields


def _field(hint: Any, default: Any) -> tuple[Any, Any]:
    if default is Parameter.empty:
        return hint, ...
    try:
        plain = to_jsonable_python(default)
    except PydanticSerializationError:
        # Only described, never passed on. No repr: that of an object names an address.
        return Any, Field(default=f"<{type(default).__name__}>")
    return (hint if plain == default else Any) | None, Field(default=plain)


class _Adapted:
    """A user's target, with the signatures of what makes it and what gets the messages.

    A target is a strategy (object, class or factory), something with a method ``compress`` (object,
    class or factory), or a function from messages to messages. Where a factory's result decides,
    the method is known only when it is made.

    Raises:
        DataError: The target is none of these, or its signature does not fit.
    """

    def __init__(self, name: str, target: Any) -> None:
        self.name, self.target = name, target
        self.lock = anyio.Lock()
        maker, method = self._signatures()
        if method is not None:
            if not _takes_messages(method):
                first = f"the first parameter of {_METHOD}" if maker else "the first parameter"
                raise _unfit(name, f"wrong signature; {first} must take the messages")
            messages, *rest = method.parameters.values()
            rest = rest if messages.kind in _POSITIONAL else [messages, *rest]
        self.maker = _fields(name, maker.parameters.values()) if maker else None
        self.method = _fields(name, rest) if method else None
        self.method_is_open = method is not None and _is_open(method)
        # A name that both have is one argument, required if one of them requires it.
        fields: dict[str, Any] = dict(self.maker or {})
        for argument, field in (self.method or {}).items():
            if fields.get(argument, (None, None))[1] is not ...:
                fields[argument] = field
        is_open = any(signature and _is_open(signature) for signature in (maker, method))
        base = _OpenUserArguments if is_open else _UserArguments
        try:
            with warnings.catch_warnings():
                # A parameter named "copy" or "json" may hide a method of the model.
                warnings.simplefilter("ignore")
                model = create_model(f"Arguments of {name}", __base__=base, **fields)
        except Exception as error:
            problem = f"cannot be arguments ({type(error).__name__}: {error})"
            raise _unfit(name, f"its parameters {', '.join(fields)} {problem}") from error
        self.arguments = cast(type[_UserArguments], model)

    def _signatures(self) -> tuple[Signature | None, Signature | None]:
        """Return the signature of what is called once per state, and that with the messages."""
        name, target = self.name, self.target
        method = getattr(target, _METHOD, None)
        if isinstance(target, CompactionStrategy):
            return None, None
        if inspect.isclass(target) and not issubclass(target, CompactionStrategy):
            if not callable(method):
                problem = f"the class is no CompactionStrategy and has no method {_METHOD}"
                raise _unfit(name, problem)
            static = inspect.getattr_static(target, _METHOD)
            unbound = not isinstance(static, staticmethod | classmethod)
            return _signature(name, target), _signature(name, method, unbound=unbound)
        if inspect.isclass(target):
            if inspect.isabstract(target):
                raise _unfit(name, "the class is abstract, it does not define compact")
            return _signature(name, target), None
        if callable(method):
            return None, _signature(name, method)
        if not callable(target):
            kind = type(target).__name__
            raise _unfit(name, f"a {kind} cannot be called and has no method {_METHOD}")
        called = _signature(name, target)
        returned = called.return_annotation
        makes_compressor = inspect.isclass(returned) and (
            issubclass(returned, CompactionStrategy) or callable(getattr(returned, _METHOD, None))
        )
        is_factory = makes_compressor or not _takes_messages(called)
        return (called, None) if is_factory else (None, called)

    def strategy(self, arguments: Arguments, seconds: float) -> CompactionStrategy:
        """Return a strategy; the time limit is for functions.

        An argument goes to whichever of constructor and method has a parameter of that name, to
        both if both have.
        """
        values = self._given(arguments)
        maker, method = self.maker or {}, self.method or {}
        unnamed = values.keys() - maker.keys() - method.keys()
        for_method = method.keys() | (unnamed if self.method_is_open else set())
        for_maker = maker.keys() | (set() if self.method_is_open else unnamed)
        made = self.target
        if self.maker is not None:
            try:
                made = self.target(**{key: values[key] for key in values if key in for_maker})
            except (Exception, SystemExit) as error:
                raise _unfit(self.name, f"making it failed with {description(error)}") from error
        # Inspect's own limits reach a strategy, which is asynchronous.
        if isinstance(made, CompactionStrategy):
            return KeptRecognised(made)
        function = getattr(made, _METHOD, None if self.maker is not None else made)
        if self.method is None and not (
            callable(function) and _takes_messages(_signature(self.name, function))
        ):
            if inspect.iscoroutine(made):
                made.close()
            raise _unfit(
                self.name,
                "wrong signature; it takes no messages, so it should return a CompactionStrategy "
                f"or something with a method {_METHOD}(messages), not {type(made).__name__}",
            )
        rest = {key: values[key] for key in values if key in for_method and self.method is not None}
        return CallableCompaction(self.name, cast(Any, function), rest, self.lock, seconds)

    def _given(self, arguments: Arguments) -> dict[str, Any]:
        """Return the arguments to pass on; defaults are left to the callable."""
        values: dict[str, Any] = {}
        for name in sorted(arguments.model_fields_set):
            field = self.arguments.model_fields.get(name)
            if field is None and name not in (arguments.model_extra or {}):
                continue
            value = getattr(arguments, name)
            # A default that is not plain data is only described in the model, never passed on.
            if field is None or field.is_required() or value != field.default:
                values[name] = value
        return values
