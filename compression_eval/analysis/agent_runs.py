"""Runs of any agent, compared: what its compaction cost and what it solved all the same.

The logs may be of any Inspect task whose agent ran with different ``compaction=`` strategies,
Inspect's or ours. Read of each sample: its scores, the tokens of all calls but the graders', its
turns, what each compaction removed (Inspect's compaction events), the calls that repeat one made
before a compaction, and what was fetched again in the ten calls after it. An arm's samples are the
rows of a frame, as of our own logs, so that arms, means, differences and the decision are those of
every other comparison: a cluster of samples is in the place of a conversation, a sample in that of
a probe, an epoch in that of a compression.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

from inspect_ai.event import CompactionEvent, ModelEvent, ToolEvent
from inspect_ai.log import (
    EvalLog,
    EvalSample,
    read_eval_log_samples,
    resolve_sample_attachments,
)
from inspect_ai.scorer import value_to_float

from compression_eval.analysis.comparison import measures
from compression_eval.analysis.comparison.compare import Comparison, Outcome
from compression_eval.analysis.comparison.measures import (
    shown_change,
    shown_interval,
    shown_value,
)
from compression_eval.analysis.comparison.sides import Arm, one_name, refuse_same_runs
from compression_eval.analysis.logs import Log, reading
from compression_eval.analysis.statistics.intervals import (
    LEVEL,
    ArmValues,
    Difference,
    Limits,
    arm_mean,
)
from compression_eval.analysis.statistics.significance import Failing
from compression_eval.errors import DataError, shorten
from compression_eval.fixtures.writing import versioned_json
from compression_eval.postmortem.sessions import sample_rows
from compression_eval.postmortem.windows import Window
from compression_eval.text.tables import Cell, Section, Table

if TYPE_CHECKING:
    from pandas import DataFrame

DEFAULT_MARGIN = 0.1
"""Largest loss of the score that is let pass; scores of agents are mostly shares."""

MEASURES = {
    "tokens": "tokens",
    "turns": "turns",
    "calls": "tool calls",
    "compactions": "compactions",
    "removed": "tokens removed",
    "repeated": "calls repeated",
    "fetched_again": "fetched again",
    "shown_again": "shown again",
}
"""What is read of each sample besides its scores, and its name."""

MEANINGS = (
    "tokens: of all calls but the graders'; turns: of the assistant; removed: by compactions, as "
    "Inspect's events say; repeated: a call of a tool with the same arguments as one made before "
    "a compaction",
    "fetched again: tokens of results in the ten calls after a compaction that the agent had been "
    "shown or had written before, the mean of those that ten calls follow and that did more than "
    "clear results; shown again: of them file text that it has not changed since",
    "tokens per solved sample: all tokens, unsolved samples' included, over the samples with a "
    "score of 1",
)

_METHOD = (
    *MEANINGS,
    "means are over clusters (metadata `cluster`, else the sample), every one counting the same; "
    "change = new - base over the samples that both scored; intervals are of 95 %",
    "on these samples: the unit is the run of a sample; for new samples: the cluster, Student's t, "
    "and for tokens per solved sample a bootstrap; the score decides by the first where samples "
    "ran more than once",
    "failures decide too: more of them than chance gives is a regression (Fisher's exact test)",
)

SCORE = "score "
"""Beginning of a score's name among the measures: a scorer may be called like one of `MEASURES`."""

NO_SCORE = "no score"

_WORDS = {"c", "i", "p", "n", "yes", "no", "true", "false"}
"""Texts of scores that stand for a number, as Inspect takes them."""

NOT_COMPACTED = "no compaction"
"""Name of an arm in which nothing was, next to one in which something was."""

_RESAMPLES = 4_000

MIN_CLUSTERS = 10
"""Fewer clusters give no interval of the tokens per solved sample: of five, a bootstrap's 95 %
interval contains the true difference in 83 % of runs."""


