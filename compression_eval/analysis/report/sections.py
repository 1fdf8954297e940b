"""The parts of a report as tables and sentences, from which its page and its Markdown are made.

A function for each part says its title, when it is shown, its tables and its notes. `parts` gives
them in the order of the page; `markdown` puts the first sentence and most of the parts into a text
for a pull request.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Union

import yaml

from compression_eval.analysis.comparison.changes import MISS
from compression_eval.analysis.comparison.measures import (
    CLOSEST,
    HEADLINE,
    RECALL,
    SHARES,
    SURVIVAL,
    margin_in_facts,
    shown_change,
    shown_p,
)
from compression_eval.analysis.facts import SPENDING_NOTE, meanings, spending_table
from compression_eval.analysis.logs import Log
from compression_eval.analysis.report.figures import GROUPS, TABLE_MEASURES, Figures, Value
from compression_eval.analysis.report.tradeoff import Pair, ReportedArm
from compression_eval.analysis.statistics.intervals import Limits
from compression_eval.analysis.statistics.significance import DEFAULT_THRESHOLD
from compression_eval.fixtures.banks import MIN_PROBES
from compression_eval.grading.rubric import KNOWLEDGE, MAX_SCORE, OVERALL, structure
from compression_eval.text.markdown import pasted
from compression_eval.text.markdown import table as markdown_table
from compression_eval.text.tables import Cell, Table, counted

if TYPE_CHECKING:
    from pandas import DataFrame

TITLES = {
    "context_awareness": "Context",
    "artifact_trail": "Artifact",
    "completeness": "Complete",
    "instruction_following": "Instruction",
    RECALL: "Facts in answer",
    SURVIVAL: "Facts in state",
}

DASH = "–"

_POINT = 1e-6
"""An interval narrower than this is one value."""

MAX_OPENING = 5
"""Arms in the first sentence."""

MAX_ROWS, MAX_OPEN = 30, 15
"""Rows of a table in the Markdown, and of a part that is open on the page."""


@dataclass(frozen=True)
class Part:
    """A part of the report: tables, notes and smaller parts."""

    title: str
    blocks: Sequence[Union[Table, str, "Part"]]
    """A text is a note."""
    id: str = ""
    """Its place on the page; of a smaller part empty."""
    pasted: bool = False
    """Whether the Markdown has it as well."""
    open: bool = True
    """Whether a smaller part is unfolded."""


# ----- numbers


def title_of(measure: str) -> str:
    """Return a measure's title as a column head."""
    return TITLES.get(measure, measure.capitalize())


