"""Adapt a user's object, class or function to a strategy; its signature gives the arguments."""

import inspect
import threading
import typing
import warnings
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from typing import Any, cast

import anyio
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageBase,
    ChatMessageUser,
    CompactionResult,
    CompactionStrategy,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import ConfigDict, Field, create_model
from pydantic_core import PydanticSerializationError, to_jsonable_python

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.spec import Arguments
from compression_eval.compressors.user_supplied.wire import from_wire, recognised, to_wire
from compression_eval.errors import DataError

_METHOD = "compress"

_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class UserArguments(Arguments):
    """Arguments of a user's target; subclasses are made from its signature."""

    model_config = ConfigDict(arbitrary_types_allowed=True, use_attribute_docstrings=False)


class OpenUserArguments(UserArguments):
    """Arguments of a target that takes any further keyword argument."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True)
class Adapted:
    """A user's target as a strategy."""

    arguments: type[UserArguments]
    build: Callable[[dict[str, Any], float], CompactionStrategy]
    """Makes a strategy from the given arguments and a time limit in seconds. The limit is for
    functions; Inspect's own limits reach a strategy, which is asynchronous."""


def adapt(name: str, target: Any) -> Adapted:
    """Adapt a target to a strategy.

    A target is a strategy (object, class or factory), something with a method ``compress`` (object,
    class or factory), or a function from messages to messages.

    Raises:
        DataError: The target is none of these, or its signature does not fit.
    """
    if isinstance(target, CompactionStrategy):
        return Adapted(_arguments_model(name), lambda *_: KeptRecognised(target))
    method = getattr(target, _METHOD, None)
    if inspect.isclass(target):
        if issubclass(target, CompactionStrategy):
            return _from_factory(name, target)
        if not callable(method):
            raise _unfit(name, f"the class is no CompactionStrategy and has no method {_METHOD}")
        return _from_class(name, target)
    if callable(method):
        return _from_function(name, method)
    if not callable(target):
        kind = type(target).__name__
        raise _unfit(name, f"a {kind} cannot be called and has no method {_METHOD}")
    signature = _Signature(name, target)
    returned = signature.hints.get("return")
    makes_compressor = inspect.isclass(returned) and (
        issubclass(returned, CompactionStrategy) or callable(getattr(returned, _METHOD, None))
    )
    if makes_compressor or not signature.takes_messages:
        return _from_factory(name, target)
    return _from_function(name, target)


def _unfit(name: str, problem: str) -> DataError:
    return DataError(f"compressor: {name}: {problem}")


