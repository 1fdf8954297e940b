"""A user's own strategy: ``module:name`` or ``path/file.py@name``.

1. `_load` imports the target, and takes a digest of the files that define it.
2. Its parameters, those of a class's constructor or those behind the messages of a function or
   method ``compress``, become one pydantic model, which checks the arguments by their types.
3. For each state a class is constructed with the arguments that were given; a function or method
   gets them with the messages, within its time limit (`CallableCompaction`).
"""

import hashlib
import importlib
import inspect
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from inspect import Parameter
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import anyio
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    CompactionResult,
    CompactionStrategy,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import ConfigDict, Field, PositiveFloat, create_model
from pydantic_core import PydanticSerializationError, to_jsonable_python

from compression_eval.compressors.chat_form import from_chat_form, to_chat_form
from compression_eval.compressors.errors import CompressionError, description
from compression_eval.compressors.strategy import Arguments, Compressor
from compression_eval.errors import DataError, did_you_mean, one_line, shorten
from compression_eval.fixtures.finding_files import invoked_folder, invoked_path
from compression_eval.fixtures.models import Fixture

DEFAULT_TIMEOUT = 600.0
"""Default time limit in seconds of one compression by a user's function."""

_METHOD = "compress"
_LIMIT = "timeout_seconds"
_MAX_PLACE = 200

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)

_digests: dict[str, tuple[Any, str]] = {}
"""The target and the digest of each name when it was last loaded."""


class _Closed(Arguments):
    model_config = ConfigDict(arbitrary_types_allowed=True)


class _Open(_Closed):
    """Arguments of a target that takes any further keyword argument."""

    model_config = ConfigDict(extra="allow")


def user_compressor(name: str) -> Compressor | None:
    """Return the strategy of a name with ``:`` or ``@``; None for any other name.

    Its arguments are those of its signature, and the time limit of one compression.

    Raises:
        DataError: It cannot be imported, does not exist, was edited since it was imported, or
            cannot be used as a strategy.
    """
    if ":" not in name and "@" not in name:
        return None
    target, digest = _load(name)
    parameters = _parameters(name, target)
    arguments = _arguments(name, parameters)
    own_limit = any(each.name == _LIMIT for each in parameters)
    lock = anyio.Lock()

    def build(given: Arguments, _: Fixture | None = None) -> CompactionStrategy:
        values = _given(given)
        seconds = DEFAULT_TIMEOUT if own_limit else values.pop(_LIMIT, DEFAULT_TIMEOUT)
        made = target
        if inspect.isclass(target):
            try:
                made, values = target(**values), {}
            except (Exception, SystemExit) as error:
                raise _unfit(name, f"making it failed with {description(error)}") from error
        # Inspect's own limits reach a strategy, which is asynchronous.
        if isinstance(made, CompactionStrategy):
            return made
        call = getattr(made, _METHOD, made)
        for each in _after_messages(name, call):
            required = each.kind in (*_NAMED, *_POSITIONAL) and each.default is Parameter.empty
            if required and each.name not in values:
                problem = f"{_METHOD} is called without {each.name!r}, which belongs in"
                raise _unfit(name, f"wrong signature; {problem} the constructor")
        return CallableCompaction(name, partial(call, **values), lock, seconds)

    return Compressor(name, "yours", arguments, build, source_digest=digest)


def _unfit(name: str, problem: str) -> DataError:
    return DataError(f"compressor: {shorten(name)}: {problem}")


def _load(name: str) -> tuple[Any, str]:
    """Return the object of a name and the digest of its source, 64 digits."""
    if "@" in name:
        place, _, attribute = name.rpartition("@")
        module = _from_file(name, place)
    else:
        place, _, attribute = name.partition(":")
        module = _from_module(name, place)
    target: Any = module
    for part in attribute.split("."):
        if not part.isidentifier():
            raise _unfit(name, f"{shorten(attribute)} is not a name in Python")
        if not hasattr(target, part):
            hint = did_you_mean(part, [known for known in dir(target) if known[0] != "_"])
            raise _unfit(name, f"there is no {part!r} in {module.__file__ or place}{hint}")
        target = getattr(target, part)
    digest = _digest(module, target)
    before = _digests.get(name)
    if before and before[0] is target and before[1] != digest:
        raise _unfit(
            name,
            "it was edited after this process imported it, and the old code would run: start "
            "Python anew, or name the file as path/file.py@name, which is read anew",
        )
    _digests[name] = (target, digest)
    return target, digest