@dataclass(frozen=True)
class AgentArm(Arm):
    """The runs with one strategy and the same settings.

    `samples` has a row per sample and epoch: `unit` (its id), `log_path` (its run), `state` (its
    epoch), `fixture` (its cluster), the limit that ended it, why it has no score that decides
    (`failure`), its scores, and `MEASURES`.
    """

    scores: Sequence[str] = ()
    """Names of all, the one that decides first: the first key of the task's first scorer."""

    @property
    def score(self) -> str:
        """The score that decides."""
        return self.scores[0]

    @property
    def exact(self) -> frozenset[str]:
        """None of them: an agent may always do otherwise."""
        return frozenset()

    def values(self, measure: str, *, failed_as_zero: bool = False) -> ArmValues:
        """Return the values of a score or a measure; a sample that failed has none."""
        scored = self.samples["failure"] == ""
        counted = self.samples[measure].where(scored, 0.0 if failed_as_zero else math.nan)
        return measures.values(self.samples.assign(**{measure: counted}), measure)

    @property
    def failed(self) -> int:
        """Samples without the score that decides."""
        return int((self.samples["failure"] != "").sum())

    @property
    def solved(self) -> "DataFrame":
        """Tokens of all samples and how many were solved (score 1), by cluster."""
        rows = self.samples
        solved = (rows["failure"] == "") & (rows[self.score] == 1)
        return rows.assign(solved=solved).groupby("fixture")[["tokens", "solved"]].sum()

    @property
    def per_solved(self) -> float | None:
        """Tokens of all samples, solved or not, over those that were solved; None without one."""
        tokens, solved = self.solved.sum()
        return float(tokens / solved) if solved else None


@dataclass(frozen=True)
class AgentComparison(Comparison):
    """Two arms of an agent, on the samples that both ran; the first score decides."""

    base: AgentArm
    new: AgentArm
    notes: Sequence[str] = ()

    @cached_property
    def margin(self) -> float:
        """The loss of the score that is too much."""
        return self.given_margin or DEFAULT_MARGIN

    @cached_property
    def failing(self) -> Failing | None:
        """How far failures may decide; None if nothing failed.

        The chance of so many more failures is that of Fisher's exact test over runs of samples.
        """
        from scipy.stats import hypergeom

        before, after = self.base.failed, self.new.failed
        if not before and not after:
            return None
        sizes = len(self.base.samples), len(self.new.samples)
        chance = hypergeom.sf(after - 1, sum(sizes), before + after, sizes[1])
        return Failing(float(chance), self.cost if after * sizes[0] > before * sizes[1] else 0.0)

    @cached_property
    def facts_kept(self) -> None:
        """Nothing, for there are no facts."""
        return None

    @cached_property
    def differences(self) -> dict[str, Difference]:
        """The difference in each measure, the deciding score first."""
        return {
            name: seen for name in [*self.base.scores, *MEASURES] if (seen := self.difference(name))
        }

    @cached_property
    def outcome(self) -> tuple[Outcome, str]:
        """The outcome of the comparison, and why."""
        decision, seen = self.decision, self.knowledge
        outcome: Outcome = "cannot tell" if decision.verdict == "cannot tell" else "no regression"
        said = ", ".join(filter(None, decision.words))
        if decision.verdict == "fails more" or decision.blocked:
            said = "fails more often on the new side"
        interval = shown_interval(seen.here or seen.elsewhere, seen.estimate, self.decides)
        return "regression" if decision.regression else outcome, (
            f"{self.decides}: {said} ({shown_change(seen.estimate, self.decides)}, {interval}; "
            f"margin {self.margin:g}, {seen.probes} samples)"
        )

    @cached_property
    def limits_per_solved(self) -> Limits | None:
        """The limits of the difference in tokens per solved sample, by a bootstrap.

        None where there are few clusters, or where a resample may solve nothing.
        """
        import numpy as np
        from pandas import concat

        totals = concat([self.base.solved, self.new.solved], axis=1, join="inner").to_numpy(float)
        if len(totals) < MIN_CLUSTERS:
            return None
        drawn = np.random.default_rng(0).integers(0, len(totals), (_RESAMPLES, len(totals)))
        spent, solved, spent_new, solved_new = totals[drawn].sum(axis=1).T
        if not solved.all() or not solved_new.all():
            return None
        differences = spent_new / solved_new - spent / solved
        low, high = np.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return float(low), float(high)