def decimal(value: float | None, digits: int = 2) -> str:
    """Return a number with thousands set apart; a dash for what is not known."""
    return DASH if value is None or math.isnan(value) else f"{value:,.{digits}f}"


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share in percent; a dash for what is not known."""
    return DASH if share is None or math.isnan(share) else f"{share * 100:.{digits}f} %"


def between(limits: Limits | None, measure: str = "") -> str:
    """Return an interval; a dash where there is none.

    Args:
        limits: Of a mean of the measure, or without one of anything else.
        measure: No limit is shown to be beyond the ends of its scale.
    """
    if limits is None:
        return DASH
    if measure:
        most = 1.0 if measure in SHARES else MAX_SCORE
        limits = (max(limits[0], 0.0), min(limits[1], most))
    return f"{_shown(measure, limits[0])} to {_shown(measure, limits[1])}"


def _shown(measure: str, value: float) -> str:
    return percent(value) if measure in SHARES else decimal(value)


def _percents(limits: Limits | None) -> str:
    if limits is None or limits[1] - limits[0] < _POINT:
        return DASH
    return f"{percent(limits[0])} to {percent(limits[1])}"


def _with_probes(value: Value | None, probes: float = math.inf, measure: str = KNOWLEDGE) -> str:
    """Return a mean, with the number of its probes where it is smaller than that of its row."""
    if value is None:
        return DASH
    few = f" ({value.probes})" if value.probes < probes else ""
    return _shown(measure, value.value) + few


def _named(arm: ReportedArm) -> Cell:
    """Return an arm with the share of its samples that failed, as every table of means has it."""
    return Cell(arm.name, below=arm.failed)


def _bracketed(text: str) -> str:
    return f" ({text})" if text else ""


# ----- sentences


def opening(of: Figures) -> str:
    """Return what the arms kept of these conversations; empty if no probe is common to all."""
    known = [(arm, mean) for arm in of.arms if (mean := of.estimate(arm.name))]
    told = []
    for arm, mean in known:
        if arm.role:
            continue
        kept = of.estimate(arm.name, SURVIVAL)
        size = f"{decimal(of.of_arm[arm.name].costs['tokens_after'], 0)} tokens"
        told.append(
            f"{arm.name} ({', '.join(filter(None, [size, arm.failed]))})"
            + (f" keeps {percent(kept.mean)} of the facts and" if kept else "")
            + f" reaches {mean.mean:.2f} of 5"
        )
    if not of.probes[0] or not told:
        return ""
    limits = [f"{arm.name} {mean.mean:.2f}" for arm, mean in known if arm.role]
    number = max(mean.fixtures for _, mean in known)
    here = "this conversation" if number == 1 else f"these {number} conversations"
    few = ", too few to rank arms" if of.probes[0] < MIN_PROBES * number else ""
    text = f"On {here} ({counted(of.probes[0], 'probe')}{few}), {'; '.join(told[:MAX_OPENING])}"
    text += f"; and {len(told) - MAX_OPENING} more" if len(told) > MAX_OPENING else ""
    return f"{text}{_bracketed(', '.join(limits))}."


def notes(of: Figures, logs: Sequence[Log]) -> Iterator[str]:
    """Yield what a reader must know before any figure, one line each; often nothing."""
    offline = [arm.name for arm in of.arms if arm.offline]
    if of.offline:
        yield (
            "No language model was involved: the embedded lexical model answered and graded. "
            "Figures are a lower bound and a regression check."
        )
    elif offline:
        yield f"No language model was involved in: {', '.join(offline)}"
    if judged := [arm.name for arm in of.arms if arm.self_graded]:
        yield f"Self-graded, which flatters: a model judged its own answers in {', '.join(judged)}"
    for log in logs:
        if not log.complete:
            ended = f"{log.name}: the run ended early ({log.header.status})"
            yield f"{ended}; its figures are of what it got to"
    if failing := [f"{arm.name} ({arm.failed})" for arm in of.arms if arm.failed]:
        yield (
            f"Some samples have no score and are in no mean (see Failures): {', '.join(failing)}. "
            "An arm that fails on hard conversations looks better by it; standing and pairs are on "
            "probes that every arm has an answer to"
        )
    yield from notes_on_ranks(of)
    if of.differing:
        yield f"These arms cannot be compared just so. They differ in {'; '.join(of.differing)}"


def notes_on_ranks(of: Figures) -> Iterator[str]:
    """Yield the reasons why the table alone does not rank the arms."""
    shared, asked = of.probes
    everywhere = "every arm was asked and no grader failed on"
    if not shared:
        yield f"No probes that {everywhere}: each arm is by itself, so do not rank them"
    elif shared < asked:
        yield f"Means are over the {shared} of {asked} probes that {everywhere}"
    conversations = max(
        (each.fixtures for each in map(of.estimate, (arm.name for arm in of.arms)) if each),
        default=0,
    )
    if 0 < shared < MIN_PROBES * conversations:
        yield (
            f"{counted(shared, 'probe')} about {counted(conversations, 'conversation')}: too few "
            f"to rank arms; at least {MIN_PROBES} about each are needed"
        )
    if of.frontier.probes < shared:
        yield (
            f"Standing and pairs: on the {of.frontier.probes} of {shared} probes that all arms "
            "there have an answer to"
            + (f"; left out, since they fail too often: {out}" if (out := left_out(of)) else "")
        )
    if of.several_cuts:
        yield f"Several cuts of one conversation are averaged: {', '.join(of.several_cuts[:5])}"
    for names in of.same_answers:
        yield f"{' and '.join(names)} gave the same answers, byte by byte: nothing was compared"
    if not of.retained and any(not arm.role for arm in of.arms):
        yield "Retention: no floor or ceiling measured (arms none and full by the same models)"
    for name, kept in of.retained.items():
        leading = kept.measures.get(KNOWLEDGE)
        if leading is not None and leading.share is not None and leading.share > 1:
            yield (
                f"{name} retains {leading.share:.0%}, more than all: the same model knew less from "
                "the full history in these runs, so full is no upper bound here"
            )


def left_out(of: Figures) -> str:
    """Return the arms that failed too often to be compared with others, and how often."""
    names = of.frontier.left_out
    return ", ".join(f"{arm.name} ({arm.failed})" for arm in of.arms if arm.name in names)


# ----- the parts


def parts(
    of: Figures, logs: Sequence[Log], samples: "DataFrame", *, reference: bool = False
) -> list[Part]:
    """Return the parts of the page, in its order; charts and probes are in the template."""
    found = (
        summary(of),
        _pairs(of),
        _retention(of),
        Part("Charts", [], id="charts"),
        _scores(of),
        _intervals(of),
        _chains(of),
        _spending(of),
        _groups(of),
        _misses(of),
        _costs(of),
        _failures(of),
        Part("Probes", [], id="probes"),
        _reference() if reference else None,
        _runs(samples, logs),
    )
    return [part for part in found if part]


def summary(of: Figures) -> Part:
    """Return one row per arm with the deciding figures."""
    points = {point.arm: point for point in of.frontier.points}
    rows: list[dict[str, str | Cell]] = []
    for arm in of.arms:
        figures, point = of.of_arm[arm.name], points.get(arm.name)
        named = [each for each in _settings(arm) if each not in arm.name]
        named += ["no language model"] if arm.offline and not of.offline else []
        named += ["self-graded"] if arm.self_graded else []
        kept = of.retained[arm.name].measures.get(KNOWLEDGE) if arm.name in of.retained else None
        by = point.dominated_by if point else ""
        standing = f"dominated by {by}" if by else "not dominated" if point else DASH
        standing = "fails too often" if arm.name in of.frontier.left_out else standing
        failures = figures.failures
        below = []
        if failures.failed_states:
            below.append(f"{failures.failed_states} of {failures.states} states")
        if figures.suspect:
            below.append(f"{figures.suspect} suspect")
        leading = of.estimate(arm.name)
        seen = leading.here if leading and not leading.no_spread else None
        retained = _percents(kept.here if kept else None)
        rows.append(
            {
                "Arm": Cell(arm.name, below=", ".join(named)),
                "Knowledge": Cell(
                    _mean(of, arm, KNOWLEDGE), below=between(seen, KNOWLEDGE) if seen else ""
                ),
                **{title_of(name): _mean(of, arm, name) for name in (RECALL, SURVIVAL)},
                "Contradicted": percent(figures.survival.contradicted, 1),
                "Failed": Cell(arm.failed.removesuffix(" failed") or "0", below="\n".join(below)),
                "Retention": Cell(
                    percent(kept.share if kept else None), below=retained.strip(DASH)
                ),
                "Tokens left": decimal(figures.costs["tokens_after"], 0),
                "Standing": f"control: {arm.role}" if arm.role else standing,
                title_of(OVERALL): _mean(of, arm, OVERALL),
                "Removed": percent(figures.costs["removed"], 1),
            }
        )
    means = [mean for arm in of.arms if (mean := of.estimate(arm.name))]
    limits = any(mean.here and not mean.no_spread for mean in means)
    shared, asked = of.probes
    on = f"on the {shared} of {asked} probes that every arm was asked" if shared else "on its own"
    answered, graded = (
        "; ".join(dict.fromkeys(names))
        for names in zip(*((arm.model, arm.graders) for arm in of.arms), strict=True)
    )
    note = (
        f"Answered by {answered}, graded by {graded}, "
        f"{counted(max(arm.epochs for arm in of.arms), 'epoch')}. "
        f"Knowledge: 0 to 5{', with its 95 % interval on these conversations' * limits}; every arm "
        f"{on}, without the samples that failed, every conversation counting the same. Retention: "
        "where its knowledge is between that of the arms none (0 %) and full (100 %). Tokens "
        "left: mean size of its states. Removed: the mean of the conversations' shares. Dominated: "
        "on the probes that all arms have an answer to, another arm is shown to be better (by the "
        "intervals, not by the means alone), keeps no more tokens and fails no more often. "
        "Contradicted: share of all facts that the answers give another value for, by the grader's "
        "word. "
        "Failed: samples without a score, and compressions that gave no state, or a suspect one."
    )
    heads = list(rows[0])
    cells = [list(row.values()) for row in rows]
    table = Table(heads, cells, texts=(heads.index("Standing"),))
    return Part("Arms", [table, note], id="summary", pasted=True)


def _settings(arm: ReportedArm) -> list[str]:
    """Return an arm's arguments, with a mark at those of which a target takes only the ratio."""
    settings = arm.settings.split(", ") if arm.settings else []
    ratios = ("tail_tokens=", "summary_tokens=")
    if not any(each.startswith("target_tokens=") for each in settings):
        return settings
    return [f"{each} (as a ratio)" if each.startswith(ratios) else each for each in settings]


