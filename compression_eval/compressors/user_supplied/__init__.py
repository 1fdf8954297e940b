"""Compressors of the user: ``module:name``, ``path/file.py@name``, and any command."""

import hashlib
from dataclasses import dataclass
from typing import Any

from inspect_ai.model import CompactionStrategy
from pydantic import PositiveFloat, create_model

from compression_eval.compressors.spec import Arguments, Compressor, CompressorSpec
from compression_eval.compressors.user_supplied.adapting import adapt, given
from compression_eval.compressors.user_supplied.loading import load
from compression_eval.fixtures.invoked_paths import invoked_folder
from compression_eval.fixtures.models import Fixture

DEFAULT_TIMEOUT = 600.0
"""Default time limit in seconds of one compression by a user's function."""


@dataclass(frozen=True)
class UserCompressor(Compressor):
    """A user's strategy."""

    source_digest: str = ""
    """Digest of the files that define it, when they were imported."""


def user_compressor(name: str) -> UserCompressor | None:
    """Return the strategy of a name with ``:`` or ``@``; None for any other name.

    Its arguments are those of its signature, and the time limit of one compression.

    Raises:
        DataError: It cannot be imported, does not exist, or cannot be used as a strategy.
    """
    if ":" not in name and "@" not in name:
        return None
    loaded = load(name)
    adapted = adapt(name, loaded.target)
    arguments: type[Arguments] = adapted.arguments
    # A function may have an argument of that name itself.
    own = "timeout_seconds" in arguments.model_fields
    if not own:
        limit: Any = (PositiveFloat, DEFAULT_TIMEOUT)
        arguments = create_model(arguments.__name__, __base__=arguments, timeout_seconds=limit)

    def build(values: Arguments, fixture: Fixture | None = None) -> CompactionStrategy:  # noqa: ARG001
        seconds = DEFAULT_TIMEOUT if own else getattr(values, "timeout_seconds", DEFAULT_TIMEOUT)
        return adapted.build(given(values, adapted.arguments), seconds)

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
