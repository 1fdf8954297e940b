"""The sandbox ``bubblewrap``: one folder on this machine is all that a command can change.

Each command runs under ``bwrap`` in namespaces of its own. It finds installed programs read-only
and the sample's folder as `FOLDER`; there is no network and no other file, and what it starts ends
with it. Memory, processes and disk space are not limited.
"""

import posixpath
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal, overload

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentLimits,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from inspect_ai.util import subprocess as run_subprocess

from compression_eval.errors import one_line
from compression_eval.fixtures.locations import data_folder
from compression_eval.fixtures.recording import ENVIRONMENT, WORKSPACE

FOLDER = WORKSPACE
"""The working folder, as commands in the sandbox name it."""

_PARTS = ("bin", "sbin", "lib", "lib32", "lib64", "libexec", "include", "pyvenv.cfg")
"""What programs need of a folder such as ``/usr``; other things next to them may be private."""
_ETC = ("alternatives", "group", "hosts", "ld.so.cache", "localtime", "nsswitch.conf", "passwd")
_PYTHON = (sys.prefix, sys.base_prefix)
_STARTED = b"."
"""Written to stderr before the command, so that an error of ``bwrap`` itself is told from one."""
_START = f'printf {_STARTED.decode()} >&2; exec "$@"'
_WRITE = 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"'
_ERRORS = {
    "No such file or directory": FileNotFoundError,
    "Is a directory": IsADirectoryError,
    "Permission denied": PermissionError,
    "Read-only file system": PermissionError,
}


def missing() -> str | None:
    """Try the sandbox out and return what it lacks on this machine; None if it works."""
    if shutil.which("bwrap") is None:
        return "bwrap is not on the PATH (it is in the package bubblewrap of most systems)"
    with tempfile.TemporaryDirectory() as folder:
        trial = ["bash", "-c", "python3 --version && git --version"]
        command = _command(_made(Path(folder)), trial, FOLDER, {})
        try:
            done = subprocess.run(command, capture_output=True, timeout=30, check=False)  # noqa: S603 - a fixed command
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bwrap does not run: {one_line(str(error), 200)}"
    if done.returncode:
        said = done.stderr.removeprefix(_STARTED).decode(errors="replace")
        return f"a trial of bwrap failed: {one_line(said, 200)}"
    return None


def _made(root: Path) -> Path:
    """Make the folders of a sample."""
    for name in ("project", "tmp", "home"):
        (root / name).mkdir()
    return root


def _command(root: Path, command: list[str], cwd: str, env: dict[str, str]) -> list[str]:
    """Return a command line that runs a command with a sample's folders."""
    places = ("/usr/local", "/usr")
    searched = [f"{place}/bin" for place in (sys.prefix, *places)]
    inside = {**ENVIRONMENT, "HOME": "/home/agent", "PATH": ":".join([*searched, "/bin"]), **env}
    options = [
        # As root without CAP_SYS_ADMIN, --unshare-all alone would not make a user namespace; with
        # capabilities in that one, what is read-only could be mounted again.
        *("--unshare-all", "--unshare-user", "--cap-drop", "ALL"),
        *("--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"),
        *("--bind", str(root / "tmp"), "/tmp", "--bind", str(root / "home"), "/home/agent"),  # noqa: S108
    ]
    shown = [f"{place}/{part}" for place in (*places, *_PYTHON) for part in _PARTS]
    shown += [*(f"{place}/share" for place in places), *(f"/etc/{name}" for name in _ETC)]
    # Settings of the kernel, which root could write to without any capability.
    shown += [f"/proc/{name}" for name in ("acpi", "fs", "scsi", "sys", "sysrq-trigger")]
    for path in dict.fromkeys(shown):
        options += ["--ro-bind", path, path] if Path(path).exists() else []
    for name in _PARTS:
        top = Path("/", name)
        if top.is_symlink():
            options += ["--symlink", str(top.readlink()), str(top)]
        elif top.is_dir():
            options += ["--ro-bind", str(top), str(top)]
    for hidden in (Path(__file__).parent.parent, data_folder()):  # they contain the solutions
        if any(hidden.is_relative_to(path) for path in shown):
            options += ["--tmpfs", str(hidden)]
    options += ["--bind", str(root / "project"), FOLDER, "--remount-ro", "/", "--chdir", cwd]
    # By `env`, not by an option of bwrap: its own first environment can be read in /proc/1.
    variables = [f"{name}={value}" for name, value in inside.items()]
    bwrap = [str(shutil.which("bwrap")), *options, "--", "bash", "-c", _START, "bash"]
    return ["env", "-i", *variables, *bwrap, *command]


@sandboxenv(name="bubblewrap")
class BubblewrapSandboxEnvironment(SandboxEnvironment):
    """A folder on this machine whose commands run under ``bwrap``."""

    def __init__(self) -> None:
        super().__init__()
        self._temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._root = _made(Path(self._temporary.name))

    @classmethod
    async def sample_init(
        cls,
        task_name: str,  # noqa: ARG003
        config: SandboxEnvironmentConfigType | None,  # noqa: ARG003
        metadata: dict[str, str],  # noqa: ARG003
    ) -> dict[str, SandboxEnvironment]:
        """Make the folder of a sample."""
        return {"default": cls()}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,  # noqa: ARG003
        config: SandboxEnvironmentConfigType | None,  # noqa: ARG003
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,  # noqa: ARG003
    ) -> None:
        """Remove it."""
        for environment in environments.values():
            environment.as_type(cls)._temporary.cleanup()

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,  # noqa: ARG002
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Run a command; see Inspect's `SandboxEnvironment`."""
        if user is not None:
            raise SandboxUserUnsupportedError("bubblewrap runs commands as the current user only")
        limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        where = posixpath.join(FOLDER, cwd or "")
        command = _command(self._root, cmd, where, env or {})
        done = await _run(command, input, limit, timeout=timeout, concurrency=concurrency)
        out, err = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
        return ExecResult(done.success, done.returncode, out, err)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file as a command in the sandbox would: no link leads out of it."""
        await self._on_file(["bash", "-c", _WRITE, "bash"], file, contents)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Read a file as a command in the sandbox would."""
        content = await self._on_file(["cat", "--"], file)
        return content.decode() if text else content

    async def _on_file(
        self, program: list[str], file: str, given: str | bytes | None = None
    ) -> bytes:
        command = [*program, posixpath.join(FOLDER, file)]
        limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        done = await _run(_command(self._root, command, FOLDER, {}), given, limit + 1)
        if not done.success:
            said = one_line(done.stderr.decode(errors="replace"), 200)
            raise next((kind for text, kind in _ERRORS.items() if text in said), OSError)(said)
        if len(done.stdout) > limit:
            size = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR
            raise OutputLimitExceededError(limit_str=size, truncated_output=None)
        return done.stdout


async def _run(
    command: list[str],
    given: str | bytes | None,
    limit: int,
    *,
    timeout: int | None = None,
    concurrency: bool = True,
) -> ExecResult[bytes]:
    done = await run_subprocess(
        command,
        text=False,
        input=given,
        output_limit=limit,
        timeout=timeout,
        concurrency=concurrency,
    )
    if done.stderr.startswith(b"bwrap: "):
        raise RuntimeError(one_line(done.stderr.decode(errors="replace"), 200))
    done.stderr = done.stderr.removeprefix(_STARTED)
    return done
