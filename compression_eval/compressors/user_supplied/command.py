"""``command``: a user's program compresses; JSON messages in, JSON messages out.

It runs without a shell, with bounded output and a time limit, and neither it nor its children
outlive the compression.
"""

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, cast
from uuid import uuid4

import anyio
import psutil  # type: ignore[import-untyped]
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from inspect_ai.model import ChatMessage, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo
from pydantic import AfterValidator, Field, PositiveFloat, PositiveInt
from pydantic_core import PydanticCustomError

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.strategy import Strategy, strategy
from compression_eval.compressors.user_supplied.wire import from_wire, to_wire
from compression_eval.fixtures.finding_files import invoked_folder

_KEPT_ERROR_BYTES = 4_000

MARK = "COMPRESSION_EVAL_COMMAND"
"""Environment variable that marks a program's descendants, whatever session they move to."""

_INHERITED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "PWD"),
        *("TMPDIR", "TEMP", "TMP", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONUTF8", "NODE_PATH"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NO_PROXY", "no_proxy", "LD_LIBRARY_PATH"),
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA"),
        *("LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "NUMBER_OF_PROCESSORS"),
    }
)
"""Environment variables without secrets that programs need, besides ``LC_…``."""

_SWEEPS = 3
"""Passes over all processes: a killed one may just have started another."""


def _can_be_found(command: list[str]) -> list[str]:
    if any("\0" in part for part in command):
        raise PydanticCustomError("null_character", "an argument holds a null character")
    if _program(command) is None:
        raise PydanticCustomError(
            "no_program",
            "there is no program {program} that can be run",
            {"program": repr(command[0])},
        )
    return command


def _program(command: list[str]) -> str | None:
    """Return the absolute path of a command's program, or None if there is none."""
    program = command[0]
    if not program:
        return None
    if Path(program).name != program:
        program = str(invoked_folder(command) / program)
    return shutil.which(program)


def _are_set(environment: list[str]) -> list[str]:
    missing = [name for name in environment if name not in os.environ]
    if missing:
        raise PydanticCustomError(
            "no_variable",
            "there is no environment variable {name}; give names, not values",
            # The text may be the key itself.
            {"name": repr(missing[0]) if missing[0].isupper() else "of that name"},
        )
    return environment


@strategy
class CommandCompaction(Strategy):
    """Replace a conversation by the result of a program.

    The program reads one JSON document, a list of messages in the OpenAI chat form, from standard
    input, and writes such a list to standard output. It must exit with 0.
    """

    summary = "yours: a program that reads messages as JSON and writes them"
    calls_model = False

    command: Annotated[list[str], Field(min_length=1), AfterValidator(_can_be_found)]
    """The program and its arguments, as a list; no shell reads it."""
    timeout_seconds: PositiveFloat = 120.0
    """Time limit of one compression."""
    max_output_bytes: PositiveInt = 10_000_000
    """Limit of what it may write to standard output."""
    environment: Annotated[list[str], AfterValidator(_are_set)] = Field(default_factory=list)
    """Names of environment variables that it gets besides the usual ones, such as a key."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages that one run of the program writes, and None."""
        output, stderr = await self._run(json.dumps(to_wire(messages), ensure_ascii=False).encode())
        try:
            reply = json.loads(output)
        except (ValueError, RecursionError) as error:
            what = f"not JSON ({error})" if output.strip() else "empty"
            detail = f"; on standard error: {stderr}" if stderr else ""
            raise CompressionError(
                "error", f"the command's standard output is {what}{detail}"
            ) from error
        return await from_wire(reply, messages), None

    async def _run(self, stdin: bytes) -> tuple[bytes, str]:
        """Return the program's standard output, and the end of its standard error."""
        mark = uuid4().hex
        try:
            # A program that was just started when the sample is cancelled must be ended, too.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    [_program(self.command) or self.command[0], *self.command[1:]],
                    cwd=invoked_folder(self.command),
                    env=plain_environment(self.environment) | {MARK: mark},
                    start_new_session=os.name == "posix",
                )
        except (OSError, ValueError) as error:
            raise CompressionError("error", f"the command could not be started: {error}") from error
        output, errors = bytearray(), bytearray()
        reached = ""
        try:
            with anyio.fail_after(self.timeout_seconds):
                async with anyio.create_task_group() as group:
                    group.start_soon(_feed, process.stdin, stdin)
                    group.start_soon(_keep_end, process.stderr, errors)
                    async for chunk in cast(ByteReceiveStream, process.stdout):
                        output += chunk
                        if len(output) > self.max_output_bytes:
                            reached = f"the command wrote more than {self.max_output_bytes} bytes"
                            group.cancel_scope.cancel()
                            break
                if not reached:
                    await process.wait()
        except TimeoutError:
            reached = f"no reply within {self.timeout_seconds:g} seconds"
        finally:
            await _end(process, mark)
        line = " ".join(errors.decode("utf-8", "replace").split())
        stderr = "".join(character for character in line if character.isprintable())[-1_000:]
        if reached:
            detail = f": {stderr}" if stderr and len(output) <= self.max_output_bytes else ""
            raise CompressionError("error", reached + detail)
        if process.returncode:
            detail = stderr or "it wrote nothing to standard error"
            raise CompressionError(
                "error", f"the command exited with {process.returncode}: {detail}"
            )
        return bytes(output), stderr


def plain_environment(more: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment of this process without possible secrets.

    Args:
        more: Names of further variables.
    """
    wanted = _INHERITED | set(more)
    return {
        name: value
        for name, value in os.environ.items()
        if name in wanted or name.startswith("LC_")
    }


async def _feed(stream: ByteSendStream | None, data: bytes) -> None:
    # A program may answer without reading all input.
    unread = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)
    if stream is not None:
        with contextlib.suppress(*unread):
            await stream.send(data)
        with contextlib.suppress(*unread):
            await stream.aclose()


async def _keep_end(stream: ByteReceiveStream | None, into: bytearray) -> None:
    """Read a stream and keep only its end."""
    if stream is not None:
        async for chunk in stream:
            into += chunk
            del into[:-_KEPT_ERROR_BYTES]


async def _end(process: Process, mark: str) -> None:
    """Kill the rest of a program and its children, and close its streams."""
    if os.name == "posix":
        # It leads a process group, so this reaches its remaining children too.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.returncode is None:
        process.kill()
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(kill_marked, mark)
        await process.aclose()


def kill_marked(mark: str) -> None:
    """Kill processes that left the group, and perhaps lost their parent, but kept the mark."""
    for _ in range(_SWEEPS):
        alive = False
        for process in psutil.process_iter():
            # Processes of other users cannot be read, and some end meanwhile.
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == mark and process.is_running():
                    alive |= process.status() != psutil.STATUS_ZOMBIE
                    process.kill()
        if not alive:
            return
