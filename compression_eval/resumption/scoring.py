"""The scorer: how far the work got, at what cost, and what was forgotten on the way.

It reads only what the log holds. Work that was stopped is unscored with its reason.
"""

from collections.abc import Sequence

from inspect_ai.scorer import Metric, Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from compression_eval.grading.metrics import over_conversations
from compression_eval.record import nothing_recorded, read_sample
from compression_eval.resumption.again import (
    commands_run_again,
    files_read_again,
    questions_asked,
)
from compression_eval.resumption.record import CheckResult, ResumptionRecord
from compression_eval.text.markdown import escaped

FINISHING_KEYS = (
    "solved",
    "finished",
    "constraints_broken",
    "tokens_used",
    "turns",
    "files_read_again",
    "commands_run_again",
    "questions",
)
"""Keys of the score of `finishing`, on every sample whose agent ended by itself."""


def finishing_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of `finishing`: means over conversations with their errors."""
    return {key: [over_conversations()] for key in FINISHING_KEYS}


@scorer(metrics=finishing_metrics())
def finishing() -> Scorer:
    """Report how the work went on; calls no model.

    ``solved`` is 1 if every check passes and no constraint is broken, ``finished`` the share of
    the checks that pass (0 to 1), ``constraints_broken`` a count. ``tokens_used`` are those of all
    calls from the state on, ``turns`` the agent's replies. ``files_read_again``,
    ``commands_run_again`` and ``questions`` are counts by the rules in `again`.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        sample = read_sample(state)
        if sample is None:
            return nothing_recorded()
        record = state.store_as(ResumptionRecord)
        if failure := sample.compression_failure:
            return Score.unscored(reason=failure, explanation=sample.state.failure)
        if record.stopped or not record.checked:
            reason = record.stopped or "limit: the agent did not end by itself"
            return Score.unscored(reason=f"not_finished: {reason}")
        own = state.messages[record.first :]
        checks = [result for result in record.checked if result.kind == "check"]
        broken = [result for result in record.checked if result.kind != "check" and result.failure]
        passed = sum(not result.failure for result in checks)
        files = files_read_again(own, record.history, record.folder)
        commands = commands_run_again(own, record.history, record.folder)
        return Score(
            value={
                "solved": int(passed == len(checks) and not broken),
                "finished": round(passed / len(checks), 4),
                "constraints_broken": len(broken),
                "tokens_used": record.tokens,
                "turns": sum(message.role == "assistant" for message in own),
                "files_read_again": len(files),
                "commands_run_again": len(commands),
                "questions": questions_asked(own),
            },
            explanation=_explanation(record.checked, files, commands),
            metadata={"files_read_again": files, "commands_run_again": commands},
        )

    return score


def _explanation(
    checked: Sequence[CheckResult], files: Sequence[str], commands: Sequence[str]
) -> str:
    known = {True: "yes", False: "no", None: ""}
    rows = [
        f"| {result.kind} | {escaped(result.what)} | {escaped(result.failure) or 'passed'} "
        f"| {known[result.in_state]} |"
        for result in checked
    ]
    lines = ["| kind | what | outcome | in the state |", "|---|---|---|---|", *rows]
    for title, items in (("Read again", files), ("Run again", commands)):
        if items:
            lines += ["", f"**{title}**", "", *(f"- {escaped(item)}" for item in items)]
    return "\n".join(lines)
