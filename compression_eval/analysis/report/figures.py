"""Every figure of a report, computed from the frames alone.

`read_frames` reads each log once. `figures` goes through the arms once: every mean of an arm is
over its samples with a score, on the probes that every arm was asked (`common`), and the number of
its samples that failed is given with it. What compares arms with each other is in `tradeoff`.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.columns import CRITERIA, FACTS, SAMPLE_COLUMNS
from compression_eval.analysis.comparison.changes import MISS, worst_criteria
from compression_eval.analysis.comparison.measures import (
    HEADLINE,
    RECALL,
    Failures,
    failures,
    ungraded,
    values,
    with_states,
)
from compression_eval.analysis.facts import (
    FETCHING,
    FactTotals,
    Share,
    Spent,
    ways_of_answering,
)
from compression_eval.analysis.frames import (
    Aside,
    read_rows,
    states_of,
    unfold_criteria,
    unfold_facts,
)
from compression_eval.analysis.logs import Log
from compression_eval.analysis.report.tradeoff import (
    Frontier,
    ReportedArm,
    Retained,
    Role,
    frontier,
    retained,
    same_answers,
)
from compression_eval.analysis.statistics.intervals import Estimate, arm_mean
from compression_eval.fixtures.writing import versioned_json
from compression_eval.grading.rubric import FORMULA, KNOWLEDGE, OVERALL, structure

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TABLE_MEASURES: tuple[str, ...] = (KNOWLEDGE, RECALL, *structure().dimensions, OVERALL)
"""Columns of an arm's table, in its order."""

GROUPS: Mapping[str, str] = {
    "probe_type": "probe type",
    "task_type": "task type",
    "length": "length of the conversation",
    "language": "language",
    "qualified": "verdict on the probe",
    "region": "answered by the kept tail alone",
}
"""Columns that results are reported by, with their titles."""

_SAME: Mapping[tuple[str, ...], Mapping[str, str]] = {
    (): {
        "model": "model under test",
        "graded_by": "grader",
        "grader_context": "what the grader sees of the state",
        "criteria": "graded criteria",
        "token_counter": "token counter",
        "cycles": "compressions before each question",
        "recall_by": "who judged the facts in answers",
        "survival_by": "who judged the facts in states",
    },
    ("unit",): {
        "fixture_digest": "fixture",
        "rubric_digest": "rubric",
        "question_digest": "words around the question",
    },
    ("unit", "probe_id"): {"probe_digest": "probe"},
}
"""Columns that all arms should have in common, on each of what they are named under."""

_JUDGED = {"recall_by": "fact_recall", "survival_by": "fact_survival"}
"""What somebody judged, by the column that says who."""

_SIZES = {
    "tokens_before": "tokens_original",
    "tokens_after": "tokens_state",
    "removed": "tokens_removed",
}
_PER_COMPRESSION = ("calls", "input_tokens", "output_tokens", "seconds")
_PER_ANSWER = {
    "answer_input_tokens": "answer_input_tokens",
    "answer_output_tokens": "answer_output_tokens",
    "answer_cached_tokens": "answer_cache_read_tokens",
    "grader_input_tokens": "grader_input_tokens",
    "grader_output_tokens": "grader_output_tokens",
    "grader_cached_tokens": "grader_cache_read_tokens",
    "sample_seconds": "total_seconds",
}
"""What an arm costs, by the column that it is a mean of."""

_LOST = ("never_fed", "superseded", "distorted", "dropped", "lost", "unused", "unanswered")
"""Stages of facts that are not in the answer."""

_PROBE = ["unit", "probe_id"]
"""Columns that name a probe."""

_OF_FACTS = (
    *("fixture", "cut", "probe", "fact", "epoch", "stage", "in_state", "in_answer"),
    *("in_state_read", "in_answer_read", "age_share", "cycles", "found", "type", "region"),
)
"""Columns of facts that figures are made of."""

MAX_DIFFERING, MAX_FACTS = 5, 3
"""Maximum things that a line names; the rest is counted."""

MAX_REASON, MAX_FACT, MAX_VALUE = 200, 60, 80
"""Characters of a text."""