def _mean(of: Figures, arm: ReportedArm, measure: str) -> str:
    estimate = of.estimate(arm.name, measure)
    return _shown(measure, estimate.mean) if estimate else DASH


def _pairs(of: Figures) -> Part | None:
    """Return the difference between every two arms; None if there are no two."""

    def row(pair: Pair) -> list[str]:
        certain = pair.p_value is None and pair.verdict != "cannot tell"
        same = any({pair.higher, pair.lower} <= set(names) for names in of.same_answers)
        sizes = (of.of_arm[name].costs["tokens_after"] for name in (pair.higher, pair.lower))
        return [
            pair.higher,
            pair.lower,
            " / ".join(decimal(size, 0) for size in sizes),
            shown_change(pair.change, KNOWLEDGE, DEFAULT_THRESHOLD),
            "exact" if certain else between(pair.interval) + " *" * pair.over_conversations,
            shown_p(pair.p_value).replace("-", DASH),
            "the same answers" if same else pair.why,
        ]

    if not of.frontier.pairs:
        return None
    heads = ["Higher", "Lower", "Tokens left", "Difference", "95 % interval", "p (Holm)", "Verdict"]
    table = Table(heads, list(map(row, of.frontier.pairs)), texts=(1, 6))
    once = any(pair.over_conversations for pair in of.frontier.pairs)
    note = (
        f"Knowledge on the {of.frontier.probes} probes that every arm here has an answer to, "
        "controls left out; 95 % on these conversations"
        + " (*: an arm was compressed only once, so by the spread between conversations)"
        * once
        + "; p adjusted by Holm's method over all pairs. Verdicts are those of the command compare "
        "on the higher arm: better where p is under 5 %, and whether the difference is shown to be "
        f"at least the margin of {DEFAULT_THRESHOLD:g} ({margin_in_facts(DEFAULT_THRESHOLD)}), or "
        "less. It gives p for its two arms alone "
        "and counts failures apart. Exact: both arms come out the same every time. Verdicts do not "
        "take sizes into account: see the tokens left of both."
    )
    count = f"{counted(len(table.rows), 'pair')}, the largest difference first"
    rows = Part(count, [table], open=len(table.rows) <= MAX_OPEN)
    return Part("Every two arms", [rows, note], id="pairs", pasted=True)