def agent_arms(logs: Sequence[Log]) -> list[AgentArm]:
    """Return the arms of logs, those of one setting together, in the order of the logs.

    Raises:
        DataError: A log cannot be read, contains no sample, or the logs are of several tasks.
    """
    from pandas import DataFrame

    # A task may give its arms names of their own; its registered name stays.
    specs = [log.header.eval for log in logs]
    tasks = sorted({spec.task_registry_name or spec.task for spec in specs})
    if len(tasks) > 1:
        raise DataError(f"logs of {len(tasks)} tasks ({', '.join(tasks)}): name those of one")
    groups: dict[str, list[Log]] = defaultdict(list)
    for log in logs:
        groups[json.dumps(_settings(log.header), sort_keys=True)].append(log)
    read = {
        key: [each for log in members for each in _read(log)] for key, members in groups.items()
    }
    applied = {
        key: "+".join(sorted({name for row in found for name in row["strategies"]}))
        or NOT_COMPACTED
        for key, found in read.items()
    }
    compacted = set(applied.values()) != {NOT_COMPACTED}
    names = [name for found in read.values() for row in found for name in row["scores"]]
    first = [each.name for log in logs for each in (log.header.eval.scorers or [])[:1]]
    # The same score decides for every arm.
    of_first = [name for name in names if _plain(name).partition("/")[0] in first[:1]]
    if not names:
        raise DataError(f"{logs[0].path}: no sample of these runs has a score that is a number")
    scores = list(dict.fromkeys([*of_first[:1], *names]))
    arms = []
    for key, members in groups.items():
        if not read[key]:
            raise DataError(f"{members[0].path}: no sample in this log")
        own = json.loads(key)
        alike = [json.loads(each) for each, name in applied.items() if name == applied[key]]
        told = ", ".join(
            f"{name}={shorten(value)}"
            for name, value in own.items()
            if any(other.get(name) != value for other in alike)
        )
        if compacted:
            told = f"{applied[key]} ({told})" if told else applied[key]
        rows = [
            dict.fromkeys(scores, math.nan) | row["scores"] | row["sample"] for row in read[key]
        ]
        samples = DataFrame(rows)
        unscored = (samples["failure"] == "") & samples[scores[0]].isna()
        samples.loc[unscored, "failure"] = NO_SCORE
        arms.append(AgentArm("", told or "as it is", members, samples, scores))
    return arms


def _one_arm(
    arms: Sequence[AgentArm], logs: Sequence[Log], wanted: str | None, label: str
) -> AgentArm:
    """Return the arm that is meant by one side, with the samples of that side's logs alone."""
    runs = {log.header.eval.eval_id for log in logs}
    here = [arm for arm in arms if any(log.header.eval.eval_id in runs for log in arm.logs)]
    name = one_name([arm.name for arm in here], wanted, label)
    arm = next(arm for arm in here if arm.name == name)
    own = [log for log in arm.logs if log.header.eval.eval_id in runs]
    samples = arm.samples[arm.samples["log_path"].isin(runs)]
    return replace(arm, label=label, logs=own, samples=samples)


