"""One exchange with Hermes in a process of its own, without credentials and without a network."""

import json
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.hermes.answering import Reply
from compression_eval.errors import DataError

_DESCRIBE_SECONDS = 120
_MAX_LINE_BYTES = 64 * 1024 * 1024
_MAX_SHOWN = 300

# -P keeps the worker's folder, which is ours, off the module path.
_WORKER = ("-P", "-s", str(Path(__file__).with_name("worker.py")))

_DEAD_PROXY = "http://127.0.0.1:9"
"""Nothing listens on the discard port: a request that is not for the loopback fails at once."""

# We wait for the model call, within Inspect's limits; Hermes must not give up earlier.
_CONFIGURATION = "auxiliary:\n  compression:\n    timeout: 86400\n"

_INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "WINDIR")


class Description(BaseModel):
    """The version of Hermes in an interpreter, and the parameters it takes."""

    version: str
    constructor: list[str]
    """Parameters of ``ContextCompressor``."""
    compress: list[str]
    """Parameters of its ``compress``."""


class WorkerReply(BaseModel):
    """The worker's result of one compression."""

    model_config = ConfigDict(extra="forbid")

    version: str
    messages: list[dict[str, Any]]
    flags: dict[str, Any]
    """Hermes' own record of the call: every plain ``_last_…`` attribute."""
    compressions: int = Field(ge=0)
    """Compressions that it counted during the call: 1 or 0."""
    effective: dict[str, Any]
    """The constructor arguments it was given."""
    budgets: dict[str, int | None]
    """Token budgets that it derived from them."""
    dropped: list[str]
    """Arguments that this version does not take."""
    clock_frozen: bool
    """Whether it has a clock to freeze; old versions have no date in the prompt."""


@contextmanager
def _scratch_home() -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a fresh home folder and an environment without credentials and user settings.

    Traffic other than to the loopback goes to a closed port, so that a version that looks up models
    or prices on the network neither waits nor discloses anything.
    """
    with TemporaryDirectory(prefix="compression-eval-hermes-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        (home / "config.yaml").write_text(_CONFIGURATION, encoding="utf-8")
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        yield (
            home,
            inherited
            | dict.fromkeys(("HOME", "USERPROFILE", "HERMES_HOME"), str(home))
            | dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _DEAD_PROXY)
            | {
                "HERMES_TIMEZONE": "UTC",
                "NO_PROXY": "127.0.0.1,localhost",
                "PYTHONHASHSEED": "0",
                "PYTHONUTF8": "1",
            },
        )


@cache
def describe(python: Path) -> Description:
    """Ask an interpreter for the version of Hermes and the parameters it takes.

    Raises:
        DataError: Hermes cannot be imported there.
    """
    try:
        with _scratch_home() as (home, environment):
            done = subprocess.run(  # noqa: S603
                [str(python), *_WORKER],
                input=json.dumps({"action": "describe"}),
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=_DESCRIBE_SECONDS,
                env=environment,
                cwd=home,
                check=False,
            )
        if done.returncode != 0:
            raise DataError(
                f"hermes: {python}: Hermes' compressor cannot be loaded: {_last_line(done.stderr)}"
            )
        return Description.model_validate_json(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValidationError) as error:
        raise DataError(f"hermes: {python}: not a usable interpreter: {error}") from error


async def run_worker(
    python: Path,
    request: Mapping[str, Any],
    answer: Callable[[Mapping[str, Any]], Awaitable[Reply]],
    seconds: float,
) -> WorkerReply:
    """Have the worker execute one request; its process ends with this call.

    Args:
        python: Hermes' interpreter.
        request: What `worker.compress` takes.
        answer: Answers a chat request of Hermes in the caller's context: the transcript and limits
            of an Inspect sample. An error of it ends the exchange.
        seconds: Time limit, the answers not counted.

    Raises:
        CompressionError: It could not be started, failed, or returned a malformed answer.
    """
    with _scratch_home() as (home, environment), TemporaryFile() as errors:
        command = [str(python), *_WORKER]
        try:
            with anyio.CancelScope(shield=True):  # else a cancelled start may leave it running
                process = await anyio.open_process(
                    command, stderr=errors, env=environment, cwd=home
                )
        except OSError as error:
            raise CompressionError("error", f"Hermes' interpreter {python}: {error}") from error
        try:
            stdin = cast(ByteSendStream, process.stdin)
            output = BufferedByteReceiveStream(cast(ByteReceiveStream, process.stdout))
            message: Any = request
            left = seconds
            while True:
                started = anyio.current_time()
                with anyio.move_on_after(left) as limit:
                    try:
                        await stdin.send(json.dumps(message).encode() + b"\n")
                        line = await output.receive_until(b"\n", _MAX_LINE_BYTES)
                    except (anyio.BrokenResourceError, anyio.IncompleteRead, anyio.EndOfStream):
                        code = await process.wait()
                        errors.seek(0)
                        reason = _last_line(errors.read().decode("utf-8", "replace"))
                        raise CompressionError(
                            "error", f"Hermes failed (exit {code}): {reason}"
                        ) from None
                if limit.cancelled_caught:
                    raise CompressionError("error", f"Hermes took longer than {seconds:g} seconds")
                left -= anyio.current_time() - started
                reply = json.loads(line)
                if "ask" not in reply:
                    return _checked(reply)
                message = await answer(reply["ask"])
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.aclose()


def _checked(reply: object) -> WorkerReply:
    try:
        return WorkerReply.model_validate(reply)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in problem["loc"])
        raise CompressionError(
            "error", f"Hermes' worker answered out of form: {field}: {problem['msg']}"
        ) from error


def _last_line(text: str) -> str:
    """Return the last line that is not blank: of a traceback, the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_MAX_SHOWN] if lines else "it said nothing"