@dataclass(frozen=True)
class Frames:
    """The frames of `compression_eval.analysis` for one list of logs, `samples` with states."""

    samples: "DataFrame"
    """Without the columns that are aside."""
    states: "DataFrame"
    aside: Aside
    """Uuid, question, answer, criteria and facts of each sample, as texts most of the memory."""

    def unfolded(self, arm: str) -> "tuple[DataFrame, DataFrame]":
        """Return an arm's samples with their uuids and a hash of each answer, and its facts."""
        samples = self.samples[self.samples["arm"] == arm]
        uuids: list[Any] = []
        answers: list[int] = []

        def cells() -> Iterator[Any]:
            """Yield the facts; only one log's texts are in memory at a time."""
            for path in samples["log_path"].unique():
                for uuid, _, answer, _, facts in self.aside.of(path):
                    uuids.append(uuid)
                    answers.append(hash(answer))
                    yield facts

        facts = unfold_facts(samples[["arm", "log"]], _OF_FACTS, cells())
        return samples.assign(sample_uuid=uuids, answer=answers), facts

    def criteria(self, samples: "DataFrame") -> "DataFrame":
        """Return the criteria of some samples, named by their uuids."""
        from pandas import DataFrame

        uuids, paths = set(samples["sample_uuid"]), samples["log_path"].unique()
        cells = (cell for path in paths for cell in self.aside.of(path))
        rows = [(uuid, criteria) for uuid, _, _, criteria, _ in cells if uuid in uuids]
        return unfold_criteria(DataFrame(rows, columns=["sample_uuid", CRITERIA]))


def read_frames(logs: Sequence[Log], *, progress: Callable[[int], None] = lambda _: None) -> Frames:
    """Read logs, each of them once.

    Raises:
        DataError: A log cannot be read, or was written by an incompatible version.
    """
    aside = Aside("sample_uuid", "question", "answer", CRITERIA, FACTS)
    columns = (*SAMPLE_COLUMNS, CRITERIA, FACTS)
    rows = read_rows(logs, columns, progress=progress, aside=aside)
    samples = with_states(rows)
    return Frames(samples, states_of(samples), aside)


# ----- the figures


@dataclass(frozen=True)
class Value:
    """One value of a table."""

    value: float
    """Mean over the conversations, see `ArmValues`; NaN if there is none."""
    probes: int
    """Probes that have a value."""


@dataclass(frozen=True)
class Row:
    """A fixture's line of the table, or that of all fixtures."""

    label: str
    probes: int
    cells: dict[str, Value]


@dataclass(frozen=True)
class Miss:
    """One probe under the line in one arm."""

    unit: str
    probe: str
    score: float
    """Mean over epochs of knowledge."""
    lost: list[str]
    """Facts that did not get into the answer, the most frequent first, with the stage."""
    criterion: str
    """The worst criterion of the epoch nearest to the mean, and what the grader said of it."""
    reason: str


@dataclass(frozen=True)
class Survival:
    """One arm's facts, over all its probes and epochs."""

    by_cycle: dict[str, Share]
    """By the number of compressions that a fact has been through."""
    by_age: dict[str, Share]
    """By the quarter of the history that it was first said in."""
    stages: dict[str, int]
    """Facts by what became of them; stages that do not occur are left out."""
    read: int = 0
    """Facts on whose state a reader gave its word; the others were looked up."""
    fact_agreement: float | None = None
    """Share of the facts that were both read and looked up on which the two say the same, 0 to 1;
    None where there are none."""
    contradicted: float | None = None
    """Share of the facts that the answers contradict, by the grader's word; None without one."""
    passed: dict[str, Share] = field(default_factory=dict)
    """Facts that the look-up found in the states after each number of compressions since they
    were said; empty with one compression."""

    @classmethod
    def of(cls, facts: FactTotals) -> "Survival":
        """Return the counts that a report is made of."""
        shares = facts.shares("cycles"), facts.shares("age")
        stages, agreement = dict(facts.stages), facts.agreement
        return cls(*shares, stages, facts.read, agreement, facts.contradicted, facts.passed())


@dataclass(frozen=True)
class ArmFigures:
    """The figures of one arm."""

    table: list[Row]
    estimates: dict[str, Estimate]
    groups: dict[str, dict[str, Value]]
    misses: list[Miss]
    survival: Survival
    costs: dict[str, float]
    """As `costs` returns them."""
    failures: Failures
    suspect: int
    """Compressions whose state was used, but reads like a refusal or is nearly empty."""
    abstained: int
    """Scored answers that say that they do not know, or nothing."""


