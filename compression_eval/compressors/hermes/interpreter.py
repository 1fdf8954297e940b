"""The interpreters that hold Hermes: how one is installed, described and run.

Each version of ``hermes-agent`` has a virtual environment of its own, and each exchange with it a
process and a home folder of its own, without credentials and without a way to the network.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import anyio
from platformdirs import user_cache_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.yours.command import plain_environment
from compression_eval.fixtures.errors import DataError, shorten

DEFAULT_VERSION = "0.19.0"

VERSION_PATTERN = r"^\d+(\.\d+){0,3}((a|b|rc|\.post|\.dev)\d+)?$"
"""A release as package indexes write it; it becomes a folder name."""

PINNED = Path(__file__).with_name("requirements")
"""By version, all packages that it needs with their versions and hashes.

Made by ``uv pip compile --universal --generate-hashes --no-build``.
"""

_PIPS = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_DESCRIBE_SECONDS = 120

# -P keeps our own folder, where the worker lies, off the module path.
WORKER_COMMAND = ("-P", "-s", str(Path(__file__).with_name("worker.py")))

_DEAD_PROXY = "http://127.0.0.1:9"
"""Nothing listens on the discard port: a request that is not for the loopback fails at once."""

# The model call is waited for by us, with Inspect's own limits; Hermes must not give up before.
_CONFIGURATION = "auxiliary:\n  compression:\n    timeout: 86400\n"

_INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "WINDIR")
_SHOWN_CHARACTERS = 300


class WorkerReply(BaseModel):
    """What the worker returns for one compression."""

    model_config = ConfigDict(extra="forbid")

    version: str
    messages: list[dict[str, Any]]
    flags: dict[str, Any]
    """Hermes' own record of how the call went: every plain ``_last_…`` attribute."""
    compressions: int = Field(ge=0)
    """How many compressions it counted during the call: 1 or 0."""
    effective: dict[str, Any]
    """The constructor arguments it was given."""
    budgets: dict[str, int | None]
    """Token budgets that it derived from them."""
    dropped: list[str]
    """Arguments that this version does not take."""
    clock_frozen: bool
    """Whether it has a clock to freeze; old versions put no date into the prompt."""


@contextmanager
def scratch_home() -> Iterator[Path]:
    """Give a fresh home folder with the settings that the exchange needs; removed afterwards."""
    with TemporaryDirectory(prefix="compression-eval-hermes-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        (home / "config.yaml").write_text(_CONFIGURATION, encoding="utf-8")
        yield home


def child_environment(home: Path) -> dict[str, str]:
    """Return environment variables for the process: no credentials, no user settings.

    All its traffic but that to the loopback is sent to where nothing listens, so that a version
    that looks up models or prices on the network neither waits nor tells anybody.
    """
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return environment | {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "HERMES_HOME": str(home),
        "HERMES_TIMEZONE": "UTC",
        "HTTP_PROXY": _DEAD_PROXY,
        "HTTPS_PROXY": _DEAD_PROXY,
        "ALL_PROXY": _DEAD_PROXY,
        "NO_PROXY": "127.0.0.1,localhost",
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
    }


async def run_worker(python: Path, request: Mapping[str, Any]) -> WorkerReply:
    """Have the worker carry out one request; the process ends with this call, cancelled or not.

    Raises:
        CompressionError: It could not be started, failed, or answered something else than it must.
    """
    with scratch_home() as home:
        try:
            done = await anyio.run_process(
                [str(python), *WORKER_COMMAND],
                input=json.dumps(request).encode(),
                check=False,
                env=child_environment(home),
                cwd=home,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise CompressionError("error", f"Hermes' interpreter {python}: {error}") from error
    if done.returncode != 0:
        reason = last_line(done.stderr.decode("utf-8", "replace"))
        raise CompressionError("error", f"Hermes failed (exit {done.returncode}): {reason}")
    try:
        return WorkerReply.model_validate_json(done.stdout)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in problem["loc"])
        raise CompressionError(
            "error", f"Hermes' worker answered out of form: {field}: {problem['msg']}"
        ) from error


def last_line(text: str) -> str:
    """Return the last line that says something: of a traceback, the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_SHOWN_CHARACTERS] if lines else "it said nothing"


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
