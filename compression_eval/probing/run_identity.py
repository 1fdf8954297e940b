"""Which logical run a sample belongs to, and where its log lies.

A retried run keeps its task id, so that id names what may be shared between the first run and its
retries. Inspect's hooks give it; they do not give the place of the log.
"""

import logging
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunIdentity:
    """The run that the current sample belongs to."""

    eval_id: str
    """This attempt."""
    task_id: str
    """The logical run: the same for a run and its retries."""
    log_folder: str | None
    """Folder of the log, a path or URL; None if it is not known."""


# The one private name of Inspect that is used: states are kept in a folder beside the log, so that
# a retry finds them, and Inspect has no public way to ask in a running sample where its log is
# written. Its hooks give the run's ids, and a folder for eval sets only (`EvalSetStart.log_dir`,
# asked for in https://github.com/UKGovernmentBEIS/inspect_ai/pull/2394); `EvalLog.location` comes
# when the task has ended; INSPECT_LOG_DIR does not hold what --log-dir chose. No upstream issue is
# known that asks for it in a sample. Without the name, states are kept in memory.
_PRIVATE_MODULE, _PRIVATE_NAME = "inspect_ai.log._samples", "sample_active"

_eval_id: ContextVar[str] = ContextVar("compression_eval_eval_id")
_task_ids: dict[str, str] = {}
_warned: list[bool] = []


def current_run() -> RunIdentity:
    """Return the identity of the run that the calling sample belongs to.

    Raises:
        RuntimeError: Not called from a running sample.
    """
    eval_id = _eval_id.get("")
    if not eval_id:
        raise RuntimeError("only a running sample belongs to a run")
    return RunIdentity(eval_id, _task_ids.get(eval_id, eval_id), _log_folder())


def _log_folder() -> str | None:
    try:
        sample = getattr(import_module(_PRIVATE_MODULE), _PRIVATE_NAME)()
        location: str = sample.log_location.replace("\\", "/")
    except (ImportError, AttributeError):
        if not _warned:
            _warned.append(True)
            logger.warning(
                "this version of Inspect does not say where the log is, so states are not kept "
                "beside it and a retry would compress again"
            )
        return None
    return location.rpartition("/")[0] or "."


def remember_run(eval_id: str, task_id: str) -> None:
    """Note which logical run an attempt belongs to."""
    _task_ids[eval_id] = task_id


def enter_run(eval_id: str) -> None:
    """Note that the calling task, and those it starts, run a sample of an attempt."""
    _eval_id.set(eval_id)


def forget_run(eval_id: str) -> None:
    """Drop what `remember_run` noted."""
    _task_ids.pop(eval_id, None)