def compare_agents(
    logs: Sequence[Sequence[Log]],
    names: Sequence[str | None] = (None, None),
    margin: float | None = None,
) -> AgentComparison:
    """Compare two arms on the samples that both ran.

    Args:
        logs: Those of base and new.
        names: Of the arms that are meant, or parts of them; None where the logs contain one arm.
        margin: In the unit of the score; `DEFAULT_MARGIN` if None.

    Raises:
        DataError: The arms cannot be told, or share no scored sample.
    """
    every = agent_arms(list({log.path: log for side in logs for log in side}.values()))
    sides = [
        _one_arm(every, own, wanted, label)
        for label, own, wanted in zip(("base", "new"), logs, names, strict=True)
    ]
    refuse_same_runs(*(arm.logs for arm in sides))
    notes = _notes(sides)
    shared = set(sides[0].samples["unit"]) & set(sides[1].samples["unit"])
    both = [arm.samples["unit"].isin(shared) for arm in sides]
    for arm, ran in zip(sides, both, strict=True):
        if alone := int((~ran).sum()):
            notes.append(f"{arm.name}: {alone} samples that the other side did not run")
    base, new = (
        replace(arm, samples=arm.samples[ran]) for arm, ran in zip(sides, both, strict=True)
    )
    comparison = AgentComparison(base, new, margin, base.score, notes=notes)
    if base.score not in comparison.differences:
        raise DataError(
            f"no sample has the {base.score} on both sides; "
            "are these logs of the same task and dataset?"
        )
    return comparison


# ----- in words and figures


def comparison_page(of: AgentComparison) -> list[Section]:
    """Return a comparison as sections for a terminal or as Markdown."""
    rows = [
        [
            MEASURES.get(name, name),
            *(shown_value(mean, name) for mean in (each.base, each.new)),
            shown_change(each.estimate, name),
            *(shown_interval(part, each.estimate, name) for part in (each.here, each.elsewhere)),
        ]
        for name, each in of.differences.items()
    ]
    before, after = of.base.per_solved, of.new.per_solved
    change = "-" if before is None or after is None else shown_change(after - before, "tokens")
    limits = " to ".join(shown_change(each, "tokens") for each in of.limits_per_solved or ()) or "-"
    ratios = [shown_value(each, "tokens") for each in (before, after)]
    rows.append(["tokens per solved sample", *ratios, change, "", limits])
    verdict = [": ".join(of.outcome), f"base: {of.base.name}", f"new: {of.new.name}"]
    heads = ["mean", "base", "new", "change", "on these samples", "for new samples"]
    return [
        Section("Decision", [verdict]),
        Section("Measures", [Table(heads, rows)]),
        *([Section("Notes", [list(of.notes)])] if of.notes else []),
        Section("Method", [_METHOD]),
    ]


def comparison_json(of: AgentComparison) -> str:
    """Return a comparison as JSON."""
    return versioned_json(
        {
            "outcome": of.outcome[0],
            "decision": asdict(of.decision),
            "margin": of.margin,
            "score": _plain(of.decides),
            "base": of.base.name,
            "new": of.new.name,
            "measures": {
                _key(name): {
                    "base": each.base,
                    "new": each.new,
                    "change": each.estimate,
                    "samples": each.probes,
                    "on_these_samples": each.here and each.here.interval(each.estimate),
                    "for_new_samples": each.elsewhere and each.elsewhere.interval(each.estimate),
                }
                for name, each in of.differences.items()
            },
            "tokens_per_solved": {
                "base": of.base.per_solved,
                "new": of.new.per_solved,
                "interval": of.limits_per_solved,
            },
            "notes": list(of.notes),
        }
    )