def _retention(of: Figures) -> Part | None:
    """Return the normalised retention of knowledge; None without controls."""
    failed = {arm.name: arm.failed or "0" for arm in of.arms}
    rows: list[list[str]] = []
    for name, retained in of.retained.items():
        kept = retained.measures.get(KNOWLEDGE)
        cells = [DASH] * 5
        if kept is not None:
            share = percent(kept.share) if kept.share is not None else "close"
            cells = [decimal(kept.floor), decimal(kept.ceiling), share]
            cells += [_percents(kept.here), _percents(kept.elsewhere)]
        rows.append([name, str(retained.conversations), failed[name], *cells])
    if not rows:
        return None
    heads = ["Arm", "Conversations", "Failed", "Floor", "Ceiling", "Retention"]
    heads += ["95 % here", "95 % for more like these"]
    note = (
        "(arm - floor) / (ceiling - floor) of knowledge, a ratio of means over the conversations, "
        "on the probes that all three have, by Fieller's method. Close: ceiling and floor are less "
        f"than {CLOSEST:g} of 5 apart, so that a share would say nothing. figures.json has the "
        "other measures."
    )
    title = "Retention between floor and ceiling"
    return Part(title, [Table(heads, rows), note], id="retention", pasted=True)


def _scores(of: Figures) -> Part:
    """Return each arm's table by conversation."""
    heads = ["Fixture", "Probes", *map(title_of, TABLE_MEASURES)]
    tables = []
    for arm in of.arms:
        rows = [
            [
                row.label,
                str(row.probes),
                *(_with_probes(row.cells[name], row.probes, name) for name in TABLE_MEASURES),
            ]
            for row in of.of_arm[arm.name].table
        ]
        table = Table(heads, rows, total=len(rows) > 1)
        tables.append(Part(f"{arm.name}{_bracketed(arm.failed)}", [table]))
    note = (
        f"{of.formula[0].upper()}{of.formula[1:]}. Bracketed: probes behind a value, where fewer "
        "than in its row."
    )
    return Part("Scores by conversation", [note, *tables], id="scores", pasted=True)


