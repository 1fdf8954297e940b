"""Every named arm over the shipped fixtures, in one table.

    python -m benchmarks.arms            # all arms
    python -m benchmarks.arms full tail  # some

One epoch with the embedded model as answerer, grader and compressor. An arm that cannot run here
is listed with the reason that its own states give.
"""

import sys
import tempfile
from collections import Counter

from inspect_ai import eval  # noqa: A004
from inspect_ai.log import EvalLog

from compression_eval.arguments import TaskArguments
from compression_eval.compressors.registry import COMPRESSORS
from compression_eval.errors import DataError
from compression_eval.grading.metrics import MEAN
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.record import ProbeRecord
from compression_eval.task import compression_task

_COLUMNS = ("tokens_retained", "tokens_removed", "fact_survival", "fact_recall", "overall")


def run(arm: str, folder: str) -> EvalLog:
    """Return the log of one epoch of an arm."""
    (log,) = eval(
        compression_task(TaskArguments(compressor=arm)),
        model=EMBEDDED_MODEL,
        model_roles={"grader": EMBEDDED_MODEL},
        epochs=1,
        log_dir=folder,
        display="none",
    )
    return log


def row(arm: str, log: EvalLog) -> str:
    """Return an arm's figures, and how its states ended."""
    if log.results is None:
        return f"{arm:26} {log.status}"
    values = {
        score.name: score.metrics[MEAN].value
        for score in log.results.scores
        if MEAN in score.metrics
    }
    states: dict[str, str] = {}
    for sample in log.samples or []:
        if record := sample.store_as(ProbeRecord).sample:
            failure = record.state.failure.splitlines()[0][:70] if record.state.failure else ""
            states[record.state.state_id] = f"{record.state.status} {failure}".strip()
    ended = ", ".join(f"{number} {status}" for status, number in Counter(states.values()).items())
    return f"{arm:26}" + "".join(f"{values[name]:17.2f}" for name in _COLUMNS) + f"  {ended}"


def main() -> None:
    """Print one line per arm."""
    print(f"{'arm':26}" + "".join(f"{name:>17}" for name in _COLUMNS) + "  states")
    arms = sys.argv[1:] or [*COMPRESSORS, "anchored+artifacts", "regenerative+artifacts"]
    with tempfile.TemporaryDirectory() as folder:
        for arm in arms:
            try:
                print(row(arm, run(arm, folder)), flush=True)
            except DataError as error:
                print(f"{arm:26} cannot run: {str(error).splitlines()[0][:110]}", flush=True)


if __name__ == "__main__":
    main()