def _from_file(name: str, place: str) -> ModuleType:
    try:
        path = invoked_path(place).absolute()
        is_file = path.suffix == ".py" and path.is_file()
    except OSError as error:  # such as a name that is too long
        raise _unfit(name, f"it cannot be a file: {error.strerror}") from error
    if not is_file:
        hint = did_you_mean(path.name, [file.name for file in path.parent.glob("*.py")])
        text = f"there is no file {one_line(place, _MAX_PLACE)}{hint}"
        raise _unfit(name, f"{text} (expected path/file.py@name)")
    # An edited file is another module, so that a long-lived process never runs an old version.
    state = hashlib.sha256(str(path).encode() + b"\0" + path.read_bytes()).hexdigest()
    module_name = f"compression_eval_yours_{state[:16]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    loader = SourceFileLoader(module_name, str(path))
    module = module_from_spec(cast(ModuleSpec, spec_from_loader(module_name, loader)))
    sys.modules[module_name] = module
    try:
        with _importing(name, path.parent):
            loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def _from_module(name: str, place: str) -> ModuleType:
    if not all(part.isidentifier() for part in place.split(".")) or place.endswith(".py"):
        raise _unfit(name, "expected module:name or path/file.py@name")
    with _importing(name, invoked_folder()):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name and (place == error.name or place.startswith(f"{error.name}.")):
                raise _unfit(name, f"there is no module {error.name!r}") from error
            raise


@contextmanager
def _importing(name: str, folder: Path) -> Iterator[None]:
    """Make a folder importable, and name the user's module in an error of its import."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        yield
    except DataError:
        raise
    except (Exception, SystemExit) as error:
        raise _unfit(name, f"importing it failed with {description(error)}") from error


def _digest(module: ModuleType, target: Any) -> str:
    files = {module.__file__}
    thing = target if inspect.isroutine(target) or inspect.isclass(target) else type(target)
    with suppress(TypeError):  # built-ins have no source
        files.add(inspect.getsourcefile(inspect.unwrap(thing)))
    whole = hashlib.sha256()
    for file in sorted(Path(name) for name in files if name):
        if file.is_file():
            whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def _parameters(name: str, target: Any) -> list[Parameter]:
    """Return the parameters that arguments can be given for.

    Raises:
        DataError: The target is no compressor, or its signature does not fit.
    """
    method = getattr(target, _METHOD, None)
    if isinstance(target, CompactionStrategy):
        return []
    if inspect.isclass(target):
        if inspect.isabstract(target):
            raise _unfit(name, "the class is abstract, it does not define compact")
        if not issubclass(target, CompactionStrategy) and not callable(method):
            raise _unfit(name, f"the class is no CompactionStrategy and has no method {_METHOD}")
        return _signature(name, target)
    if not callable(method or target):
        kind = type(target).__name__
        raise _unfit(name, f"a {kind} cannot be called and has no method {_METHOD}")
    return _after_messages(name, method or target)


def _after_messages(name: str, call: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a function or method without the first, which is the messages."""
    parameters = _signature(name, call)
    if not parameters or not (
        parameters[0].kind is Parameter.VAR_POSITIONAL
        or (parameters[0].kind in _POSITIONAL and parameters[0].default is Parameter.empty)
    ):
        raise _unfit(name, "wrong signature; the first parameter must take the messages")
    return parameters[1:]


def _signature(name: str, call: Callable[..., Any]) -> list[Parameter]:
    try:
        try:
            signature = inspect.signature(call, eval_str=True)
        except Exception:  # names that only a type checker knows
            signature = inspect.signature(call)
    except (TypeError, ValueError) as error:
        raise _unfit(name, "its signature cannot be read") from error
    return list(signature.parameters.values())


