"""Follow the start and end of runs, through Inspect's hooks."""

from inspect_ai.hooks import Hooks, TaskEnd, TaskStart, hooks
from inspect_ai.util import LimitExceededError

from compression_eval.probing.prefix import forget_gates
from compression_eval.probing.run_identity import forget_run, remember_run
from compression_eval.versioning import changed_since


@hooks(name="compression_eval_runs", description="Knows the task id of each running eval.")
class RunHooks(Hooks):
    """Keeps the map from an attempt to its logical run while it runs."""

    async def on_task_start(self, data: TaskStart) -> None:
        """Remember an attempt's logical run; refuse to go on with a log made from something else.

        Raises:
            LimitExceededError: It was: Inspect would count its samples as those of this version.
                Any other error in a hook is only logged.
        """
        version = str(data.spec.task_version)
        changed = changed_since(version, data.spec.metadata or {})
        if changed is not None:
            listed = "".join(f"\n  {line}" for line in changed)
            raise LimitExceededError(
                "custom",
                value=1,
                limit=0,
                message="the log to be retried was made from something else, and its samples "
                f"cannot be mixed with new ones. Changed since:{listed}\nPut it back as it was "
                "and retry that log again, or run anew with inspect eval.",
            )
        remember_run(data.eval_id, data.spec.task_id)

    async def on_task_end(self, data: TaskEnd) -> None:
        """Forget an attempt and what was kept for it."""
        forget_run(data.eval_id)
        forget_gates(data.eval_id)