@dataclass(frozen=True)
class Figures:
    """The figures of a report."""

    formula: str
    arms: list[ReportedArm]
    of_arm: dict[str, ArmFigures]
    retained: dict[str, Retained]
    frontier: Frontier
    differing: list[str]
    """What the arms do not have in common though a comparison wants it, one line each."""
    probes: tuple[int, int] = (0, 0)
    """Probes that all arms have in common (0 if each has its own), and all that any was asked."""
    several_cuts: list[str] = field(default_factory=list)
    """Conversations that were cut at several places, which are averaged."""
    spending: dict[str, dict[str, Spent]] = field(default_factory=dict)
    """Tokens of the answers of each arm, by how they were given; empty if no arm fetched."""
    same_answers: list[list[str]] = field(default_factory=list)
    """Arms, neither of them a control, that gave the same answers, byte by byte."""

    @property
    def offline(self) -> bool:
        """Whether no language model was involved in any arm."""
        return all(arm.offline for arm in self.arms)

    def estimate(self, arm: str, measure: str = KNOWLEDGE) -> Estimate | None:
        """Return an arm's mean of a measure; None if no sample has a value."""
        return self.of_arm[arm].estimates.get(measure)


def figures(frames: Frames) -> Figures:
    """Compute the figures."""
    shared, probes = common(frames.samples)
    # Rows are taken arm by arm: to go through the groups would copy the whole frame.
    places, every = (frame.groupby("arm").indices for frame in (shared, frames.samples))
    reported: dict[str, ReportedArm] = {}
    of_arm: dict[str, ArmFigures] = {}
    spent: dict[str, dict[str, Spent]] = {}
    by_arm: dict[str, DataFrame] = {}
    for name in map(str, frames.samples["arm"].unique()):
        own = shared.iloc[places.get(name, [])]
        samples, facts = frames.unfolded(name)
        reported[name] = _reported(name, frames.samples.iloc[every[name]])
        by_arm[name] = own.assign(answer=samples.loc[own.index, "answer"])
        of_arm[name] = _of_arm(own, frames, samples, facts)
        spent[name] = ways_of_answering(own, facts)
    # The highest knowledge first, arms without any score last.
    means = {name: each.estimates.get(KNOWLEDGE) for name, each in of_arm.items()}
    ranks = {name: -mean.mean if mean else 0.0 for name, mean in means.items()}
    arms = sorted(reported.values(), key=lambda arm: (arm.scored == 0, ranks[arm.name]))
    cuts = shared.groupby("fixture")["unit"].nunique()
    return Figures(
        formula=f"{FORMULA}; a sample that failed has no score",
        arms=arms,
        of_arm={arm.name: of_arm[arm.name] for arm in arms},
        retained=retained(arms, by_arm),
        frontier=frontier(arms, by_arm),
        differing=differing(frames.samples),
        probes=(probes, len(frames.samples[_PROBE].drop_duplicates())),
        several_cuts=list(map(str, cuts[cuts > 1].index)),
        spending={arm.name: spent[arm.name] for arm in arms}
        if any(FETCHING in ways for ways in spent.values())
        else {},
        same_answers=same_answers(arms, by_arm),
    )


def as_json(of: Figures) -> str:
    """Return the figures as JSON; what is not known is null."""
    data = asdict(of)
    if not of.spending:
        del data["spending"]
    return versioned_json(_plain(data))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _reported(name: str, rows: "DataFrame") -> ReportedArm:
    roles: dict[str, Role] = {"full": "ceiling", "none": "floor"}
    columns = ["compressor", "compressor_args", "settings", "model", "compressor_model"]
    columns += ["answered_by", "graders_settings"]
    text = {column: _joined(rows[column]) for column in columns}
    offline = bool(rows["offline"].all())
    graders = rows["graded_by"].where(rows["graded_by"].astype(bool), rows["graders"])
    return ReportedArm(
        name=name,
        compressor=text["compressor"],
        compressor_args=text["compressor_args"],
        settings=text["settings"],
        role=roles.get(text["compressor"], ""),
        model=text["model"],
        compressor_model=text["compressor_model"],
        graders=_joined(graders),
        offline=offline,
        self_graded=not offline and any(mark is True for mark in rows["self_graded"]),
        logs=list(dict.fromkeys(rows["log"])),
        epochs=int(rows.groupby("log_path")["epoch"].nunique().max()),
        samples=len(rows),
        scored=int(rows["scored"].sum()),
        models=f"{text['answered_by']}; {text['graders_settings']}",
    )


