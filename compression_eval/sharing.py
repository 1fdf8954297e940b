"""What the samples of a run share: states, and the prefixes of requests about one state.

A state is computed once for all samples that need it, and kept next to the log until the run has
succeeded, so that a retry finds it.
Requests about one state have a long common prefix; the first one goes ahead, so that the others
read it from the provider's cache.
"""

import gzip
import hashlib
import logging
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from uuid import uuid4

import anyio
from anyio.lowlevel import RunVar
from inspect_ai.model import Model
from inspect_ai.util import LimitExceededError

from compression_eval.compressors.errors import root_cause
from compression_eval.compressors.state import State

logger = logging.getLogger(__name__)

STATES_FOLDER = "compression_states"
"""Folder next to the logs; one folder for each logical run in it."""

MAX_INTERRUPTIONS = 3
"""After so many owners were cancelled or ran into a limit, a state is not computed again."""

MAX_WAIT_SECONDS = 10.0
"""How long others let a first call go ahead. Providers have a prefix in their cache once the first
reply has begun, so a call that takes longer than this has filled the cache or is in trouble."""

_NO_PROMPT_CACHE = frozenset(
    {"embedded", "mockllm", "none", "hf", "vllm", "sglang", "llama-cpp-python"}
)
"""Providers without a prompt cache that is billed; calls to them all go at once."""

# The one private name of Inspect that is used: states are kept in a folder next to the log, so that
# a retry finds them, and Inspect has no public way to ask in a running sample where its log is
# written. Its hooks give the run's ids, and a folder for eval sets only (`EvalSetStart.log_dir`,
# asked for in https://github.com/UKGovernmentBEIS/inspect_ai/pull/2394); `EvalLog.location` comes
# when the task has ended; INSPECT_LOG_DIR does not hold what --log-dir chose. No upstream issue is
# known that asks for it in a sample. Without the name, states are kept in memory.
_PRIVATE_MODULE, _PRIVATE_NAME = "inspect_ai.log._samples", "sample_active"

_eval_id: ContextVar[str] = ContextVar("compression_eval_eval_id")
_runs: dict[str, str] = {}
"""Logical run of each attempt."""
_folders: dict[str, set[str]] = {}
"""Folders of logs with the states of each logical run; a retry may write its log elsewhere."""


@dataclass(frozen=True)
class RunIdentity:
    """The run that the current sample belongs to."""

    eval_id: str
    """This attempt."""
    task_id: str
    """The logical run: the same for a run and its retries."""
    log_folder: str | None
    """Folder of the log, a path or URL; None if it is not known."""


def current_run() -> RunIdentity:
    """Return the run of the calling sample."""
    eval_id = _eval_id.get()
    return RunIdentity(eval_id, _runs.get(eval_id, eval_id), _log_folder())


def current_attempt() -> str:
    """Return the id of the calling sample's attempt; empty while an old log is scored again."""
    return _eval_id.get("")


def _log_folder() -> str | None:
    try:
        sample = getattr(import_module(_PRIVATE_MODULE), _PRIVATE_NAME)()
        location: str = sample.log_location.replace("\\", "/")
    except (ImportError, AttributeError):
        _warn_once(
            "this version of Inspect does not say where the log is, so states are not kept next to "
            "it and a retry would compress again"
        )
        return None
    return location.rpartition("/")[0] or "."


@cache
def _warn_once(text: str) -> None:
    logger.warning("%s", text)


def remember_run(eval_id: str, task_id: str, folders: Iterable[str] = ()) -> None:
    """Note which logical run an attempt belongs to.

    Args:
        eval_id: The attempt.
        task_id: The logical run.
        folders: Where logs of earlier attempts are, paths or URLs.
    """
    _runs[eval_id] = task_id
    _folders.setdefault(task_id, set()).update(folders)


def enter_run(eval_id: str) -> None:
    """Note that the calling task, and those it starts, run a sample of an attempt."""
    _eval_id.set(eval_id)


