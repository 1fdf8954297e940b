"""Run a program once: input in, bounded output out, within a time limit, without a shell."""

import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import anyio
import psutil  # type: ignore[import-untyped]
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

_KEPT_ERROR_BYTES = 4_000

_MARK = "COMPRESSION_EVAL_COMMAND"
"""Environment variable that a program's descendants inherit, whatever session they move to."""

_INHERITED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "PWD"),
        *("TMPDIR", "TEMP", "TMP", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONUTF8", "NODE_PATH"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NO_PROXY", "no_proxy", "LD_LIBRARY_PATH"),
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA"),
        *("LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "NUMBER_OF_PROCESSORS"),
    }
)
"""Environment variables that programs need and that hold no secrets, besides ``LC_…``."""

_SWEEPS = 3
"""Looks at all processes: one that is killed may just have started another."""


class ProgramError(Exception):
    """A program could not be started, took too long, or wrote too much; the text says which."""


@dataclass
class Finished:
    """What a program left."""

    exit_code: int
    output: bytes
    error_text: str
    """The end of what it wrote to standard error, in one line."""


def plain_environment(more: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment of this process without what may be a secret.

    Args:
        more: Names of variables that are wanted besides.
    """
    wanted = _INHERITED | set(more)
    return {
        name: value
        for name, value in os.environ.items()
        if name in wanted or name.startswith("LC_")
    }


async def run_program(
    command: Sequence[str],
    data: bytes,
    *,
    seconds: float,
    most_bytes: int,
    folder: Path,
    variables: Sequence[str] = (),
) -> Finished:
    """Run a program and wait for it. It never outlives this call, nor does what it started.

    Args:
        command: The program and its arguments.
        data: Its standard input.
        seconds: Time limit.
        most_bytes: Limit of its standard output. Of standard error the end is kept.
        folder: Its working folder.
        variables: Environment variables that it gets besides those that hold no secrets.

    Raises:
        ProgramError: It could not be started, or one of the limits was reached.
    """
    mark = uuid4().hex
    try:
        process = await anyio.open_process(
            list(command),
            cwd=folder,
            env=plain_environment(variables) | {_MARK: mark},
            start_new_session=os.name == "posix",
        )
    except (OSError, ValueError) as error:
        raise ProgramError(f"the command could not be started: {error}") from error
    output, errors = _Bounded(most_bytes), _Tail()
    try:
        with anyio.fail_after(seconds):
            async with anyio.create_task_group() as group:
                group.start_soon(_feed, process.stdin, data)
                group.start_soon(errors.read, process.stderr)
                await output.read(process.stdout)
                if output.exceeded:
                    group.cancel_scope.cancel()
            if not output.exceeded:
                await process.wait()
    except TimeoutError as error:
        raise ProgramError(_with(f"no reply within {seconds:g} seconds", errors.text)) from error
    finally:
        await _end(process, mark)
    if output.exceeded:
        raise ProgramError(f"the command wrote more than {most_bytes} bytes")
    return Finished(process.returncode or 0, bytes(output.data), errors.text)


def _with(reason: str, text: str) -> str:
    return f"{reason}: {text}" if text else reason


async def _feed(stream: ByteSendStream | None, data: bytes) -> None:
    if stream is None:
        return
    # A program may answer without reading everything.
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        await stream.send(data)
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        await stream.aclose()


class _Bounded:
    """Reads a stream up to a number of bytes."""

    def __init__(self, most: int) -> None:
        self.data = bytearray()
        self.most = most
        self.exceeded = False

    async def read(self, stream: ByteReceiveStream | None) -> None:
        """Read until the end, or until there is too much."""
        if stream is None:
            return
        async for chunk in stream:
            self.data += chunk
            if len(self.data) > self.most:
                self.exceeded = True
                return


class _Tail:
    """Reads a stream and keeps its end."""

    def __init__(self) -> None:
        self.data = b""

    async def read(self, stream: ByteReceiveStream | None) -> None:
        """Read until the end."""
        if stream is None:
            return
        async for chunk in stream:
            self.data = (self.data + chunk)[-_KEPT_ERROR_BYTES:]

    @property
    def text(self) -> str:
        text = self.data.decode("utf-8", "replace")
        line = " ".join(text.split())
        return "".join(character for character in line if character.isprintable())[-1_000:]


async def _end(process: Process, mark: str) -> None:
    """Kill what is left of a program and of what it started, and close its streams."""
    if os.name == "posix":
        # It leads a group of its own, so this reaches the children that it left behind too.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.returncode is None:
        process.kill()
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(_kill_marked, mark)
        await process.aclose()


def _kill_marked(mark: str) -> None:
    """Kill processes that left the group, and perhaps lost their parent, but kept the mark."""
    for _ in range(_SWEEPS):
        found = False
        for process in psutil.process_iter():
            # Those of other users cannot be read, and some end meanwhile.
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(_MARK) == mark and process.is_running():
                    found |= process.status() != psutil.STATUS_ZOMBIE
                    process.kill()
        if not found:
            return