def _joined(column: "Series[Any]") -> str:
    """Return the distinct values of a column as text."""
    return "; ".join(str(value) for value in dict.fromkeys(column.dropna()) if value != "")


def _of_arm(
    shared: "DataFrame", frames: Frames, samples: "DataFrame", facts: "DataFrame"
) -> ArmFigures:
    """Return an arm's figures from its samples on the shared probes, from all, and its facts."""
    states = frames.states[frames.states["arm"] == samples["arm"].iloc[0]]
    means = {measure: arm_mean(values(shared, measure)) for measure in HEADLINE}
    return ArmFigures(
        table=table(shared),
        estimates={measure: mean for measure, mean in means.items() if mean is not None},
        groups={
            column: {
                str(name): _value(rows, KNOWLEDGE)
                for name, rows in shared.groupby(shared[column].astype(str))
            }
            for column in GROUPS
        },
        misses=misses(samples, frames.criteria, facts),
        survival=Survival.of(FactTotals(facts)),
        costs=costs(samples, states, set(shared["unit"])),
        failures=failures(samples),
        suspect=int(states["suspect"].fillna("").ne("").sum()),
        abstained=int((samples["scored"] & samples["abstained"].eq(True)).sum()),
    )


def common(samples: "DataFrame") -> "tuple[DataFrame, int]":
    """Return the samples that all tables are made of, and the number of their probes.

    Kept are the probes that every arm was asked, arms without any score left out, and on which
    no grading failed in any of them. Where no probe is common to all arms, the number is 0 and each
    arm keeps its own graded samples.
    """
    from pandas import MultiIndex

    having_scores = set(samples.loc[samples["scored"], "arm"])
    without = ungraded(samples)
    counted = samples["arm"].isin(having_scores)
    asked = samples.loc[counted, [*_PROBE, "arm"]].groupby(_PROBE)["arm"].nunique()
    lost = samples.loc[counted & without, _PROBE].itertuples(index=False, name=None)
    everywhere = set(asked[asked == len(having_scores)].index).difference(lost)
    at = ~without
    if everywhere:
        at &= MultiIndex.from_frame(samples[_PROBE]).isin(list(everywhere))
    return samples[at], len(everywhere)


def table(samples: "DataFrame") -> list[Row]:
    """Return an arm's table: a row per fixture, then one over all of them.

    A fixture with several cuts has a row for each.
    """
    several = samples.groupby("fixture")["unit"].transform("nunique") > 1
    labels = samples["fixture"].where(~several, samples["unit"])
    rows = [_row(str(label), part) for label, part in samples.groupby(labels, sort=True)]
    return [*rows, _row("all", samples)] if len(rows) != 1 else rows


def _row(label: str, samples: "DataFrame") -> Row:
    cells = {measure: _value(samples, measure) for measure in TABLE_MEASURES}
    return Row(label, len(samples.drop_duplicates(_PROBE)), cells)


def _value(samples: "DataFrame", measure: str) -> Value:
    measured = values(samples, measure)
    return Value(measured.mean(), len(measured.by_item))


def misses(
    samples: "DataFrame",
    criteria: "Callable[[DataFrame], DataFrame]",
    facts: "DataFrame",
    line: float = MISS,
) -> list[Miss]:
    """Return the misses of one arm, the worst first; `criteria` returns those of samples."""
    scored = samples[samples[KNOWLEDGE].notna()]
    means = scored.groupby(_PROBE)[KNOWLEDGE].transform("mean")
    missed = scored.assign(mean=means, far=(scored[KNOWLEDGE] - means).abs())[means < line]
    # The epoch nearest to the mean represents the probe.
    nearest = missed.sort_values(["far", "sample_uuid"]).drop_duplicates(_PROBE)
    worst = {
        uuid: (f"{criterion} {score:g}", _one_line(reason, MAX_REASON))
        for uuid, criterion, score, reason in worst_criteria(criteria(nearest), ["sample_uuid"])[
            ["sample_uuid", "criterion", "score", "reasoning"]
        ].itertuples(index=False, name=None)
    }
    lost = _lost_facts(facts)
    cells = nearest[["unit", "probe_id", "mean", "sample_uuid"]].itertuples(index=False, name=None)
    below = [
        Miss(unit, probe, mean, lost.get((unit, probe), []), *worst.get(uuid, ("", "")))
        for unit, probe, mean, uuid in cells
    ]
    return sorted(below, key=lambda miss: (miss.score, miss.unit, miss.probe))


