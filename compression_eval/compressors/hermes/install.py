"""Prepare an interpreter that holds a version of Hermes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

from compression_eval.compressors.hermes.interpreter import (
    Description,
    describe,
    environment_folder,
    interpreters_folder,
    python_of,
)
from compression_eval.compressors.hermes.strategy import VERSION_PATTERN
from compression_eval.compressors.yours.processes import plain_environment
from compression_eval.fixtures.errors import DataError, shorten

PINNED = Path(__file__).with_name("requirements")
"""By version, all packages that it needs with their versions and hashes.

Made by ``uv pip compile --universal --generate-hashes --no-build``.
"""

_PIPS = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def install(version: str, base_python: str | None = None) -> tuple[Path, Description]:
    """Make a virtual environment with ``hermes-agent`` from the package index.

    Only wheels are installed, so that no package runs code on the way, and pip is given no
    variable that may hold a key. A version in `PINNED` is installed exactly as it stands there;
    of others only the version of the package itself is fixed.

    It is made beside its place and moved there when it works, so that one that was interrupted
    is never taken for installed. What is installed already is left as it is.

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
        interpreters_folder().mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=f".{version}-", dir=interpreters_folder()))
        try:
            _fill(draft, version, base_python or sys.executable)
            _move(draft, target)
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


def _move(draft: Path, target: Path) -> None:
    try:
        draft.replace(target)
    except OSError as error:
        if not python_of(target).is_file():  # else somebody else has installed it meanwhile
            raise DataError(f"{target}: cannot be written ({error.strerror})") from error


def _run(command: list[str], failure: str) -> None:
    try:
        names = [name for name in os.environ if name.startswith("PIP_") or name.upper() in _PIPS]
        done = subprocess.run(command, check=False, env=plain_environment(names))  # noqa: S603
    except OSError as error:
        raise DataError(f"{failure}: {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise DataError(f"{failure} (exit {done.returncode})")
