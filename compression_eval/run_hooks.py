"""Follow the start and end of runs through Inspect's hooks, and report failures.

Retries of a run are one logical run, whose states are kept until it succeeds. At its end the hook
prints what failed and the means that have a value, and makes a run with too many failures an
error.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import anyio
import click
from inspect_ai.hooks import (
    Hooks,
    ModelRetry,
    SampleAttemptStart,
    SampleEnd,
    TaskEnd,
    TaskStart,
    hooks,
)
from inspect_ai.log import (
    EvalError,
    EvalLog,
    EvalSampleSummary,
    EvalSpec,
    MetadataEdit,
    ProvenanceData,
    edit_eval_log,
    read_eval_log_sample_summaries_async,
    write_eval_log_async,
)
from inspect_ai.util import LimitExceededError

from compression_eval.fixtures.finding_files import invoked_path
from compression_eval.grading.failures import FAILURES, RunFailures, run_failures
from compression_eval.inspect_models import unknown_role
from compression_eval.sharing import (
    enter_run,
    forget_run,
    open_held_gate,
    remember_run,
    remove_kept,
)
from compression_eval.versioning import changed_since

logger = logging.getLogger(__name__)

MAX_FAILED = "max_failed"
"""Key of a log's metadata: the share of samples that may stay without a grade."""

_QUIET_RETRIES = {429: 5}
"""Attempts that fail before a notice, by status; a rate limit passes, a missing endpoint does not.
Two for any other."""


@cache
def follow_runs() -> None:
    """Register the hooks, for a task that could be made.

    Inspect prints a notice of all hooks it knows before it makes tasks. Hooks that were registered
    on import would are in it above each refused argument.
    """
    hooks("compression_eval_runs", "Says what failed or is waited for in each run.")(RunHooks)


class RunHooks(Hooks):
    """Maps each attempt to its logical run, and ends each run with a report of failures."""

    def __init__(self) -> None:
        self._specs: dict[str, EvalSpec] = {}
        self._not_logged: dict[str, list[EvalSampleSummary]] = {}
        """Of runs whose log keeps no samples (``--no-log-samples``)."""
        self._waited_for: set[tuple[str, str]] = set()

    async def on_task_start(self, data: TaskStart) -> None:
        """Remember an attempt's logical run; refuse unknown roles and retries of other data.

        Raises:
            LimitExceededError: A bound role is unknown, or the log was made from something else,
                and Inspect would reuse its samples. Any other error in a hook is only logged.
        """
        spec = data.spec
        changed = changed_since(str(spec.task_version), spec.metadata or {})
        if changed is not None:
            # That this one error gets through hooks stands only in a comment of Inspect's (in
            # `_emit_to_all`: "so that limits can be enforced via hooks"). Should that change,
            # tests/e2e/test_retry.py::test_a_retry_after_an_edit_is_refused_before_any_call fails.
            listed = "".join(f"\n  {line}" for line in changed)
            raise LimitExceededError(
                "custom",
                value=1,
                limit=0,
                message="the log to be retried was made from something else, and its samples "
                f"cannot be mixed with new ones. Changed since:{listed}\nPut it back as it was "
                "and retry that log again, or start again with inspect eval.",
            )
        # Tasks refuse this too, but one made in Python is made before roles are bound.
        if MAX_FAILED in (spec.metadata or {}) and (error := unknown_role(spec.model_roles or {})):
            raise LimitExceededError("custom", value=1, limit=0, message=str(error))
        command = click.get_current_context(silent=True)
        again = command is not None and command.info_name == "eval-retry"
        logs = command.params.get("log_files", ()) if command and again else ()
        remember_run(data.eval_id, spec.task_id, map(_folder, logs))
        if MAX_FAILED in (spec.metadata or {}):
            self._specs[data.eval_id] = spec

    async def on_model_retry(self, data: ModelRetry) -> None:
        """Let others pass a failed call; report once what is retried without end."""
        open_held_gate()
        spec = self._specs.get(data.eval_id or "")
        if spec is None or data.attempt < _QUIET_RETRIES.get(data.status_code or 0, 2):
            return
        key = (data.eval_set_id or spec.eval_id, data.model_name)
        bounds = spec.model_generate_config
        if key in self._waited_for or bounds.max_retries is not None or bounds.timeout is not None:
            return
        self._waited_for.add(key)
        logger.warning(
            "waiting for the model %s: %d attempts failed with %s%s. Inspect retries without end; "
            "bound it with --max-retries N or --timeout SECONDS, stop with Ctrl-C and go on later "
            "with %s",
            data.model_name,
            data.attempt,
            data.exception_type or "an error",
            f" {data.status_code}" if data.status_code else "",
            "the same command" if data.eval_set_id else "inspect eval-retry",
        )

    async def on_sample_attempt_start(self, data: SampleAttemptStart) -> None:
        """Tell the sample's solver and scorers their run: they start from this context."""
        enter_run(data.eval_id)

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Remember what the log does not keep of a sample."""
        spec = self._specs.get(data.eval_id)
        if spec is not None and spec.config.log_samples is False:
            self._not_logged.setdefault(data.eval_id, []).append(data.sample.summary())

    async def on_task_end(self, data: TaskEnd) -> None:
        """Report failures, write them into the log's header, and drop what the run shared."""
        forget_run(data.eval_id)
        self._specs.pop(data.eval_id, None)
        summaries = self._not_logged.pop(data.eval_id, None)
        self._waited_for = {key for key in self._waited_for if key[0] != data.eval_id}
        if MAX_FAILED in (data.log.eval.metadata or {}) and data.log.status == "success":
            if summaries is None:
                summaries = await read_eval_log_sample_summaries_async(data.log.location)
            await _close(data.log, summaries, in_eval_set=data.eval_set_id is not None)
        results = data.log.results
        whole = results and results.completed_samples == results.total_samples
        if data.log.status == "success" and whole:
            await anyio.to_thread.run_sync(remove_kept, data.log.eval.task_id)