def _lost_facts(facts: "DataFrame") -> dict[tuple[str, str], list[str]]:
    """Return, per unit and probe, the facts that were lost, with the stage."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    rows = facts.loc[facts["stage"].isin(_LOST), ["fixture", "cut", "probe", "fact", "stage"]]
    for fixture, cut, probe, fact, stage in rows.itertuples(index=False, name=None):
        counter = counts.setdefault((f"{fixture}@{cut}", probe), Counter())
        counter[f"{_one_line(fact, MAX_FACT)} ({stage})"] += 1
    return {
        key: [fact for fact, _ in counter.most_common(MAX_FACTS)]
        + ([f"{len(counter) - MAX_FACTS} more"] if len(counter) > MAX_FACTS else [])
        for key, counter in counts.items()
    }


def _one_line(text: object, longest: int) -> str:
    line = " ".join(str(text or "")[: longest * 4].split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def costs(samples: "DataFrame", states: "DataFrame", units: AbstractSet[str]) -> dict[str, float]:
    """Return what one arm costs: means per compression and per answer; NaN if nothing is known.

    Tokens before and after and the share removed are means over the conversations that all arms
    have in common (``units``) of means over compressions, so that sizes can be compared as scores
    are, and `removed` is not what the two mean sizes would give; `compressions` counts
    those that gave a state. `total_tokens` are those of all roles over all samples, in and out, and
    `dollars` those of the whole arm, NaN unless the runs knew every price.
    """
    fine = states[states["state_status"] == "ok"]
    kinds = ("answer_input", "answer_output", "grader_input", "grader_output")
    # The tokens of a compression are on one of its samples, so that they can be added up.
    summed = [f"{kind}_tokens" for kind in (*kinds, "compress_input", "compress_output")]
    sizes = fine[fine["unit"].isin(units)].groupby("fixture")
    amounts = {name: sizes[of].mean().mean() for name, of in _SIZES.items()}
    amounts |= {name: fine[f"compress_{name}"].mean() for name in _PER_COMPRESSION}
    amounts |= {name: samples[of].mean() for name, of in _PER_ANSWER.items()}
    amounts["total_tokens"] = samples[summed].sum().sum()
    amounts["dollars"] = samples["dollars"].sum(min_count=len(samples))
    return {"compressions": len(fine), **{name: float(value) for name, value in amounts.items()}}


def differing(samples: "DataFrame") -> list[str]:
    """Return a line for each thing that differs; empty if the arms can be compared as they are."""
    lines = []
    for keys, columns in _SAME.items():
        for column, title in columns.items():
            if keys:
                counts = samples.groupby(list(keys))[column].nunique()
                several = counts[counts > 1].index
                found = [str(key[-1] if len(keys) > 1 else key) for key in several]
                title += " in two versions"  # noqa: PLW2901
            else:
                rows = samples
                if column in _JUDGED:  # where there is nothing to judge, nobody was asked
                    rows = rows[rows[_JUDGED[column]].notna()]
                if column == "survival_by":
                    rows = rows[rows["tokens_state"].ne(0)]
                found = sorted({str(value) for value in rows[column].dropna() if value != ""})
            if len(found) > (0 if keys else 1):
                shown = ", ".join(_one_line(each, MAX_VALUE) for each in found[:MAX_DIFFERING])
                left = len(found) - MAX_DIFFERING
                lines.append(f"{title}: {shown}" + (f" and {left} more" if left > 0 else ""))
    probes = samples[["arm", *_PROBE]].drop_duplicates()
    if (probes.groupby(_PROBE).size() < samples["arm"].nunique()).any():
        lines.append("probes: not every arm was asked all of them")
    return lines
