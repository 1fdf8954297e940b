"""Find and install interpreters with Hermes.

Each version of ``hermes-agent`` has a virtual environment of its own.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

from platformdirs import user_cache_path

from compression_eval.compressors.hermes.exchange import Description, describe
from compression_eval.compressors.user_supplied.command import plain_environment
from compression_eval.errors import DataError, shorten

DEFAULT_VERSION = "0.19.0"

VERSION_PATTERN = r"^\d+(\.\d+){0,3}((a|b|rc|\.post|\.dev)\d+)?$"
"""A release as package indexes write it; it becomes a folder name."""

PINNED = Path(__file__).with_name("requirements")
"""All required packages with versions and hashes, by version of Hermes.

Made by ``uv pip compile --universal --generate-hashes --no-build``.
"""

_PIPS = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def environment_folder(version: str) -> Path:
    """Return the folder of the environment with a version, installed or not."""
    return user_cache_path("compression_eval", appauthor=False) / "hermes" / version


def python_of(environment: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    if os.name == "nt":
        return environment / "Scripts" / "python.exe"
    return environment / "bin" / "python"


def find_interpreter(version: str, python: str | None) -> tuple[Path, Description]:
    """Return the interpreter to use and what it holds.

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


def install(version: str, base_python: str | None = None) -> tuple[Path, Description]:
    """Make a virtual environment with ``hermes-agent`` from the package index.

    Only wheels are installed, so that no package runs code during installation, and pip gets no
    environment variable that may hold a key. A version in `PINNED` is installed exactly as pinned;
    for others only the version of the package itself is fixed.

    The environment is built beside its final place and moved there when it works, so that an
    interrupted installation never counts. An existing environment stays unchanged.

    Args:
        version: Version of the package.
        base_python: Interpreter to make the environment from; by default the running one.

    Returns:
        The folder, and what is in it.

    Raises:
        DataError: The version is not one, or a step failed; pip's own words are on the terminal.
    """
    if not re.fullmatch(VERSION_PATTERN, version):
        raise DataError(f"--version: {shorten(version)} is not a version of a package")
    target = environment_folder(version)
    if not python_of(target).is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=f".{version}-", dir=target.parent))
        try:
            _fill(draft, version, base_python or sys.executable)
            draft.replace(target)
        except OSError as error:
            if not python_of(target).is_file():  # else another process has installed it meanwhile
                raise DataError(f"{target}: cannot be written ({error.strerror})") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return target, describe(python_of(target))


def _fill(folder: Path, version: str, base_python: str) -> None:
    _run([base_python, "-m", "venv", str(folder)], "the environment could not be made")
    python = str(python_of(folder))
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip.append("--only-binary=:all:")
    pinned = PINNED / f"{version}.txt"
    wanted = ["--require-hashes", "--no-deps", "-r", str(pinned)]
    if not pinned.is_file():
        wanted = [f"hermes-agent=={version}"]
    _run([*pip, *wanted], f"hermes-agent {version} could not be installed")
    describe(Path(python))


def _run(command: list[str], failure: str) -> None:
    try:
        names = [name for name in os.environ if name.startswith("PIP_") or name.upper() in _PIPS]
        done = subprocess.run(command, check=False, env=plain_environment(names))  # noqa: S603
    except OSError as error:
        raise DataError(f"{failure}: {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise DataError(f"{failure} (exit {done.returncode})")