def given(arguments: Arguments, model: type[UserArguments]) -> dict[str, Any]:
    """Return the arguments to pass on; defaults are left to the callable.

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
        # A default that is not plain data is only described in the model, never passed on.
        if field is None or field.is_required() or value != field.default:
            values[name] = value
    return values


class _Signature:
    """The parameters of a function, bound method or class, seen as a compressor."""

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.name = name
        try:
            self.parameters = list(inspect.signature(call).parameters.values())
        except (TypeError, ValueError) as error:
            raise _unfit(name, "its signature cannot be read") from error
        function: Any = call.__init__ if inspect.isclass(call) else call
        if not inspect.isroutine(function):
            function = type(function).__call__
        try:
            self.hints = typing.get_type_hints(function)
        except Exception:  # names that only a type checker knows
            self.hints = {}
        self.open = any(p.kind is Parameter.VAR_KEYWORD for p in self.parameters)

    @property
    def takes_messages(self) -> bool:
        """Whether its first parameter is required and positional."""
        if not self.parameters:
            return False
        first = self.parameters[0]
        return first.kind is Parameter.VAR_POSITIONAL or (
            first.kind in _POSITIONAL and first.default is Parameter.empty
        )

    def keywords(self, *, skip_messages: bool = False) -> list[Parameter]:
        """Return the parameters that can be passed by name."""
        rest = self.parameters
        if skip_messages and rest and rest[0].kind in _POSITIONAL:
            rest = rest[1:]
        for parameter in rest:
            positional = parameter.kind is Parameter.POSITIONAL_ONLY
            hidden = parameter.kind in _NAMED and parameter.name.startswith("_")
            if (positional or hidden) and parameter.default is Parameter.empty:
                problem = "has no default and cannot be given by name"
                raise _unfit(self.name, f"parameter {parameter.name!r} {problem}")
        return [p for p in rest if p.kind in _NAMED and not p.name.startswith("_")]


def _arguments_model(
    name: str, *signatures: tuple[_Signature, list[Parameter]]
) -> type[UserArguments]:
    """Return the model of the arguments of some callables.

    A name that several have is one argument, required if one of them requires it.
    """
    fields: dict[str, Any] = {}
    for signature, parameters in signatures:
        for parameter in parameters:
            if fields.get(parameter.name, (None, None))[1] is not ...:
                hint = signature.hints.get(parameter.name, Any)
                fields[parameter.name] = _field(parameter, hint)
    is_open = any(signature.open for signature, _ in signatures)
    base = OpenUserArguments if is_open else UserArguments
    try:
        with warnings.catch_warnings():
            # A parameter named "copy" or "json" may hide a method of the model.
            warnings.simplefilter("ignore")
            model = create_model(f"Arguments of {name}", __base__=base, **fields)
    except Exception as error:
        problem = f"cannot be arguments ({type(error).__name__}: {error})"
        raise _unfit(name, f"its parameters {', '.join(fields)} {problem}") from error
    return cast(type[UserArguments], model)


def _field(parameter: Parameter, hint: Any) -> tuple[Any, Any]:
    if parameter.default is Parameter.empty:
        return hint, ...
    try:
        default = to_jsonable_python(parameter.default)
    except PydanticSerializationError:
        # Only described, never passed on. No repr: that of an object names an address.
        return Any, Field(default=f"<{type(parameter.default).__name__}>")
    return (hint if default == parameter.default else Any) | None, Field(default=default)


def _from_function(name: str, function: Callable[..., Any]) -> Adapted:
    signature = _Signature(name, function)
    if not signature.takes_messages:
        raise _unfit(name, "wrong signature; the first parameter must take the messages")
    keywords = signature.keywords(skip_messages=True)
    lock = anyio.Lock()
    return Adapted(
        _arguments_model(name, (signature, keywords)),
        lambda values, seconds: CallableCompaction(name, function, values, lock, seconds),
    )


def _from_factory(name: str, factory: Callable[..., Any]) -> Adapted:
    if inspect.isabstract(factory):
        raise _unfit(name, "the class is abstract, it does not define compact")
    signature = _Signature(name, factory)
    lock = anyio.Lock()

    def build(values: dict[str, Any], seconds: float) -> CompactionStrategy:
        compressor = _made(name, factory, values)
        if isinstance(compressor, CompactionStrategy):
            return KeptRecognised(compressor)
        method = getattr(compressor, _METHOD, None)
        if callable(method) and _Signature(name, method).takes_messages:
            return CallableCompaction(name, method, {}, lock, seconds)
        if inspect.iscoroutine(compressor):
            compressor.close()
        raise _unfit(
            name,
            "wrong signature; it takes no messages, so it should return a CompactionStrategy or "
            f"something with a method {_METHOD}(messages), not {type(compressor).__name__}",
        )

    return Adapted(_arguments_model(name, (signature, signature.keywords())), build)


def _from_class(name: str, target: type[Any]) -> Adapted:
    """Adapt a class with a method ``compress``.

    An argument goes to whichever of constructor and method has a parameter of that name, to
    both if both have.
    """
    maker = _Signature(name, target)
    method = _Signature(name, getattr(target, _METHOD))
    if not isinstance(inspect.getattr_static(target, _METHOD), staticmethod | classmethod):
        method.parameters = method.parameters[1:]
    if not method.takes_messages:
        problem = f"the first parameter of {_METHOD} must take the messages"
        raise _unfit(name, f"wrong signature; {problem}")
    of_maker, of_method = maker.keywords(), method.keywords(skip_messages=True)
    made_with, called_with = ({each.name for each in some} for some in (of_maker, of_method))
    lock = anyio.Lock()

    def build(values: dict[str, Any], seconds: float) -> CompactionStrategy:
        unnamed = values.keys() - made_with - called_with
        for_maker = made_with if method.open else made_with | unnamed
        for_method = called_with | unnamed if method.open else called_with
        compressor = _made(name, target, {key: values[key] for key in values if key in for_maker})
        rest = {key: values[key] for key in values if key in for_method}
        return CallableCompaction(name, getattr(compressor, _METHOD), rest, lock, seconds)

    return Adapted(_arguments_model(name, (maker, of_maker), (method, of_method)), build)


def _made(name: str, factory: Callable[..., Any], values: dict[str, Any]) -> Any:
    try:
        return factory(**values)
    except (Exception, SystemExit) as error:
        text = " ".join(str(error).split())[:500]
        problem = f"making it failed with {type(error).__name__}: {text}"
        raise _unfit(name, problem) from error


class CallableCompaction(CompactionStrategy):
    """Replace a conversation by the result of a user's function or method.

    It gets the messages in the OpenAI chat form and returns such a list. A coroutine is awaited. A
    plain function runs in a thread, so that it does not block other samples, and never twice at the
    same time, unless it exceeds its time limit: then its thread is abandoned.

    Args:
        name: How the user named it.
        function: Takes the messages and the values.
        values: Keyword arguments.
        lock: Held while a plain function runs.
        seconds: Time limit of one call.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        values: dict[str, Any],
        lock: anyio.Lock,
        seconds: float,
    ) -> None:
        super().__init__(type="summary", memory=False)
        self.name = name
        self.function = function
        self.values = values
        self.lock = lock
        self.seconds = seconds

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages of the reply to one call, and None.

        Raises:
            CompressionError: The reply is not a list of messages, or comes too late.
            TimeoutError: It comes too late because a model call does.
        """
        call = partial(self.function, to_wire(messages), **self.values)
        if inspect.iscoroutinefunction(self.function):
            reply = await self._in_time(call)
        else:
            async with self.lock:
                reply = await self._in_time(partial(_in_thread, call))
            if inspect.isawaitable(reply):
                awaitable = reply
                reply = await self._in_time(lambda: awaitable)
        return await from_wire(reply, messages), None

    async def _in_time(self, call: Callable[[], Awaitable[Any]]) -> Any:
        first_event = len(transcript().events)
        with anyio.move_on_after(self.seconds):
            return await call()
        reason = f"no result within {self.seconds:g} seconds (timeout_seconds)"
        calls = [e for e in transcript().events[first_event:] if isinstance(e, ModelEvent)]
        if calls and calls[-1].output.empty:
            raise TimeoutError(f"{self.name}: {reason}: a model call was still under way")
        raise CompressionError("error", reason)

    async def compact_outcome(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> CompactionResult:
        """Compress, and report the user's name of the strategy."""
        result = await super().compact_outcome(model, messages, tools)
        return result._replace(applied=self.name)


