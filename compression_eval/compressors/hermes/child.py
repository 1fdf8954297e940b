"""The process that Hermes runs in: its folder, its environment, its exchange of JSON."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval.compressors.errors import CompressionError

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