def _arguments(name: str, parameters: Sequence[Parameter]) -> type[Arguments]:
    """Return the model of the parameters that can be passed by name."""
    fields: dict[str, Any] = {}
    for each in parameters:
        if each.kind in _NAMED and not each.name.startswith("_"):
            known = each.annotation is not Parameter.empty and not isinstance(each.annotation, str)
            fields[each.name] = _field(each.annotation if known else Any, each.default)
        elif each.kind in (*_NAMED, *_POSITIONAL) and each.default is Parameter.empty:
            problem = "has no default and cannot be given by name"
            raise _unfit(name, f"parameter {each.name!r} {problem}")
    fields.setdefault(_LIMIT, (PositiveFloat, DEFAULT_TIMEOUT))
    is_open = any(each.kind is Parameter.VAR_KEYWORD for each in parameters)
    try:
        with warnings.catch_warnings():
            # A parameter named "copy" or "json" may hide a method of the model.
            warnings.simplefilter("ignore")
            base = _Open if is_open else _Closed
            return create_model(f"Arguments of {name}", __base__=base, **fields)
    except Exception as error:
        problem = f"cannot be arguments ({type(error).__name__}: {error})"
        raise _unfit(name, f"its parameters {', '.join(fields)} {problem}") from error


def _field(hint: Any, default: Any) -> tuple[Any, Any]:
    if default is Parameter.empty:
        return hint, ...
    try:
        plain = to_jsonable_python(default)
    except PydanticSerializationError:
        # Don't use repr(): it includes a memory address. The text is never passed on.
        return Any, Field(default=f"<{type(default).__name__}>")
    return (hint if plain == default else Any) | None, Field(default=plain)


def _given(arguments: Arguments) -> dict[str, Any]:
    """Return the arguments to pass on; those at their default are left to the code."""
    fields = type(arguments).model_fields
    return {
        name: getattr(arguments, name)
        for name in sorted(arguments.model_fields_set)
        if name not in fields
        or fields[name].is_required()
        or getattr(arguments, name) != fields[name].default
    }


class CallableCompaction(CompactionStrategy):
    """Replace a conversation by the result of a user's function or method.

    It gets the messages in the OpenAI chat form and returns such a list. A coroutine is awaited. A
    plain function runs in a thread, so that it does not block other samples, and never twice at the
    same time, unless it exceeds its time limit: then its thread is abandoned.

    Args:
        name: How the user named it.
        call: Takes the messages.
        lock: Held while a plain function runs.
        seconds: Time limit of one call.
    """

    def __init__(
        self, name: str, call: Callable[..., Any], lock: anyio.Lock, seconds: float
    ) -> None:
        super().__init__(type="summary", memory=False)
        self.name = name
        self.call = call
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
        call = partial(self.call, to_chat_form(messages))
        if inspect.iscoroutinefunction(self.call):
            reply = await self._in_time(call)
        else:
            async with self.lock:
                reply = await self._in_time(partial(_in_thread, call))
            if inspect.isawaitable(reply):
                awaitable = reply
                reply = await self._in_time(lambda: awaitable)
        return await from_chat_form(reply, messages), None

    async def _in_time(self, call: Callable[[], Awaitable[Any]]) -> Any:
        first_event = len(transcript().events)
        with anyio.move_on_after(self.seconds):
            return await call()
        reason = f"no result within {self.seconds:g} seconds ({_LIMIT})"
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
    """Return a function's result from a thread of its own, which is abandoned if cancelled."""
    outcome: Future[Any] = Future()

    def run() -> None:
        with suppress(InvalidStateError):  # nobody waits any more
            try:
                outcome.set_result(function())
            except Exception as error:
                outcome.set_exception(error)
            except BaseException as error:  # it would end the interpreter
                reason = f"it raised {description(error)}"
                outcome.set_exception(CompressionError("error", reason))

    # Python waits on exit for anyio's own threads, but not for a daemon.
    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    try:
        return await anyio.to_thread.run_sync(outcome.result, abandon_on_cancel=True)
    finally:
        outcome.cancel()