def _intervals(of: Figures) -> Part:
    """Return the means of every measure with both intervals."""
    rows: list[list[str | Cell]] = []
    for arm in of.arms:
        row: list[str | Cell] = [_named(arm)]
        for measure in HEADLINE:
            estimate, below = of.estimate(arm.name, measure), ""
            if estimate is not None:
                here = "no spread" if estimate.no_spread else between(estimate.here, measure)
                below = f"{here}\n{between(estimate.elsewhere, measure)}"
            row.append(Cell(_mean(of, arm, measure), below=below))
        rows.append(row)
    note = (
        "Means over the conversations, every one counting the same. Under each, 95 % "
        "intervals: on these conversations (fixtures and probes as they are; the unit is "
        "the compression), below it for more conversations like these (the unit is the fixture; "
        "Student's t). No spread: every compression and answer came out the same."
    )
    table = Table(["Arm", *map(title_of, HEADLINE)], rows)
    return Part("Means and intervals", [table, note], id="intervals")


def _chains(of: Figures) -> Part | None:
    """Return what is left of facts after each compression; None with one compression alone."""
    lives = {arm.name: of.of_arm[arm.name].survival.passed for arm in of.arms}
    longest = max(map(len, lives.values()), default=0)
    numbers = [str(number) for number in range(1, longest + 1)]
    rows = [
        [name, *(percent(passed[n].share) if n in passed else DASH for n in numbers)]
        for name, passed in lives.items()
        if passed
    ]
    if not rows:
        return None
    note = (
        "Share of the facts that the look-up finds in the state after each number of "
        "compressions since they were said, of those that have been through as many. The facts "
        "of later columns were said earlier in their conversations."
    )
    table = Table(["Arm", *numbers], rows)
    return Part("Facts after each compression", [table, note], id="chains", pasted=True)


def _spending(of: Figures) -> Part | None:
    if (spent := spending_table(of.spending)) is None:
        return None
    return Part("Tokens per correct answer", [spent, SPENDING_NOTE], id="spending", pasted=True)


def _groups(of: Figures) -> Part | None:
    """Return a table for each property of probes that varies: an arm per row."""
    tables = []
    for column, title in GROUPS.items():
        names = sorted({name for each in of.of_arm.values() for name in each.groups[column]})
        rows: list[list[str | Cell]] = []
        for arm in of.arms:
            own = of.of_arm[arm.name].groups[column]
            rows.append([_named(arm), *(_with_probes(own.get(name)) for name in names)])
        if len(names) > 1:
            tables.append(Part(f"By {title}", [Table(["Arm", *names], rows)]))
    return Part("By group of probes", tables, id="groups") if tables else None


