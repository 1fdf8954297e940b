"""Which logical run a sample belongs to, and where its log lies.

A retried run keeps its task id, so that id names what may be shared between the first run and its
retries. Inspect's hooks give it; they do not give the place of the log.
"""

from dataclasses import dataclass

# Inspect has no public way to ask, in a running sample, where its log is written. This is the one
# place that uses a private name for it; without it, states are kept in memory only.
try:
    from inspect_ai.log._samples import sample_active
except ImportError:  # pragma: no cover - a later Inspect may move it
    sample_active = lambda: None  # noqa: E731

_task_ids: dict[str, str] = {}


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
    """Return the identity of the run that the calling sample belongs to.

    Raises:
        RuntimeError: Not called from a running sample.
    """
    active = sample_active()
    if active is None:
        raise RuntimeError("only a running sample belongs to a run")
    location = active.log_location.replace("\\", "/")
    folder = location.rpartition("/")[0] or "."
    eval_id = active.eval_id
    return RunIdentity(eval_id, _task_ids.get(eval_id, eval_id), folder)


def remember_run(eval_id: str, task_id: str) -> None:
    """Note which logical run an attempt belongs to."""
    _task_ids[eval_id] = task_id


def forget_run(eval_id: str) -> None:
    """Drop what `remember_run` noted."""
    _task_ids.pop(eval_id, None)