def arms_page(arms: Sequence[AgentArm], *, inline: bool = False) -> list[Section]:
    """Return all arms side by side: means with their intervals, and what they cost.

    Args:
        arms: The arms.
        inline: Whether an interval is in its mean's line and not below it.
    """
    rows: list[list[str | Cell]] = []
    for arm in arms:
        row: list[str | Cell] = [arm.name, str(len(arm.samples))]
        for name in [arm.score, *MEASURES]:
            mean = arm_mean(arm.values(name))
            limits = (mean.here or mean.elsewhere) if mean else None
            told = shown_value(mean.mean if mean else None, name)
            below = " to ".join(shown_value(each, name) for each in limits or ())
            if limits and inline:
                told = f"{told} ({below})"
            row.append(Cell(told, below=below))
        row.append(shown_value(arm.per_solved, "tokens"))
        rows.append(row)
    heads = ["arm", "samples", arms[0].score, *MEASURES.values()]
    return [
        Section("Arms", [Table([*heads, "tokens per solved sample"], rows)]),
        Section("Notes", [[*_notes(arms), *MEANINGS]]),
    ]


def arms_json(arms: Sequence[AgentArm]) -> str:
    """Return the figures of all arms, and the samples that they are made of, as JSON."""
    return versioned_json(
        {
            "arms": [
                {
                    "name": arm.name,
                    "logs": [log.name for log in arm.logs],
                    "score": _plain(arm.score),
                    "means": {
                        _key(name): asdict(mean)
                        for name in [arm.score, *MEASURES]
                        if (mean := arm_mean(arm.values(name)))
                    },
                    "tokens_per_solved": arm.per_solved,
                    "samples": [
                        {
                            "id": row["unit"],
                            "run": row["log_path"],
                            "epoch": row["state"],
                            "cluster": row["fixture"],
                            "scores": {
                                _plain(name): row[name]
                                for name in arm.scores
                                if not math.isnan(row[name])
                            },
                            "measures": {
                                name: None if math.isnan(row[name]) else row[name]
                                for name in MEASURES
                            },
                            "limit": row["limit"],
                            "failure": row["failure"],
                        }
                        for row in arm.samples.to_dict("records")
                    ],
                }
                for arm in arms
            ]
        }
    )


def _notes(arms: Sequence[AgentArm]) -> list[str]:
    """Say in which arms nothing was compacted, how many samples failed, and how many were ended."""
    whole = [arm.name for arm in arms if not arm.samples["compactions"].any()]
    notes = [f"{name}: nothing was compacted; the agent had its whole context" for name in whole]
    notes = notes if len(whole) < len(arms) else []
    for arm in arms:
        failures, limits = arm.samples["failure"], arm.samples["limit"]
        failed = Counter(" ".join(each.split())[:120] for each in failures if each)
        reasons = [(f"have no score: {why}", number) for why, number in failed.most_common(5)]
        ended = Counter(f"ended by the limit of {limit}" for limit in limits if limit)
        notes += [
            f"{arm.name}: {number} of {len(arm.samples)} samples {what}"
            for what, number in [*reasons, *ended.items()]
        ]
    return notes


# ----- reading


def _settings(header: EvalLog) -> dict[str, str]:
    """Return what may tell arms apart: the model, and the arguments of task and agent."""
    spec = header.eval
    settings: dict[str, Any] = {"model": spec.model}
    for given in (spec.task_args, spec.solver_args or {}, *(s.params for s in header.plan.steps)):
        for name, value in given.items():
            # A strategy is an argument with arguments of its own, and an agent's may be named as
            # the run's are: `react` logs `model: None` where it has the run's model.
            if name == "compaction" and isinstance(value, dict):
                settings |= {f"compaction {key}": each for key, each in value.items()}
            elif value is not None:
                settings[f"agent's {name}" if name == "model" else name] = value
    for role, models in (spec.model_roles or {}).items():
        bound = models if isinstance(models, list) else [models]
        settings[f"role {role}"] = [each.model for each in bound]
    settings |= {f"-M {name}": value for name, value in spec.model_args.items()}
    settings |= spec.model_generate_config.model_dump(exclude_none=True)
    return {
        key: value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
        for key, value in settings.items()
        if value is not None and value != ""
    }


