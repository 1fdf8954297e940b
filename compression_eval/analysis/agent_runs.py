"""Runs of any agent, compared: what its compaction cost and what it solved all the same.

The logs may be of any Inspect task whose agent ran with different ``compaction=`` strategies,
Inspect's or ours. Read of each sample: its scores, the tokens of all calls but the graders', its
turns, what each compaction removed (Inspect's compaction events), and the calls that repeat one
made before a compaction. The statistics are those of every other comparison; a task's sample
stands where a conversation and its probe stand there, an epoch where a compression stands.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from inspect_ai.event import CompactionEvent, ModelEvent, ToolEvent
from inspect_ai.log import EvalLog, EvalSample, read_eval_log_samples
from inspect_ai.scorer import value_to_float

from compression_eval.analysis.logs import (
    Log,
    header_of,
    is_folder,
    is_ours,
    names_in,
    one_per_run,
    reading,
)
from compression_eval.analysis.statistics.intervals import (
    LEVEL,
    ArmValues,
    Difference,
    Limits,
    Observation,
    arm_mean,
    paired_difference,
)
from compression_eval.analysis.statistics.significance import Decision, Failing, decide
from compression_eval.errors import DataError, shorten
from compression_eval.fixtures.finding_files import local_path
from compression_eval.fixtures.writing import versioned_json
from compression_eval.text.tables import Cell, Section, Table

DEFAULT_MARGIN = 0.1
"""Largest loss of the score that is let pass; scores of agents are mostly shares."""

MEASURES = {
    "tokens": "tokens",
    "turns": "turns",
    "calls": "tool calls",
    "compactions": "compactions",
    "removed": "tokens removed",
    "repeated": "calls repeated",
}
"""What is read of each sample beside its scores, and its name."""

MEANINGS = (
    "tokens: of all calls but the graders'; turns: of the assistant; removed: by compactions, as "
    "Inspect's events say; repeated: a call of a tool with the same arguments as one made before "
    "a compaction",
    "tokens per solved sample: all tokens, unsolved samples' included, over the samples with a "
    "score of 1",
)

_OUTCOMES = {
    "better": "no regression",
    "not worse": "no regression",
    "worse, by less than the margin": "no regression",
    "cannot tell": "cannot tell",
}
EXIT_CODES = {"no regression": 0, "regression": 1, "cannot tell": 3}

NO_SCORE = "no score"

_WORDS = {"c", "i", "p", "n", "yes", "no", "true", "false"}
"""Texts of scores that stand for a number, as Inspect takes them."""

NOT_COMPACTED = "no compaction"
"""Name of an arm in which nothing was, beside one in which something was."""

_MAX_NAMED = 8

_RESAMPLES = 4_000

MIN_CLUSTERS = 10
"""Fewer clusters give no interval of the tokens per solved sample: of five, a bootstrap's 95 %
interval holds the true difference in 83 % of runs."""


@dataclass(frozen=True)
class AgentSample:
    """One sample of an agent's run."""

    id: str
    run: str
    """The attempt that it is of: a run of several epochs, or one of several runs of an arm."""
    epoch: int
    cluster: str
    """What samples are alike in: the metadata ``cluster`` of the sample, else its id."""
    scores: Mapping[str, float]
    """By scorer, and key if it gives several."""
    measures: Mapping[str, float]
    """By the names of `MEASURES`."""
    limit: str
    """The limit that ended it, if one did."""
    failure: str
    """Why it has not the score that decides; empty if it has."""

    def value(self, measure: str) -> float | None:
        """Return a score or a measure by its name."""
        return self.scores.get(measure, self.measures.get(measure))