def _misses(of: Figures) -> Part:
    heads = ["Conversation", "Probe", "Knowledge", "Facts not in the answer", "Worst criterion"]
    tables = []
    for arm in of.arms:
        if arm.role == "floor":
            continue
        rows = []
        for miss in of.of_arm[arm.name].misses:
            worst = f"{miss.criterion}: {miss.reason}" if miss.criterion else ""
            lost = ", ".join(miss.lost)
            rows.append([miss.unit, miss.probe, decimal(miss.score), lost, worst])
        count = f"{len(rows) or 'no'} {'miss' if len(rows) == 1 else 'misses'}"
        found = [Table(heads, rows, texts=(1, 3, 4))] if rows else []
        tables.append(Part(f"{arm.name}: {count}", found))
    note = (
        f"Probes whose knowledge (mean over epochs) is under {MISS:g}, the worst "
        "first; not those of the floor, which knows nothing of the history."
    )
    return Part("Misses", [note, *tables], id="misses", pasted=True)


_COSTS: Sequence[tuple[str, str, int]] = (
    ("Compressions", "compressions", 0),
    ("Tokens before", "tokens_before", 0),
    ("after", "tokens_after", 0),
    ("Calls", "calls", 1),
    ("Tokens in", "input_tokens", 0),
    ("Tokens out", "output_tokens", 0),
    ("Seconds", "seconds", 2),
    ("Answer in", "answer_input_tokens", 0),
    ("out", "answer_output_tokens", 0),
    ("cached", "answer_cached_tokens", 0),
    ("Grader in", "grader_input_tokens", 0),
    ("out", "grader_output_tokens", 0),
    ("cached", "grader_cached_tokens", 0),
    ("All tokens", "total_tokens", 0),
    ("Dollars", "dollars", 2),
)
"""Columns of the costs: head, figure and digits."""


def _costs(of: Figures) -> Part:
    rows = [
        [arm, *(decimal(figures.costs[name], digits) for _, name, digits in _COSTS)]
        for arm, figures in of.of_arm.items()
    ]
    note = (
        "Means. Cached tokens were read from the provider's cache and are part of the "
        "tokens in. A dash: not known from these runs."
    )
    table = Table(["Arm", *(head for head, _, _ in _COSTS)], rows)
    return Part("Cost and time", [table, note], id="costs", pasted=True)


def _failures(of: Figures) -> Part:
    note = (
        "A failed sample has no score and is in no mean. Where it was the grader that "
        "failed, the probe is left out for all arms."
    )
    lines = [f"{arm.name}: {_failed(of, arm)}" for arm in of.arms]
    return Part("Failures", [*lines, note], id="failures", pasted=True)


def _failed(of: Figures, arm: ReportedArm) -> str:
    """Return what failed in an arm."""
    figures = of.of_arm[arm.name]
    failures = figures.failures
    text = f"Scored: {arm.scored} of {counted(arm.samples, 'sample')}"
    if figures.abstained:
        text += f", {figures.abstained} of them abstained"
    if failures.failed_states:
        compressions = counted(failures.states, "compression")
        text += f"; {failures.failed_states} of {compressions} failed"
    if figures.suspect:
        text += f"; {counted(figures.suspect, 'state')} suspect"
    every = {**failures.reasons, **failures.ungraded_reasons}
    reasons = ", ".join(f"{name} {n}" for name, n in every.items())
    return f"{text}; without a score: {reasons}." if reasons else f"{text}."