async def _in_thread(function: Callable[[], Any]) -> Any:
    """Return a function's result from a thread of its own, which is abandoned if cancelled.

    Raises:
        CompressionError: It raised an error that would end the interpreter, such as `SystemExit`.
    """
    result: list[Any] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            result.append(function())
        except BaseException as error:
            errors.append(error)
        done.set()

    # Python waits on exit for anyio's own threads, but not for a daemon. The waiting here ends
    # with the thread, or when the call is cancelled.
    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    try:
        await anyio.to_thread.run_sync(done.wait, abandon_on_cancel=True)
    finally:
        done.set()
    if not errors:
        return result[0]
    if isinstance(errors[0], Exception):
        raise errors[0]
    text = " ".join(f"{type(errors[0]).__name__} {errors[0]}".split())
    raise CompressionError("error", f"it raised {text[:500]}") from errors[0]


class KeptRecognised(CompactionStrategy):
    """A user's strategy; kept messages that it recreated get their ids back.

    Args:
        strategy: The user's strategy.
    """

    def __init__(self, strategy: CompactionStrategy) -> None:
        super().__init__(type=strategy.type, threshold=strategy.threshold, memory=strategy.memory)
        self.strategy = strategy

    @property
    def preserve_prefix(self) -> bool:
        """The strategy's own value."""
        return self.strategy.preserve_prefix

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation; see `compact_outcome`."""
        result = await self.compact_outcome(model, messages, tools)
        return result.input, result.message

    async def compact_outcome(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> CompactionResult:
        """Compress a conversation.

        Raises:
            CompressionError: The result is not a list of messages.
        """
        before = list(messages)
        result = await self.strategy.compact_outcome(model, messages, tools)
        for index, message in enumerate(result.input):
            if not isinstance(message, ChatMessageBase):
                raise CompressionError(
                    "error",
                    f"message {index} of the result is no ChatMessage but {type(message).__name__}",
                )
        return result._replace(input=_with_ids(before, result.input))


def _with_ids(before: Sequence[ChatMessage], after: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Give new messages that equal an earlier one, apart from the id, the earlier id."""

    def contents(messages: Sequence[ChatMessage]) -> list[str]:
        return [m.model_dump_json(exclude={"id", "source", "metadata", "model"}) for m in messages]

    kept = {message.id for message in after}
    known = {message.id for message in before}
    lost = [message for message in before if message.id not in kept]
    new = [place for place, message in enumerate(after) if message.id not in known]
    originals = recognised(contents([after[place] for place in new]), contents(lost))
    result = list(after)
    for place, index in zip(new, originals, strict=True):
        if index is not None:
            # The strategy's own metadata of the message stays.
            result[place] = after[place].model_copy(update={"id": lost[index].id})
    return result