@dataclass(frozen=True)
class AgentArm:
    """The runs with one strategy and the same settings."""

    name: str
    logs: Sequence[Log]
    samples: Sequence[AgentSample]
    score: str
    """Name of the score that decides: the first key of the task's first scorer."""

    def values(self, measure: str, *, failed: float | None = None) -> ArmValues:
        """Return a measure's values.

        Args:
            measure: A score or one of `MEASURES`.
            failed: What a sample without the deciding score counts as; left out if None.
        """
        return ArmValues.of(
            Observation(each.cluster, each.id, "", f"{each.run} {each.epoch}", value)
            for each in self.samples
            if (value := failed if each.failure else each.value(measure)) is not None
        )

    def only(self, ids: Container[str]) -> "AgentArm":
        """Return the arm on some of its samples."""
        return replace(self, samples=[each for each in self.samples if each.id in ids])

    def per_solved(self) -> "PerSolved":
        """Return the tokens that one solved sample took."""
        return PerSolved(
            tokens=sum(each.measures["tokens"] for each in self.samples),
            solved=sum(
                not each.failure and each.scores.get(self.score) == 1 for each in self.samples
            ),
        )

    def totals_by_cluster(self) -> dict[str, tuple[float, float]]:
        """Return tokens and solved samples of each cluster."""
        totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for each in self.samples:
            totals[each.cluster][0] += each.measures["tokens"]
            totals[each.cluster][1] += not each.failure and each.scores.get(self.score) == 1
        return {name: (tokens, solved) for name, (tokens, solved) in totals.items()}


@dataclass(frozen=True)
class PerSolved:
    """Tokens of all samples, solved or not, over those that were solved (score 1)."""

    tokens: float
    solved: int

    @property
    def ratio(self) -> float | None:
        """None if nothing was solved."""
        return self.tokens / self.solved if self.solved else None


@dataclass(frozen=True)
class AgentComparison:
    """Two arms of an agent, on the samples that both ran."""

    base: AgentArm
    new: AgentArm
    margin: float
    decision: Decision
    lines: Mapping[str, Difference]
    """By measure, the deciding score first."""
    per_solved: tuple[PerSolved, PerSolved]
    per_solved_limits: Limits | None
    """Of the difference, by a bootstrap over clusters; None where it cannot be told."""
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def outcome(self) -> str:
        """What the exit code says."""
        return _OUTCOMES.get(self.decision.verdict, "regression")


def agent_logs(paths: Sequence[str]) -> list[Log]:
    """Return the logs of other tasks than ours that are named or lie in the folders.

    Returns:
        An empty list if one of them is a log of our task: then they are not compared this way.

    Raises:
        DataError: A log cannot be read, or is missing.
    """
    names = [name for path in paths for name in (names_in(path) if is_folder(path) else [path])]
    found: dict[str, Log] = {}
    for name in names:
        found[name] = header_of(name)
        if is_ours(found[name].header):
            return []
    return one_per_run([log for log in found.values() if log.header.status != "started"])


def agent_arms(logs: Sequence[Log]) -> list[AgentArm]:
    """Return the arms of logs, those of one setting together, in the order of the logs.

    Raises:
        DataError: A log cannot be read, holds no sample, or the logs are of several tasks.
    """
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
        key: "+".join(sorted({name for _, names in found for name in names})) or NOT_COMPACTED
        for key, found in read.items()
    }
    compacted = set(applied.values()) != {NOT_COMPACTED}
    score = _deciding(logs, [sample for found in read.values() for sample, _ in found])
    arms = []
    for key, members in groups.items():
        if not read[key]:
            raise DataError(f"{members[0].path}: no sample in this log")
        own = json.loads(key)
        alike = [json.loads(each) for each, name in applied.items() if name == applied[key]]
        differing = [
            f"{name}={shorten(value)}"
            for name, value in own.items()
            if any(other.get(name) != value for other in alike)
        ]
        told = ", ".join(differing)
        if compacted:
            told = f"{applied[key]} ({told})" if told else applied[key]
        samples = [
            sample
            if sample.failure or score in sample.scores
            else replace(sample, failure=NO_SCORE)
            for sample, _ in read[key]
        ]
        arms.append(AgentArm(told or "as it is", members, samples, score))
    return arms


def _deciding(logs: Sequence[Log], samples: Sequence[AgentSample]) -> str:
    """Return the name of the score that decides, the same one for every arm.

    Raises:
        DataError: No sample has a score.
    """
    first = [each.name for log in logs for each in (log.header.eval.scorers or [])[:1]]
    names = [name for sample in samples for name in sample.scores]
    of_first = [name for name in names if name.partition("/")[0] in first[:1]]
    if not names:
        raise DataError(f"{logs[0].path}: no sample of these runs has a score that is a number")
    return (of_first or names)[0]