def _reference() -> Part:
    """Return published figures to show next to a report's own; they are no claim of ours."""
    found = yaml.safe_load((files(__package__) / "published.yaml").read_text(encoding="utf-8"))
    dimensions = structure().dimensions
    heads = ["Method", *map(title_of, (*dimensions, OVERALL)), "Mean of the six", "Tokens removed"]
    rows = []
    for method in found["methods"]:
        own = [method[name] for name in dimensions]
        # The mean of the dimensions is how we compute an overall score.
        numbers = map(decimal, (*own, method["overall"], sum(own) / len(own)))
        rows.append([method["method"], *numbers, percent(method["tokens_removed"], 1)])
    note = f"{found['source']}: {found['conditions']}."
    title = "Published figures, not measured here"
    return Part(title, [Table(heads, rows), note], id="reference", pasted=True)


_MADE_WITH = {
    "model": "model",
    "compressor model": "compressor_model",
    "grader": "graded_by",
    "packages": "",
    "task version": "version",
    "tokens counted with": "token_counter",
    "grader sees": "grader_context",
    "criteria": "criteria",
    "rubric": "rubric_digest",
    "fixtures": "fixture_digest",
    "probe banks": "bank_digest",
    "strategies' prompts": "prompts_digest",
    "arguments": "compressor_args",
}
"""What a run was made with: columns of its samples, by what they are."""


def _runs(samples: "DataFrame", logs: Sequence[Log]) -> Part:
    """Return one row per log."""
    heads = ["Arm", "Log", "Started", "Ended", "Samples", "Epochs", "Made with"]
    rows = []
    places = samples.groupby("log_path").indices
    for log in logs:
        own, spec = samples.iloc[places.get(log.path, [])], log.header.eval
        packages = ", ".join(f"{name} {version}" for name, version in spec.packages.items())
        settings = {
            name: _values(own, column) if column else packages
            for name, column in _MADE_WITH.items()
        }
        settings["grader"] = settings["grader"] or _values(own, "graders")
        shown = "; ".join(f"{name} {value}" for name, value in settings.items() if value)
        started = spec.created[:16].replace("T", " ")
        counts = (str(len(own)), str(own["epoch"].nunique()))
        rows.append(
            [_values(own, "arm"), log.name, started, str(log.header.status), *counts, shown]
        )
    note = (
        "Task version and digests change whenever something changes that decides results. "
        "Every figure of this page is in figures.json, computed from the frames of "
        "compression_eval.analysis."
    )
    return Part("Runs", [Table(heads, rows, texts=(1, 6)), note], id="runs")


def _values(samples: "DataFrame", column: str) -> str:
    """Return the distinct values of a column, digests shortened."""
    values = list(map(str, dict.fromkeys(samples[column].dropna())))
    if column.endswith("_digest"):
        return ", ".join(value[:12] for value in values)
    return "; ".join(values)


def stage_meanings(of: Figures) -> Table:
    """Return the meanings of the stages that occur."""
    return meanings(stage for each in of.of_arm.values() for stage in each.survival.stages)


# ----- Markdown


def markdown(of: Figures, remarks: Iterable[str], found: Sequence[Part]) -> str:
    """Return the report as Markdown, ready to be pasted into a pull request."""
    lines = ["## Compression report"]
    lines += [pasted(opening(of), 2000)] if opening(of) else []
    lines += [f"**{pasted(note, 400)}**" for note in remarks]
    for part in found:
        if part.pasted:
            lines += _markdown(part, 3, MAX_ROWS)
    return "\n\n".join(lines) + "\n"


def _markdown(part: Part, level: int, most: int) -> Iterator[str]:
    """Yield the blocks of a part; its smaller parts have fewer rows."""
    yield f"{'#' * level} {pasted(part.title, 200)}"
    for block in part.blocks:
        if isinstance(block, Part):
            yield from _markdown(block, level + 1, MAX_ROWS // 3)
        elif isinstance(block, str):
            yield pasted(block, 2000)
        else:
            rows = [list(map(_one_line, row)) for row in block.cells[:most]]
            yield markdown_table(block.heads, rows, partial(pasted, limit=400))
            if (more := len(block.rows) - most) > 0:
                yield f"And {more} more (figures.json)."


def _one_line(cell: Cell) -> str:
    below = "; ".join(filter(None, cell.below.split("\n")))
    return f"{cell.text}{_bracketed(below)}"