def forget_run(eval_id: str) -> None:
    """Drop what an attempt that has ended shared in memory."""
    _runs.pop(eval_id, None)
    gates = _gates.get({})
    for key in [key for key in gates if key[0] == eval_id]:
        del gates[key]


def remove_kept(task_id: str) -> None:
    """Remove the states of a logical run that has succeeded: nothing continues with them."""
    import fsspec

    for folder in _folders.pop(task_id, ()):
        place = f"{folder.rstrip('/')}/{STATES_FOLDER}"
        try:
            system, path = fsspec.core.url_to_fs(place, use_listings_cache=False)
            if system.exists(f"{path}/{task_id}"):
                system.rm(f"{path}/{task_id}", recursive=True)
            with suppress(OSError):  # another task of the set may be removing it, too
                if system.exists(path) and not system.ls(path):
                    system.rmdir(path)
        except Exception as error:  # a file system may raise anything; the run has succeeded
            logger.warning("%s: kept states could not be removed: %s", place, error)


Place = tuple[str, int, int]
"""Fixture, cut and replicate of a state."""


class SharedError(Exception):
    """Another sample's computation of a state ended with an error unrelated to the state."""


@dataclass
class _Slot:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    state: State | None = None
    interruptions: int = 0
    limit: LimitExceededError | None = None
    """The last one that an owner ran into."""
    attempts: int = 0
    """Number of ended computations."""
    error: Exception | None = None
    """The error of the last computation, if it gave no state."""


class SharedStates:
    """States by run and key; the first sample that needs one computes it, the others wait.

    A sample that computes one may be cancelled or run into a limit: then the next one that waits
    takes over; after `MAX_INTERRUPTIONS` the others end with such a limit too. A strategy that
    fails is not tried again in the same logical run; its failure is the state that all samples get.
    An error that says nothing about the strategy, such as an outage of the vendor, goes to all
    samples that waited for this computation, and nothing is kept: a sample that comes later, or is
    retried, tries again.
    """

    def __init__(self) -> None:
        self._slots: dict[tuple[str, str], _Slot] = {}

    async def get(
        self, key: str, compute: Callable[[], Awaitable[State]], place: Place
    ) -> tuple[State, bool]:
        """Return the state for a key, and whether this call computed it.

        The key names the state within its logical run; one caller at a time computes it. A kept
        state of another place is not taken for it.
        """
        run = current_run()
        slot = self._slots.setdefault((run.eval_id, key), _Slot())
        attempts = slot.attempts
        async with slot.lock:
            if slot.state is not None:
                return slot.state, False
            if slot.error is not None and slot.attempts > attempts:
                raise SharedError(
                    "the compression that this sample waited for ended with "
                    f"{root_cause(slot.error)}"
                ) from slot.error
            if kept := await anyio.to_thread.run_sync(_kept_state, run, key, place):
                slot.state = kept
                return kept, False
            if slot.interruptions >= MAX_INTERRUPTIONS:
                raise LimitExceededError(
                    slot.limit.type if slot.limit else "custom",
                    value=slot.interruptions,
                    limit=MAX_INTERRUPTIONS,
                    message=f"the compression was interrupted {slot.interruptions} times",
                )
            slot.error = None
            try:
                slot.state = state = await compute()
            except LimitExceededError as error:
                slot.limit = error
                slot.interruptions += 1
                raise
            except Exception as error:
                slot.error = error
                raise
            except BaseException:
                slot.interruptions += 1
                raise
            finally:
                slot.attempts += 1
            await anyio.to_thread.run_sync(_keep, run, key, state)
            return state, True