def _read(log: Log) -> Iterator[dict[str, Any]]:
    """Yield each sample's row, its scores, and the names of the strategies that compacted it."""
    with reading(log.path):
        for sample in read_eval_log_samples(log.path, all_samples_required=False):
            compactions = [e for e in sample.events if isinstance(e, CompactionEvent)]
            graders = [use for role, use in sample.role_usage.items() if role == "grader"]
            tokens = sum(use.total_tokens for use in sample.model_usage.values())
            calls, repeated = _calls(sample)
            windows = _windows(sample) if compactions else []
            scores = dict(_scores(sample))
            row = {
                "fixture": str(sample.metadata.get("cluster", sample.id)),
                "unit": str(sample.id),
                "probe_id": "",
                "log_path": log.header.eval.eval_id,
                "state": sample.epoch,
                "tokens": tokens - sum(use.total_tokens for use in graders),
                "turns": _turns(sample),
                "calls": calls,
                "compactions": len(compactions),
                "removed": sum(
                    each.tokens_before - each.tokens_after
                    for each in compactions
                    if each.tokens_before is not None and each.tokens_after is not None
                ),
                "repeated": repeated,
                "fetched_again": fmean(each.held for each in windows) if windows else math.nan,
                "shown_again": fmean(w.shown_again for w in windows) if windows else math.nan,
                "limit": sample.limit.type if sample.limit else "",
                "failure": sample.error.message if sample.error else "" if scores else NO_SCORE,
            }
            applied = {str((e.metadata or {}).get("strategy") or e.type) for e in compactions}
            yield {"sample": row, "scores": scores, "strategies": applied}


def _turns(sample: EvalSample) -> int:
    """Count the assistant's messages that this run made, not those that it began with."""
    made = {
        event.output.message.id
        for event in sample.events
        if isinstance(event, ModelEvent) and not event.output.empty
    }
    return sum(each.role == "assistant" and each.id in made for each in sample.messages)


def _calls(sample: EvalSample) -> tuple[int, int]:
    """Count the calls of tools, and those that repeat one made before the last compaction."""
    forgotten: set[str] = set()
    since: set[str] = set()
    calls = repeated = 0
    for event in sample.events:
        if isinstance(event, CompactionEvent):
            forgotten |= since
            since = set()
        elif isinstance(event, ToolEvent):
            call = f"{event.function} {json.dumps(event.arguments, sort_keys=True, default=str)}"
            calls += 1
            repeated += call in forgotten
            since.add(call)
    return calls, repeated


def _windows(sample: EvalSample) -> list[Window]:
    """Return the windows after the compactions of a sample, where enough calls follow."""
    rows = sample_rows(resolve_sample_attachments(sample, "core"))
    told = [each.compaction.window for row in rows for each in row.compactions]
    return [window for window in told if window]


def _scores(sample: EvalSample) -> Iterator[tuple[str, float]]:
    for scorer, score in (sample.scores or {}).items():
        values = score.value if isinstance(score.value, dict) else {"": score.value}
        for key, value in values.items():
            name, number = f"{SCORE}{scorer}/{key}".rstrip("/"), _score(value)
            if math.isinf(number):
                raise DataError(f"{sample.id}, epoch {sample.epoch}: {name}: a score is infinite")
            if not math.isnan(number):
                yield name, number


def _plain(name: str) -> str:
    return name.removeprefix(SCORE)


def _key(name: str) -> str:
    """Return a measure's key in JSON: that of a score is its plain name if it is free."""
    return name if _plain(name) in MEASURES else _plain(name)


def _score(value: object) -> float:
    """Return a score's value as a number; NaN, which is Inspect's for unscored, if it is none."""
    if isinstance(value, str) and value.lower() not in _WORDS:
        # Inspect makes 0 of any other text, which would be a score that nobody gave.
        try:
            return float(value)
        except ValueError:
            return math.nan
    return value_to_float()(value) if isinstance(value, int | float | str) else math.nan
