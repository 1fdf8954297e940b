"""Follow the start and end of runs, through Inspect's hooks."""

from inspect_ai.hooks import Hooks, TaskEnd, TaskStart, hooks

from compression_eval.probing.prefix import forget_gates
from compression_eval.probing.run_identity import forget_run, remember_run


@hooks(name="compression_eval_runs", description="Knows the task id of each running eval.")
class RunHooks(Hooks):
    """Keeps the map from an attempt to its logical run while it runs."""

    async def on_task_start(self, data: TaskStart) -> None:
        """Remember an attempt's logical run."""
        remember_run(data.eval_id, data.spec.task_id)

    async def on_task_end(self, data: TaskEnd) -> None:
        """Forget an attempt and what was kept for it."""
        forget_run(data.eval_id)
        forget_gates(data.eval_id)