def one_arm(
    arms: Sequence[AgentArm], logs: Sequence[Log], wanted: str | None, option: str
) -> AgentArm:
    """Return the arm of one side's logs, with the samples of these logs alone.

    Args:
        arms: Of all logs.
        logs: Those of one side.
        wanted: The arm's name or a part of it; None where the logs hold only one.
        option: What the user names it with, for the error.

    Raises:
        DataError: The logs hold several such arms, or none.
    """
    if not logs:
        raise DataError(f"{option}: there is no finished log on this side")
    runs = {log.header.eval.eval_id for log in logs}
    here = [arm for arm in arms if any(log.header.eval.eval_id in runs for log in arm.logs)]
    found = [arm for arm in here if wanted in (None, arm.name)]
    found = found or [arm for arm in here if str(wanted) in arm.name]
    if len(found) != 1:
        names = ", ".join(shorten(arm.name) for arm in here[:_MAX_NAMED])
        more = f" and {len(here) - _MAX_NAMED} more" if len(here) > _MAX_NAMED else ""
        raise DataError(f"{option}: give a part of one arm's name alone: {names}{more}")
    (arm,) = found
    own = [log for log in arm.logs if log.header.eval.eval_id in runs]
    return replace(arm, logs=own, samples=[each for each in arm.samples if each.run in runs])


def compare_agents(
    base: AgentArm, new: AgentArm, margin: float = DEFAULT_MARGIN
) -> AgentComparison:
    """Compare two arms on the samples that both ran.

    The first score decides, as `significance.decide` says; the other lines are for reading.

    Args:
        base: What is there.
        new: What is to take its place.
        margin: In the unit of the score.

    Raises:
        DataError: They share no scored sample.
    """
    both = {log.header.eval.eval_id for log in base.logs}
    for log in new.logs:
        if log.header.eval.eval_id in both:
            raise DataError(f"{local_path(log.path)}: the same run stands on both sides")
    shared = {each.id for each in base.samples} & {each.id for each in new.samples}
    notes = [*_uncompacted((base, new)), *(note for arm in (base, new) for note in _notes(arm))]
    for arm in (base, new):
        if alone := sum(each.id not in shared for each in arm.samples):
            notes.append(f"{arm.name}: {alone} samples that the other side did not run")
    base, new = base.only(shared), new.only(shared)
    names = list(dict.fromkeys([base.score, *(n for each in base.samples for n in each.scores)]))
    lines = {
        name: seen
        for name in [*names, *MEASURES]
        if (seen := paired_difference(base.values(name), new.values(name)))
    }
    if base.score not in lines:
        raise DataError(
            f"no sample has the score {base.score} on both sides; "
            "are these logs of the same task and dataset?"
        )
    return AgentComparison(
        base=base,
        new=new,
        margin=margin,
        decision=decide(lines[base.score], margin, _failing(base, new)),
        lines=lines,
        per_solved=(base.per_solved(), new.per_solved()),
        per_solved_limits=_ratio_limits(base, new),
        notes=notes,
    )


def _failing(base: AgentArm, new: AgentArm) -> Failing | None:
    """Return how far failures may decide, on the samples that both ran; None if nothing failed.

    The chance of so many more failures is that of Fisher's exact test over runs of samples.
    """
    from scipy.stats import hypergeom

    old, later = (sum(bool(each.failure) for each in arm.samples) for arm in (base, new))
    if not old and not later:
        return None
    rises = later * len(base.samples) > old * len(new.samples)
    counted = paired_difference(
        base.values(base.score, failed=0.0), new.values(base.score, failed=0.0)
    )
    number = len(base.samples) + len(new.samples)
    p_value = float(hypergeom.sf(later - 1, number, old + later, len(new.samples)))
    return Failing(p_value, counted.estimate if counted and rises else 0.0)


