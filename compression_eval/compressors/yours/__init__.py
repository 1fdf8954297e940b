"""Compressors of the user: ``module:name``, ``path/file.py@name``, and any command."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from inspect_ai.model import CompactionStrategy
from pydantic import Field

from compression_eval.compressors.spec import Compressor, CompressorSpec
from compression_eval.compressors.yours.adapting import adapt
from compression_eval.compressors.yours.command import CommandArguments, command_folder
from compression_eval.compressors.yours.loading import load
from compression_eval.compressors.yours.signatures import UserArguments, given

DEFAULT_TIMEOUT = 600.0
"""Seconds that one compression by a function of the user may take, if nothing else is said."""


@dataclass(frozen=True)
class UserCompressor(Compressor[UserArguments]):
    """A strategy of the user."""

    source_digest: str = ""
    """Digest of the files that it was defined in when they were imported."""


def user_compressor(name: str) -> UserCompressor | None:
    """Return the strategy that a name with ``:`` or ``@`` stands for; None for any other name.

    Arguments are checked against its signature, and what has to be constructed is constructed
    once to see that it can be.

    Raises:
        DataError: It cannot be imported, is not there, or cannot be used as a strategy.
    """
    if ":" not in name and "@" not in name:
        return None
    loaded = load(name)
    adapted = adapt(name, loaded.target)

    def build(arguments: UserArguments) -> CompactionStrategy:
        own = "timeout_seconds" in adapted.arguments.model_fields
        seconds = DEFAULT_TIMEOUT if own else getattr(arguments, "timeout_seconds", DEFAULT_TIMEOUT)
        return adapted.build(given(arguments, adapted.arguments), seconds)

    return UserCompressor(
        name=name,
        summary="yours",
        arguments=_tried(adapted.arguments, build),
        build=build,
        calls_model=True,
        source_digest=loaded.source_digest,
    )


def source_digest(spec: CompressorSpec) -> str | None:
    """Return a digest of the user's own code behind a spec, for the version of a task.

    For a module or file: the file named and the one that defines the target; not what they import.
    For a command: its program, unless that is found by ``PATH``, and arguments that name files.
    None for what is not the user's.
    """
    if isinstance(spec.compressor, UserCompressor):
        return spec.compressor.source_digest
    if not isinstance(spec.arguments, CommandArguments):
        return None
    whole = hashlib.sha256()
    for part in spec.arguments.command:
        file = command_folder(spec.arguments.command) / part
        if file.is_file():
            whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def _tried(
    arguments: type[UserArguments], build: Callable[[UserArguments], CompactionStrategy]
) -> type[UserArguments]:
    """Return the model, made to build the strategy once whenever arguments are checked.

    A validator would not do: pydantic would wrap the error that says what is wrong.
    """

    class Limited(arguments):  # type: ignore[misc, valid-type]
        timeout_seconds: float = Field(default=DEFAULT_TIMEOUT, gt=0)
        """Time limit of one compression by a function."""

    # A function may have an argument of that name itself.
    own = "timeout_seconds" in arguments.model_fields

    class Tried(arguments if own else Limited):  # type: ignore[misc]
        @classmethod
        def model_validate(cls, *args: Any, **kwargs: Any) -> Self:
            checked: Self = super().model_validate(*args, **kwargs)
            build(checked)
            return checked

    Tried.__name__ = arguments.__name__
    return Tried
