"""What came out of a sweep: a table of its arms, what failed, and the commands that go on."""

import math
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from inspect_ai.log import EvalLog, EvalSampleSummary, read_eval_log_sample_summaries

from compression_eval.analysis.arms import arm_names
from compression_eval.analysis.columns import number
from compression_eval.analysis.logs import Log
from compression_eval.analysis.tables import Table, table_lines
from compression_eval.grading.failures import RunFailures, run_failures
from compression_eval.grading.metrics import MEAN, STDERR
from compression_eval.grading.rubric import KNOWLEDGE
from compression_eval.run_hooks import too_many_failed
from compression_eval.sweeping.arms import task_key
from compression_eval.sweeping.planning import SweepPlan

MAX_COMPARISONS = 6
"""Commands that are printed; the table has the names for others."""

MAX_WIDTH = 80
"""Columns from which a command is put on two lines."""


@dataclass(frozen=True)
class ArmResult:
    """What came out of one arm with one model."""

    name: str
    """As in the tables of `compare` and `report`."""
    path: str
    log: EvalLog
    control: bool
    found: RunFailures | None
    """What failed; None where the log does not say."""
    error: str
    """Why the arm is of no use; empty if it is."""
    tokens_left: float
    """Mean size of a state; every conversation counts the same."""

    def score(self, name: str, metric: str = MEAN) -> float:
        """Return a metric of a score; NaN if there is none."""
        scores = self.log.results.scores if self.log.results else []
        values = [
            score.metrics[metric].value
            for score in scores
            if score.name == name and metric in score.metrics
        ]
        return values[0] if values else math.nan


def arm_results(plan: SweepPlan, logs: Sequence[EvalLog]) -> list[ArmResult]:
    """Return the result of each arm and model that has a log, in the order of the plan."""
    arms = plan.by_task()
    order = {key: place for place, key in enumerate(arms)}
    ours = sorted(
        (log for log in logs if task_key(log.eval) in order),
        key=lambda log: order[task_key(log.eval)],
    )
    paths = [_shown(log.location) for log in ours]
    names = arm_names([Log(path, log) for path, log in zip(paths, ours, strict=True)])
    results = []
    for name, path, log in zip(names, paths, ours, strict=True):
        summaries = read_eval_log_sample_summaries(log.location)
        found = run_failures(summaries)
        error = too_many_failed(found, plan.settings.max_failed) if found else ""
        control = arms[task_key(log.eval)].control
        results.append(ArmResult(name, path, log, control, found, error, _tokens_left(summaries)))
    return results


def _tokens_left(summaries: Sequence[EvalSampleSummary]) -> float:
    """Return the mean size of a state as `report` has it; NaN if there is none."""
    sizes: dict[str, list[float]] = defaultdict(list)
    for each in summaries:
        size = number((each.scores or {}).get("compression"), "tokens_retained")
        if size is not None:
            sizes[str(each.metadata.get("fixture"))].append(size)
    return fmean(map(fmean, sizes.values())) if sizes else math.nan


def results_table(results: Sequence[ArmResult]) -> Iterator[str]:
    """Yield the lines of a table that fits a terminal of 80 columns."""
    heads = ("arm", "knowledge", "±", "facts kept", "answered", "tokens", "no grade")
    rows = []
    for result in results:
        found = result.found
        missing = found.samples - found.graded if found else 0
        rows.append(
            (
                result.name,
                _number(result.score(KNOWLEDGE), ".2f"),
                _number(result.score(KNOWLEDGE, STDERR), ".2f"),
                _number(result.score("fact_survival"), ".0%"),
                _number(result.score("fact_recall"), ".0%"),
                _number(result.tokens_left, ",.0f"),
                f"{missing} of {found.samples}" if found and missing else "-",
            )
        )
    yield from table_lines(Table(heads, rows))
    yield "knowledge: 0 to 5, ± standard error; facts kept: in the state; answered: from it"


def compare_commands(results: Sequence[ArmResult], folder: Path) -> Iterator[str]:
    """Yield commands that compare the first arm with the others; the only one, with its control.

    Arms are compared under one model each, and those of which nothing came are left out.
    """
    pairs: list[tuple[ArmResult, ArmResult]] = []
    usable = [result for result in results if not result.error]
    for model in dict.fromkeys(result.log.eval.model for result in usable):
        of_model = [result for result in usable if result.log.eval.model == model]
        arms = [result for result in of_model if not result.control]
        others = arms[1:]
        if len(arms) == 1:
            others, arms = arms, [result for result in of_model if result.control][-1:]
        pairs.extend((arms[0], other) for other in others if arms)
    place = shlex.quote(str(folder))
    for base, new in pairs[:MAX_COMPARISONS]:
        first = f"compression-eval compare {place} --base-arm {shlex.quote(base.name)}"
        second = f"--to {place} --new-arm {shlex.quote(new.name)}"
        broken = len(first) + len(second) + 3 > MAX_WIDTH
        yield f"{first} \\\n      {second}" if broken else f"{first} {second}"
    if len(pairs) > MAX_COMPARISONS:
        yield f"# and {len(pairs) - MAX_COMPARISONS} more: the table has the names"


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)


def _shown(location: str) -> str:
    path = Path(location.removeprefix("file://"))
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