def comparison_page(of: AgentComparison) -> list[Section]:
    """Return a comparison as sections for a terminal or as Markdown."""
    seen = of.lines[of.base.score]
    spread = seen.here or seen.elsewhere
    decided = _limits(spread.interval(seen.estimate) if spread else None)
    rows = []
    for name, each in of.lines.items():
        limits = [
            _limits(part.interval(each.estimate) if part else None)
            for part in (each.here, each.elsewhere)
        ]
        label = MEASURES.get(name, f"score {name}")
        rows.append([label, _number(each.base), _number(each.new), _signed(each.estimate), *limits])
    before, after = (each.ratio for each in of.per_solved)
    change = _signed(after - before) if before is not None and after is not None else "-"
    solved = [_number(before), _number(after), change, "", _limits(of.per_solved_limits)]
    rows.append(["tokens per solved sample", *solved])
    said = ", ".join(filter(None, of.decision.words))
    if of.decision.verdict == "fails more" or of.decision.blocked:
        said = "fails more often on the new side"
    verdict = [
        f"{of.outcome}: score {of.base.score}: {said} "
        f"({_signed(seen.estimate)}, {decided}; margin {of.margin:g}, {seen.probes} samples)",
        f"base: {of.base.name}",
        f"new: {of.new.name}",
    ]
    heads = ["mean", "base", "new", "change", "on these samples", "for new samples"]
    return [
        Section("Decision", [verdict]),
        Section("Measures", [Table(heads, rows)]),
        *([Section("Notes", [list(of.notes)])] if of.notes else []),
        Section(
            "Method",
            [
                [
                    *MEANINGS,
                    "means are over clusters (metadata `cluster`, else the sample), every one "
                    "counting the same; change = new - base over the samples that both scored; "
                    "intervals are of 95 %",
                    "on these samples: the unit is the run of a sample; for new samples: the "
                    "cluster, Student's t, and for tokens per solved sample a bootstrap; the score "
                    "decides by the first where samples ran more than once",
                    "failures decide too: more of them than chance gives is a regression (Fisher's "
                    "exact test)",
                ]
            ],
        ),
    ]


def comparison_json(of: AgentComparison) -> str:
    """Return a comparison as JSON."""
    before, after = of.per_solved
    return versioned_json(
        {
            "outcome": of.outcome,
            "decision": asdict(of.decision),
            "margin": of.margin,
            "score": of.base.score,
            "base": of.base.name,
            "new": of.new.name,
            "measures": {
                name: {
                    "base": each.base,
                    "new": each.new,
                    "change": each.estimate,
                    "samples": each.probes,
                    "on_these_samples": each.here and each.here.interval(each.estimate),
                    "for_new_samples": each.elsewhere and each.elsewhere.interval(each.estimate),
                }
                for name, each in of.lines.items()
            },
            "tokens_per_solved": {
                "base": before.ratio,
                "new": after.ratio,
                "interval": of.per_solved_limits,
            },
            "notes": list(of.notes),
        }
    )


def arms_page(arms: Sequence[AgentArm], *, inline: bool = False) -> list[Section]:
    """Return all arms beside one another: means with their intervals, and what they cost.

    Args:
        arms: The arms.
        inline: Whether an interval stands in its mean's line and not below it.
    """
    measures = [arms[0].score, *MEASURES]
    rows: list[list[str | Cell]] = []
    for arm in arms:
        row: list[str | Cell] = [arm.name, str(len(arm.samples))]
        for name in measures:
            mean = arm_mean(arm.values(name))
            limits = (mean.here or mean.elsewhere) if mean else None
            told, below = _number(mean.mean if mean else None), _limits(limits, _number)
            if limits and inline:
                told = f"{told} ({below})"
            row.append(Cell(told, below=below if limits else ""))
        row.append(_number(arm.per_solved().ratio))
        rows.append(row)
    heads = ["arm", "samples", f"score {arms[0].score}", *MEASURES.values()]
    notes = [*_uncompacted(arms), *(note for arm in arms for note in _notes(arm))]
    return [
        Section("Arms", [Table([*heads, "tokens per solved sample"], rows)]),
        Section("Notes", [[*notes, *MEANINGS]]),
    ]


