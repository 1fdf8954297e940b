"""Where the interpreters with Hermes are, and what stands in them."""

import json
import os
import subprocess
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path
from pydantic import BaseModel, ValidationError

from compression_eval.compressors.hermes.child import (
    WORKER_COMMAND,
    child_environment,
    last_line,
    scratch_home,
)
from compression_eval.fixtures.errors import DataError

DEFAULT_VERSION = "0.19.0"

_DESCRIBE_SECONDS = 120


class Description(BaseModel):
    """What an interpreter holds."""

    version: str
    constructor: list[str]
    """Parameters of ``ContextCompressor``."""
    compress: list[str]
    """Parameters of its ``compress``."""


def interpreters_folder() -> Path:
    """Return the folder that holds one environment for each installed version."""
    return user_cache_path("compression_eval", appauthor=False) / "hermes"


def environment_folder(version: str) -> Path:
    """Return the folder of the environment with a version, installed or not."""
    return interpreters_folder() / version


def python_of(environment: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    if os.name == "nt":
        return environment / "Scripts" / "python.exe"
    return environment / "bin" / "python"


def find_interpreter(version: str, python: str | None) -> tuple[Path, Description]:
    """Return the interpreter to use, after a look at what it holds.

    Args:
        version: Version of ``hermes-agent`` that must be in it.
        python: A user's own interpreter, whatever version it holds; None for an installed one.

    Raises:
        DataError: There is none; the text says how to get it.
    """
    if python is not None:
        path = Path(python).expanduser()
        # Inspect makes a task in the folder of its file, so a relative path would be ambiguous.
        if not path.is_absolute() or not path.is_file():
            raise DataError(
                f"hermes: python: {python}: expected the absolute path of an interpreter"
            )
        return path, describe(path)
    path = python_of(environment_folder(version))
    if not path.is_file():
        raise DataError(
            f"hermes: hermes-agent {version} is not installed for this strategy; it needs an "
            f"interpreter of its own, which this command prepares: {install_command(version)}"
        )
    description = describe(path)
    if description.version != version:
        raise DataError(
            f"hermes: {path.parent.parent} holds hermes-agent {description.version} instead of "
            f"{version}; remove that folder, then run: {install_command(version)}"
        )
    return path, description


def install_command(version: str) -> str:
    """Return the command that installs a version."""
    option = "" if version == DEFAULT_VERSION else f" --version {version}"
    return f"compression-eval compressors install hermes{option}"


@cache
def describe(python: Path) -> Description:
    """Ask an interpreter for the version of Hermes and the parameters it takes.

    Raises:
        DataError: Hermes cannot be imported there.
    """
    try:
        with scratch_home() as home:
            done = subprocess.run(  # noqa: S603
                [str(python), *WORKER_COMMAND],
                input=json.dumps({"action": "describe"}),
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=_DESCRIBE_SECONDS,
                env=child_environment(home),
                cwd=home,
                check=False,
            )
        if done.returncode != 0:
            raise DataError(
                f"hermes: {python}: Hermes' compressor cannot be loaded: {last_line(done.stderr)}"
            )
        return Description.model_validate_json(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValidationError) as error:
        raise DataError(f"hermes: {python}: not a usable interpreter: {error}") from error
