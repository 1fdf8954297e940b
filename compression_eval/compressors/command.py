"""``command``: a user's program compresses; JSON messages in, JSON messages out.

It runs without a shell and without our environment's keys, with bounded output and a time limit.
When it is over, for whatever reason, its process group is killed. Inspect's own `subprocess` would
pass the whole environment on, and past the time limit wait for a child that keeps the output open.
"""

import json
import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from inspect_ai.model import ChatMessage, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo
from pydantic import AfterValidator, Field, PositiveFloat, PositiveInt

from compression_eval.compressors.chat_form import from_chat_form, to_chat_form
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.strategy import Strategy, strategy
from compression_eval.fixtures.finding_files import invoked_folder

_KEPT_ERROR_BYTES = 4_000

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


def _can_be_found(command: list[str]) -> list[str]:
    if _program(command) is None:
        raise ValueError(f"there is no program {command[0]!r} that can be run")
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
    if missing := [name for name in environment if name not in os.environ]:
        # The text may be the key itself.
        name = repr(missing[0]) if missing[0].isupper() else "of that name"
        raise ValueError(f"there is no environment variable {name}; give names, not values")
    return environment


@strategy
class CommandCompaction(Strategy):
    """Replace a conversation by the result of a program.

    The program reads one JSON document, a list of messages in the OpenAI chat form, from standard
    input, and writes such a list to standard output. It must exit with 0.
    """

    summary = "yours: a program that reads messages as JSON and writes them"

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
        sent = json.dumps(to_chat_form(messages), ensure_ascii=False).encode()
        output, stderr = await self._run(sent)
        try:
            reply = json.loads(output)
        except (ValueError, RecursionError) as error:
            what = f"not JSON ({error})" if output.strip() else "empty"
            detail = f"; on standard error: {stderr}" if stderr else ""
            raise CompressionError(
                "error", f"the command's standard output is {what}{detail}"
            ) from error
        return await from_chat_form(reply, messages), None

    async def _run(self, stdin: bytes) -> tuple[bytes, str]:
        """Return the program's standard output, and the end of its standard error in one line."""
        try:
            # A program that was just started when the sample is cancelled must be ended, too.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    [_program(self.command) or self.command[0], *self.command[1:]],
                    cwd=invoked_folder(self.command),
                    env=plain_environment(self.environment),
                    start_new_session=os.name == "posix",
                )
        except (OSError, ValueError) as error:
            raise CompressionError("error", f"the command could not be started: {error}") from error
        output, errors = bytearray(), bytearray()
        reached = ""
        try:
            with anyio.fail_after(self.timeout_seconds):
                async with anyio.create_task_group() as group:
                    group.start_soon(_feed, cast(ByteSendStream, process.stdin), stdin)
                    group.start_soon(_keep_end, cast(ByteReceiveStream, process.stderr), errors)
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
            with suppress(ProcessLookupError, PermissionError):
                if os.name == "posix":
                    os.killpg(process.pid, signal.SIGKILL)  # its children, too
                elif process.returncode is None:
                    process.kill()
            with anyio.CancelScope(shield=True):
                await process.aclose()
        line = " ".join(errors.decode("utf-8", "replace").split())
        stderr = "".join(filter(str.isprintable, line))[-1_000:]
        if reached:
            raise CompressionError("error", f"{reached}: {stderr}" if stderr else reached)
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


async def _feed(stream: ByteSendStream, data: bytes) -> None:
    # A program may answer without reading all input.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        await stream.send(data)
        await stream.aclose()


async def _keep_end(stream: ByteReceiveStream, into: bytearray) -> None:
    """Read a stream and keep only its end."""
    async for chunk in stream:
        into += chunk
        del into[:-_KEPT_ERROR_BYTES]