def _kept_state(run: RunIdentity, key: str, place: Place) -> State | None:
    """Return the state that this attempt or an earlier one has kept; also next to this log then."""
    if run.log_folder is None:
        return None
    elsewhere = _folders.get(run.task_id, set()) - {run.log_folder}
    for folder in [run.log_folder, *sorted(elsewhere)]:
        if (state := load_state(_state_path(folder, run.task_id, key), place)) is not None:
            if folder != run.log_folder:
                _keep(run, key, state)
            return state
    return None


def _keep(run: RunIdentity, key: str, state: State) -> None:
    if run.log_folder is None:
        return
    try:
        save_state(_state_path(run.log_folder, run.task_id, key), state)
    except Exception as error:  # a file system may raise anything; the run can continue
        _warn_once(
            f"states cannot be saved next to the log, so a retry would compress again: {error}"
        )
    else:
        _folders.setdefault(run.task_id, set()).add(run.log_folder)


def _state_path(log_folder: str, task_id: str, key: str) -> str:
    # A fixture's name is untrusted, so it never becomes part of a path.
    name = hashlib.sha256(key.encode()).hexdigest()
    return f"{log_folder.rstrip('/')}/{STATES_FOLDER}/{task_id}/{name}.state.gz"


def load_state(path: str, place: Place) -> State | None:
    """Return the state that a file keeps, or None if there is none that can be read.

    A file that is damaged or keeps the state of another place counts as none: the state is then
    computed again. The path may be a URL.
    """
    import fsspec

    try:
        with fsspec.open(path, "rb") as file:
            state = State.model_validate_json(gzip.decompress(file.read()))
        if (state.fixture, state.cut, state.replicate) != place:
            raise ValueError("it is of another conversation, cut or replicate")
        return state
    except FileNotFoundError:
        return None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        logger.warning("a kept state cannot be used and is computed again: %s", error)
        return None


def save_state(path: str, state: State) -> None:
    """Save a state in a file atomically."""
    import fsspec

    content = gzip.compress(state.model_dump_json().encode(), mtime=0)
    if "://" in path and not path.startswith("file://"):
        with fsspec.open(path, "wb") as file:
            file.write(content)
        return
    target = Path(path.removeprefix("file://"))
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{uuid4().hex}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(target)
    finally:  # on a full disk, half a file would only take room from the log
        partial.unlink(missing_ok=True)


@dataclass
class _Gate:
    opened: anyio.Event = field(default_factory=anyio.Event)
    deadline: float = field(default_factory=lambda: anyio.current_time() + MAX_WAIT_SECONDS)


_gates: RunVar[dict[tuple[str, str, str], _Gate]] = RunVar("compression_eval_gates")
"""By attempt, model and prefix. They end with the event loop: a scoring of old logs has no end."""
_held: ContextVar[_Gate | None] = ContextVar("compression_eval_held_gate", default=None)
"""The gate that this task's call holds."""


def has_prompt_cache(model: Model | str) -> bool:
    """Return whether a model's provider may bill a repeated prefix at a lower price."""
    return str(model).partition("/")[0] not in _NO_PROMPT_CACHE


@asynccontextmanager
async def prefix_first(key: str, model: Model) -> AsyncIterator[None]:
    """Enter at once as the first for a key, else after the first has left.

    Sent at the same moment, each request with the same prefix would be billed in full. Nobody
    waits for a first call that has failed, were it only its first attempt, nor longer than
    `MAX_WAIT_SECONDS` after it began. The key names the prefix, for example by its state.
    """
    if not has_prompt_cache(model):
        yield
        return
    name = (current_attempt(), str(model), key)
    gates = _gates.get({})
    _gates.set(gates)
    if gate := gates.get(name):
        with anyio.CancelScope(deadline=gate.deadline):
            await gate.opened.wait()
        yield
        return
    gates[name] = gate = _Gate()
    token = _held.set(gate)
    try:
        yield
    finally:
        gate.opened.set()
        _held.reset(token)


def open_held_gate() -> None:
    """Let others go ahead of the call that this task makes, if they wait for it."""
    if gate := _held.get():
        gate.opened.set()