def arms_json(arms: Sequence[AgentArm]) -> str:
    """Return the figures of all arms, and the samples that they are made of, as JSON."""
    return versioned_json(
        {
            "arms": [
                {
                    "name": arm.name,
                    "logs": [log.name for log in arm.logs],
                    "score": arm.score,
                    "means": {
                        name: asdict(mean)
                        for name in [arm.score, *MEASURES]
                        if (mean := arm_mean(arm.values(name)))
                    },
                    "tokens_per_solved": arm.per_solved().ratio,
                    "samples": [asdict(sample) for sample in arm.samples],
                }
                for arm in arms
            ]
        }
    )


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
        key: text for key, value in settings.items() if value is not None and (text := _text(value))
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _read(log: Log) -> Iterator[tuple[AgentSample, set[str]]]:
    """Yield each sample, and the names of the strategies that compacted it."""
    with reading(log.path):
        for sample in read_eval_log_samples(log.path, all_samples_required=False):
            compactions = [e for e in sample.events if isinstance(e, CompactionEvent)]
            graders = [use for role, use in sample.role_usage.items() if role == "grader"]
            tokens = sum(use.total_tokens for use in sample.model_usage.values())
            calls, repeated = _calls(sample)
            scores = dict(_scores(sample))
            failure = sample.error.message if sample.error else "" if scores else NO_SCORE
            yield (
                AgentSample(
                    id=str(sample.id),
                    run=log.header.eval.eval_id,
                    epoch=sample.epoch,
                    cluster=str(sample.metadata.get("cluster", sample.id)),
                    scores=scores,
                    measures={
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
                    },
                    limit=sample.limit.type if sample.limit else "",
                    failure=failure,
                ),
                {str((e.metadata or {}).get("strategy") or e.type) for e in compactions},
            )


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


def _scores(sample: EvalSample) -> Iterator[tuple[str, float]]:
    for scorer, score in (sample.scores or {}).items():
        values = score.value if isinstance(score.value, dict) else {"": score.value}
        for key, value in values.items():
            name, number = f"{scorer}/{key}".rstrip("/"), _score(value)
            if math.isinf(number):
                raise DataError(f"{sample.id}, epoch {sample.epoch}: {name}: a score is infinite")
            if not math.isnan(number):
                yield name, number


def _score(value: object) -> float:
    """Return a score's value as a number; NaN, which is Inspect's for unscored, if it is none."""
    if isinstance(value, str) and value.lower() not in _WORDS:
        # Inspect makes 0 of any other text, which would be a score that nobody gave.
        try:
            return float(value)
        except ValueError:
            return math.nan
    return value_to_float()(value) if isinstance(value, int | float | str) else math.nan


def _uncompacted(arms: Sequence[AgentArm]) -> list[str]:
    """Name the arms in which nothing was compacted, where something was in others."""
    names = [
        arm.name for arm in arms if not any(each.measures["compactions"] for each in arm.samples)
    ]
    if len(names) == len(arms):
        return []
    return [f"{name}: nothing was compacted; the agent had its whole context" for name in names]


def _notes(arm: AgentArm) -> Iterator[str]:
    failed = Counter(" ".join(each.failure.split())[:120] for each in arm.samples if each.failure)
    limits = Counter(each.limit for each in arm.samples if each.limit)
    for reason, number in failed.most_common(5):
        yield f"{arm.name}: {number} of {len(arm.samples)} samples have no score: {reason}"
    for limit, number in limits.items():
        yield f"{arm.name}: {number} of {len(arm.samples)} samples ended by the limit of {limit}"


def _ratio_limits(base: AgentArm, new: AgentArm) -> Limits | None:
    """Return the limits of the difference in tokens per solved sample."""
    import numpy as np

    old, later = base.totals_by_cluster(), new.totals_by_cluster()
    shared = sorted(old.keys() & later.keys())
    if len(shared) < MIN_CLUSTERS:
        return None
    totals = np.array([[*old[name], *later[name]] for name in shared])
    drawn = np.random.default_rng(0).integers(0, len(shared), (_RESAMPLES, len(shared)))
    spent, solved, spent_new, solved_new = totals[drawn].sum(axis=1).T
    if not solved.all() or not solved_new.all():
        return None  # without a solved sample there is no ratio
    differences = spent_new / solved_new - spent / solved
    low, high = np.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def _signed(value: float) -> str:
    return f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.2f}"


def _limits(limits: Limits | None, shown: Callable[[float], str] = _signed) -> str:
    return " to ".join(map(shown, limits)) if limits else "-"