def _folder(log_file: str) -> str:
    if "://" in log_file:
        return log_file.rpartition("/")[0]
    return str(invoked_path(log_file).absolute().parent)


async def _close(
    log: EvalLog, summaries: Sequence[EvalSampleSummary], *, in_eval_set: bool
) -> None:
    """Report and log how a run ended; one with too many failures becomes an error."""
    failures = run_failures(summaries)
    if failures is None:
        return
    error = too_many_failed(failures, float((log.eval.metadata or {})[MAX_FAILED]))
    lines = failures.lines() if failures.any else [f"none of {_listed(failures)} failed"]
    if failures.any:
        # The caller gets this very object.
        edited = edit_eval_log(
            log,
            [MetadataEdit(metadata_set={FAILURES: lines})],
            ProvenanceData(author="compression_eval", reason="counted when the run ended"),
        )
        log.log_updates, log.metadata = edited.log_updates, edited.metadata
        # An eval set would retry an error, which would fail again.
        if error and not in_eval_set:
            log.status = "error"
            text = "\n".join([error, *lines])
            log.error = EvalError(message=error, traceback=text, traceback_ansi=text)
        try:
            await write_eval_log_async(log, header_only=True)
        except Exception as problem:  # a file system may raise anything; the report remains
            logger.warning("the log's header could not say what failed: %s", problem)
    # Inspect's own report comes last; an error there makes its command exit with 1.
    name, context = log.eval.task, click.get_current_context(silent=True)
    if context is None or context.find_root().command.name != "inspect":
        if failures.any:
            logger.warning("%s: %s", name, "; ".join([*lines, *([error] if error else [])]))
        return
    if __name__ not in context.meta:
        context.meta[__name__] = _Endings()
        context.call_on_close(context.meta[__name__])
    endings = context.meta[__name__]
    shown = [*(_scores(log) if failures.graded else []), *lines]
    endings.lines += [f"{name}, {log.location}", *(f"  {line}" for line in shown)]
    endings.errors += [f"{name}: {error}"] if error else []


@dataclass
class _Endings:
    """Lines to print after the report of Inspect's command."""

    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __call__(self) -> None:
        for line in self.lines:
            click.echo(line, err=True)
        if self.errors:
            raise click.ClickException("\n".join(self.errors))


def too_many_failed(failures: RunFailures, max_failed: float) -> str:
    """Return why a run with these failures is an error; empty if it is none.

    Args:
        failures: What failed.
        max_failed: Share of samples that may stay without a grade, 0 to 1; all of them never may.
    """
    if not failures.samples or (failures.graded and failures.share <= max_failed):
        return ""
    if not failures.graded:
        return f"none of the {failures.samples} samples has a grade"
    missing = failures.samples - failures.graded
    return (
        f"{missing} of {failures.samples} samples have no grade, more than max_failed={max_failed}"
    )


def _listed(failures: RunFailures) -> str:
    kinds = (failures.compressions, failures.answers, failures.gradings, failures.readings)
    *first, last = [
        f"{kind.total} {kind.kind if kind.total == 1 else f'{kind.kind}s'}"
        for kind in kinds
        if kind.total
    ] or [f"{failures.samples} samples"]
    return f"{', '.join(first)} and {last}" if first else last


def _scores(log: EvalLog) -> list[str]:
    """Return the means that have a value, since Inspect's panel cuts the names of scores."""
    lines = []
    for score in log.results.scores if log.results else []:
        mean, *others = [metric.value for metric in score.metrics.values()]
        if not math.isnan(mean):
            error = f" ±{others[0]:.3f}" if others else ""
            lines.append(f"{score.name:<22}{mean:>9.3f}{error}")
    return lines
