"""The sections of a report: the tables and sentences that its page and its Markdown are made of."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import yaml
from pydantic import BaseModel, ConfigDict

from compression_eval.analysis.comparison.changes import MISS
from compression_eval.analysis.comparison.measures import (
    HEADLINE,
    RECALL,
    SHARES,
    SURVIVAL,
    shown_change,
    shown_p,
)
from compression_eval.analysis.logs import Log
from compression_eval.analysis.report.figures import (
    GROUPS,
    TABLE_MEASURES,
    ArmFigures,
    Failures,
    Figures,
    Miss,
    Row,
    Value,
)
from compression_eval.analysis.report.tradeoff import Frontier, Pair, ReportedArm
from compression_eval.analysis.spending import SPENDING_NOTE, spending_table
from compression_eval.analysis.statistics.intervals import Limits
from compression_eval.analysis.statistics.significance import DEFAULT_THRESHOLD
from compression_eval.grading.rubric import KNOWLEDGE, MAX_SCORE, OVERALL, structure
from compression_eval.text.markdown import pasted
from compression_eval.text.markdown import table as markdown_table
from compression_eval.text.tables import Cell, Table

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

MAX_PAIRS, MAX_MISSES = 30, 10
"""Rows of the Markdown, misses per arm; all of them are in the figures and on the page."""

_DIGESTS = {
    "fixture_digest": "fixture",
    "bank_digest": "probe bank",
    "rubric_digest": "rubric",
    "question_digest": "words around the question",
}
_DIGITS = 12
_SHARED = "every arm was asked and no grader failed on"


class Published(BaseModel):
    """Published reference figures, to stand beside a table; never a claim of ours."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    class Method(BaseModel):
        """One method's figures; scores 0 to 5, `tokens_removed` a share of 1."""

        model_config = ConfigDict(extra="forbid", frozen=True)

        method: str
        overall: float
        accuracy: float
        context_awareness: float
        artifact_trail: float
        completeness: float
        continuity: float
        instruction_following: float
        tokens_removed: float

    source: str
    conditions: str
    methods: list[Method]


@cache
def published() -> Published:
    """Return the published figures."""
    text = (files(__package__) / "published.yaml").read_text(encoding="utf-8")
    return Published.model_validate(yaml.safe_load(text))


# ----- numbers


def title_of(measure: str) -> str:
    """Return a measure's title as a column head."""
    return TITLES.get(measure, measure.capitalize())


def decimal(value: float | None, digits: int = 2) -> str:
    """Return a number; a dash for what is not known."""
    return DASH if value is None or math.isnan(value) else f"{value:.{digits}f}"


def whole(value: float | None) -> str:
    """Return a count with thousands set apart; a dash for what is not known."""
    return DASH if value is None or math.isnan(value) else f"{value:,.0f}"


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share in percent; a dash for what is not known."""
    return DASH if share is None or math.isnan(share) else f"{share * 100:.{digits}f} %"


def counted(number: int, noun: str) -> str:
    """Return a number of things that have a regular plural."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


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
        return ""
    return f"{percent(limits[0])} to {percent(limits[1])}"


def _capped(value: Value, probes: int) -> Cell:
    """Return a mean, with the number of its probes where it is smaller than that of its row."""
    return Cell(decimal(value.value), f"({value.probes})" if value.probes < probes else "")


# ----- sentences


def opening(of: Figures) -> str:
    """Return what the arms kept of these conversations; empty if no probe is common to all."""
    known = [
        (arm, found[KNOWLEDGE], found.get(SURVIVAL))
        for arm in of.arms
        if KNOWLEDGE in (found := of.of_arm[arm.name].estimates)
    ]
    told = [
        f"{arm.name} ({whole(of.of_arm[arm.name].costs['tokens_after'])} tokens)"
        + (f" keeps {percent(kept.mean)} of the facts and" if kept else "")
        + f" reaches {knowledge.mean:.2f} of 5"
        for arm, knowledge, kept in known
        if not arm.role
    ]
    if not of.probes[0] or not told:
        return ""
    limits = [f"{arm.name} {knowledge.mean:.2f}" for arm, knowledge, _ in known if arm.role]
    conversations = max(knowledge.fixtures for _, knowledge, _ in known)
    here = "this conversation" if conversations == 1 else f"these {conversations} conversations"
    text = f"On {here} ({counted(of.probes[0], 'probe')}), {'; '.join(told[:MAX_OPENING])}"
    text += f"; and {len(told) - MAX_OPENING} more" if len(told) > MAX_OPENING else ""
    return f"{text} ({', '.join(limits)})." if limits else f"{text}."


def findings(frontier: Frontier, same_answers: Sequence[Sequence[str]] = ()) -> list[str]:
    """Return the findings about the arms, a sentence for each size of states.

    Args:
        frontier: The arms.
        same_answers: Those that gave the same answers, as in `Figures`.
    """
    failed = {name: f" ({each.failed})" for name, each in frontier.whole.items() if each.failed}
    quality = {
        point.arm: f"{point.quality:.2f}{failed.get(point.arm, '')}" for point in frontier.points
    }
    lines = []
    conversations = frontier.conversations[0]
    here = "this conversation" if conversations == 1 else f"these {conversations} conversations"
    for size in frontier.sizes:
        digits = 1 - math.floor(math.log10(size.tokens)) if size.tokens >= 1 else 0
        text = (
            f"At about {round(size.tokens, digits):,.0f} tokens: {size.best} reaches a knowledge "
            f"of {size.quality:.2f} of 5 on {here}{failed.get(size.best, '')}"
        )
        if size.dominated_by:
            text += f"; dominated by {size.dominated_by} {quality[size.dominated_by]}"
        same = {arm for names in same_answers if size.best in names for arm in names}
        if alike := [arm for arm in (*size.close, *size.unclear, *size.worse) if arm in same]:
            text += f"; the same answers, byte by byte: {', '.join(alike)}"
        for label, arms in (
            (f"less than {DEFAULT_THRESHOLD:g} away from it", size.close),
            ("not distinguishable from it in these runs", size.unclear),
            ("worse", size.worse),
            ("lower, but fails less often", size.fails_less),
        ):
            if told := [f"{arm} {quality[arm]}" for arm in arms if arm not in same]:
                text += f"; {label}: {', '.join(told)}"
        lines.append(f"{text}.")
    return lines


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
            "Some samples have no score and count as 0 in the tables (see Failures): "
            f"{', '.join(failing)}"
        )
    yield from notes_on_ranks(of)
    if of.differing:
        yield f"These arms cannot be compared just so. They differ in {'; '.join(of.differing)}"


def notes_on_ranks(of: Figures) -> Iterator[str]:
    """Yield the reasons why the table alone does not rank the arms."""
    shared, asked = of.probes
    if not shared:
        yield f"No probes that {_SHARED}: each arm stands on its own, so do not rank them"
    elif shared < asked:
        yield f"Arms are held together on the {shared} of {asked} probes that {_SHARED}"
    if of.frontier.whole:
        probes, (answered, conversations) = of.frontier.probes, of.frontier.conversations
        yield (
            f"First lines, chart of quality, standing and pairs: knowledge and tokens on the "
            f"{probes} of {shared} probes, in {answered} of {conversations} conversations, that "
            "all arms there have an answer to"
            + (f"; left out, since they fail too often: {out}" if (out := left_out(of)) else "")
        )
    if of.several_cuts:
        yield f"Several cuts of one conversation are averaged: {', '.join(of.several_cuts[:5])}"
    for names in of.same_answers:
        yield f"{' and '.join(names)} gave the same answers, byte by byte: nothing was compared"
    # Where nothing varies, nothing leads by chance.
    if (lead := of.frontier.lead) and round(lead.by_chance, 2):
        yield (
            f"{lead.arm} is the best of {lead.arms} arms, {lead.above:.2f} above their mean. Of "
            f"as many equal arms the best would be {lead.by_chance:.2f} above it by chance, and in "
            f"one report of 20 more than {lead.seldom_more:.2f}"
        )
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
    """Return the arms that failed too often to stand beside others, and how often."""
    names = of.frontier.left_out
    return ", ".join(f"{arm.name} ({arm.failed})" for arm in of.arms if arm.name in names)


# ----- tables


def summary(of: Figures) -> Table:
    """Return one row per arm with the deciding figures."""
    beside = (OVERALL, RECALL)
    heads = ["Arm", "Knowledge", "Failed", "Retention", "Tokens left", "Standing"]
    heads += [*map(title_of, (*beside, SURVIVAL)), "Removed"]
    standing = {point.arm: point for point in of.frontier.points}
    rows: list[list[str | Cell]] = []
    for arm in of.arms:
        figures, point = of.of_arm[arm.name], standing.get(arm.name)
        named = [each for each in _settings(arm) if each not in arm.name]
        marks = ["no language model"] if arm.offline and not of.offline else []
        marks += ["self-graded"] if arm.self_graded else []
        kept = of.retained[arm.name].measures.get(KNOWLEDGE) if arm.name in of.retained else None
        by = point.dominated_by if point else ""
        place = f"dominated by {by}" if by else "not dominated" if point else DASH
        place = "fails too often" if arm.name in of.frontier.left_out else place
        tokens = Cell(whole(point.tokens if point else figures.costs["tokens_after"]))
        if own := of.frontier.whole.get(arm.name):
            shared = of.frontier.conversations[1]
            some = f"{own.conversations} of {shared} conversations"
            tokens = Cell(whole(own.tokens), below=some * (own.conversations < shared))
        failures = figures.failures
        failed, states = failures.samples - failures.scored, sum(failures.failed_states.values())
        below = [f"{states} of {failures.states} states"] if states else []
        below += [f"{failures.suspect} suspect"] if failures.suspect else []
        leading = figures.estimates.get(KNOWLEDGE)
        seen = leading.here if leading and not leading.no_spread else None
        rows.append(
            [
                Cell(arm.name, ", ".join(marks), ", ".join(named)),
                Cell(_mean(figures, KNOWLEDGE), below=between(seen, KNOWLEDGE) if seen else ""),
                Cell(f"{failed} of {failures.samples}" if failed else "0", below="\n".join(below)),
                Cell(
                    percent(kept.share if kept else None),
                    below=_percents(kept.here if kept else None),
                ),
                tokens,
                f"control: {arm.role}" if arm.role else place,
                *(_mean(figures, name) for name in beside),
                Cell(_mean(figures, SURVIVAL)),
                percent(figures.costs["removed"], 1),
            ]
        )
    return Table(heads, rows, texts=(heads.index("Standing"),))


def _settings(arm: ReportedArm) -> list[str]:
    """Return an arm's arguments, with a mark at those of which a target takes only the ratio."""
    settings = arm.settings.split(", ")
    parts = ("tail_tokens=", "summary_tokens=")
    if not any(each.startswith("target_tokens=") for each in settings):
        return settings
    return [f"{each} (as a ratio)" if each.startswith(parts) else each for each in settings]


def _mean(figures: ArmFigures, measure: str) -> str:
    estimate = figures.estimates.get(measure)
    return _shown(measure, estimate.mean) if estimate else DASH


def scores(rows: Sequence[Row]) -> Table:
    """Return an arm's table by conversation."""
    cells: list[list[str | Cell]] = [
        [row.label, str(row.probes), *(_capped(row.cells[m], row.probes) for m in TABLE_MEASURES)]
        for row in rows
    ]
    return Table(["Fixture", "Probes", *map(title_of, TABLE_MEASURES)], cells, total=len(rows) > 1)


def intervals(of: Figures) -> Table:
    """Return the means of every measure with both intervals."""
    rows: list[list[str | Cell]] = []
    for arm, figures in of.of_arm.items():
        row: list[str | Cell] = [arm]
        for measure in HEADLINE:
            estimate = figures.estimates.get(measure)
            if estimate is None:
                row.append(DASH)
                continue
            here = "no spread" if estimate.no_spread else between(estimate.here, measure)
            below = f"{here}\n{between(estimate.elsewhere, measure)}"
            row.append(Cell(_shown(measure, estimate.mean), below=below))
        rows.append(row)
    return Table(["Arm", *map(title_of, HEADLINE)], rows)


def retention(of: Figures) -> Table | None:
    """Return the normalised retention on every measure; None without controls."""
    failed = {arm.name: arm.failed or "0" for arm in of.arms}
    rows: list[list[str | Cell]] = []
    for name, retained in of.retained.items():
        row: list[str | Cell] = [name, str(retained.conversations), failed[name]]
        for kept in map(retained.measures.get, HEADLINE):
            if kept is None:
                row.append(DASH)
            elif kept.share is None:
                row.append(Cell("close", below=f"{kept.floor:.2f}, {kept.ceiling:.2f}"))
            else:
                both = (_percents(kept.here) or DASH, _percents(kept.elsewhere) or DASH)
                row.append(Cell(percent(kept.share), below="\n".join(both)))
        rows.append(row)
    heads = ["Arm", "Conversations", "Failed", *map(title_of, HEADLINE)]
    return Table(heads, rows) if rows else None


_ONCE = " (*: an arm was compressed only once, so by the spread between conversations.)"


def pairs(of: Figures) -> Table | None:
    """Return the difference between every two arms; None if there are no two."""

    def row(pair: Pair) -> list[str]:
        open_ = pair.verdict == "cannot tell"
        certain = pair.p_value is None and not open_
        same = any({pair.higher, pair.lower} <= set(names) for names in of.same_answers)
        return [
            pair.higher,
            pair.lower,
            shown_change(pair.change, KNOWLEDGE, DEFAULT_THRESHOLD),
            "exact" if certain else between(pair.interval) + " *" * pair.over_conversations,
            shown_p(pair.p_value).replace("-", DASH),
            "the same answers" if same else pair.why,
        ]

    heads = ["Higher", "Lower", "Difference", "95 % interval", "p (Holm)", "Verdict"]
    rows = [row(pair) for pair in of.frontier.pairs]
    return Table(heads, rows, texts=(1, 5)) if rows else None


def groups(of: Figures) -> Iterator[tuple[str, Table]]:
    """Yield a table for each property of probes that varies: an arm per row."""
    for column, title in GROUPS.items():
        names = sorted({name for each in of.of_arm.values() for name in each.groups[column]})
        if len(names) < 2:
            continue

        rows: list[list[str | Cell]] = []
        for arm, figures in of.of_arm.items():
            values = map(figures.groups[column].get, names)
            cells = [Cell(decimal(v.value), f"({v.probes})") if v else Cell(DASH) for v in values]
            rows.append([arm, *cells])
        yield title, Table(["Arm", *names], rows)


def misses(missed: Sequence[Miss]) -> Table:
    """Return an arm's misses."""
    heads = ["Conversation", "Probe", "Knowledge", "Facts not in the answer", "Worst criterion"]
    rows = [
        [miss.unit, miss.probe, decimal(miss.score), ", ".join(miss.lost), _worst(miss)]
        for miss in missed
    ]
    return Table(heads, rows, texts=(1, 3, 4))


def _worst(miss: Miss) -> str:
    return f"{miss.criterion}: {miss.reason}" if miss.criterion else ""


_COSTS: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("Compressions", "compressions", str),
    ("Calls", "calls", lambda calls: decimal(calls, 1)),
    ("Tokens in", "input_tokens", whole),
    ("Tokens out", "output_tokens", whole),
    ("Seconds", "seconds", decimal),
    ("Answer in", "answer_input_tokens", whole),
    ("out", "answer_output_tokens", whole),
    ("cached", "answer_cached_tokens", whole),
    ("Grader in", "grader_input_tokens", whole),
    ("out", "grader_output_tokens", whole),
    ("cached", "grader_cached_tokens", whole),
    ("All tokens", "total_tokens", whole),
    ("Dollars", "dollars", decimal),
)


def costs(of: Figures) -> Table:
    """Return what every arm costs."""
    rows = [
        [arm, *(put(figures.costs[name]) for _, name, put in _COSTS)]
        for arm, figures in of.of_arm.items()
    ]
    return Table(["Arm", *(head for head, _, _ in _COSTS)], rows)


def failures(of: Figures) -> Table:
    """Return what failed in every arm."""
    heads = ["Arm", "Scored", "Abstained", "Failed states", "Suspect states", "Bound"]
    heads += ["How they ended", "Samples without a score"]
    rows = []
    for arm, figures in of.of_arm.items():
        totals = figures.failures
        ended, reasons = (
            ", ".join(f"{name} {n}" for name, n in counts.items())
            for counts in (totals.failed_states, totals.reasons)
        )
        states = f"{sum(totals.failed_states.values())} of {totals.states}"
        numbers = (str(totals.abstained), states, str(totals.suspect), decimal(totals.lower_bound))
        rows.append([arm, f"{totals.scored} of {totals.samples}", *numbers, ended, reasons])
    return Table(heads, rows, texts=(6, 7))


def reference(beside: Published) -> Table:
    """Return the published figures."""
    dimensions = structure().dimensions
    heads = ["Method", *map(title_of, (*dimensions, OVERALL)), "Mean of the six", "Tokens removed"]
    rows = []
    for method in beside.methods:
        own = [float(getattr(method, name)) for name in dimensions]
        # The mean of the dimensions is how we compute an overall score.
        numbers = map(decimal, (*own, method.overall, sum(own) / len(own)))
        rows.append([method.method, *numbers, percent(method.tokens_removed, 1)])
    return Table(heads, rows)


def runs(samples: "DataFrame", logs: Sequence[Log]) -> Table:
    """Return one row per log."""
    heads = ["Arm", "Log", "Started", "Ended", "Samples", "Epochs", "Made with"]
    rows = []
    places = samples.groupby("log_path").indices
    for log in logs:
        own = samples.iloc[places.get(log.path, [])]

        def text(column: str, own: "DataFrame" = own) -> str:
            return "; ".join(str(value) for value in dict.fromkeys(own[column].dropna()))

        settings = {
            "model": text("model"),
            "compressor model": text("compressor_model"),
            "grader": text("graded_by") or text("graders"),
            "packages": ", ".join(f"{k} {v}" for k, v in log.header.eval.packages.items()),
            "task version": text("version"),
            "strategies' prompts": text("prompts_digest")[:_DIGITS],
            "arguments": text("compressor_args"),
        }
        started = log.header.eval.created[:16].replace("T", " ")
        counts = (str(len(own)), str(own["epoch"].nunique()))
        shown = "; ".join(f"{name} {value}" for name, value in settings.items() if value)
        rows.append([text("arm"), log.name, started, str(log.header.status), *counts, shown])
    return Table(heads, rows, texts=(1, 6))


def digests(samples: "DataFrame") -> Table:
    """Return what decided the results of each conversation, every combination once."""
    columns = ["unit", "rubric_language", "grader_context", "criteria", "token_counter"]
    heads = ["Conversation", "Rubric in", "Grader sees", "Criteria", "Tokens counted with"]
    kept = samples.loc[samples["rubric_digest"].notna(), [*columns, *_DIGESTS]]
    kept = kept.drop_duplicates().sort_values("unit").fillna("").astype(str)
    for name in _DIGESTS:
        kept[name] = kept[name].str[:_DIGITS]
    return Table([*heads, *_DIGESTS.values()], kept.to_numpy().tolist())


# ----- Markdown


def markdown(of: Figures, remarks: Iterable[str], beside: Published | None) -> str:
    """Return the report as Markdown, ready to be pasted into a pull request."""
    parts = ["## Compression report"]
    first = [*filter(None, [opening(of)]), *findings(of.frontier, of.same_answers)]
    parts.append("\n".join(f"- {pasted(line, 2000)}" for line in first))
    parts += [f"**{pasted(note, 400)}**" for note in remarks]
    for arm in of.arms:
        parts += _markdown_arm(arm, of.of_arm[arm.name])
    if (table := retention(of)) is not None:
        place = table.heads.index(title_of(KNOWLEDGE))
        rows = []
        for cells in table.cells:
            limits = [*cells[place].below.split("\n"), DASH][:2]
            rows.append([*(cell.text for cell in cells[: place + 1]), *limits])
        heads = [*table.heads[:place], "Retention", "95 % here", "95 % for new conversations"]
        parts += [
            "### Retention between floor and ceiling",
            markdown_table(heads, rows, pasted),
            "(arm - floor) / (ceiling - floor) of knowledge, a ratio of means, failures as 0.",
        ]
    if (table := pairs(of)) is not None:
        parts.append("### Every two arms")
        parts.append(markdown_table(table.heads, table.plain[:MAX_PAIRS], pasted))
        if (more := len(table.rows) - MAX_PAIRS) > 0:
            parts.append(f"And {more} more with smaller differences (figures.json).")
        parts.append(
            f"Knowledge on the {of.frontier.probes} probes that every arm has; 95 % on these "
            "conversations, p adjusted by Holm's method over all pairs; verdicts on the higher arm."
            + any(pair.over_conversations for pair in of.frontier.pairs)
            * _ONCE
        )
    if (spent := spending_table(of.spending)) is not None:
        parts += ["### Tokens per correct answer", markdown_table(spent.heads, spent.plain, pasted)]
        parts.append(SPENDING_NOTE)
    if beside is not None:
        table = reference(beside)
        parts.append("### Published figures, not measured here")
        parts.append(markdown_table(table.heads, table.plain))
        parts.append(f"{beside.source}: {beside.conditions}.")
    parts.append(
        f"Formula: {of.formula}. Bracketed: probes behind a cell, where fewer than in its row."
    )
    return "\n\n".join(parts) + "\n"


def _markdown_arm(arm: ReportedArm, figures: ArmFigures) -> Iterator[str]:
    yield f"### {pasted(arm.name, 200)}"
    graded = f"grader {pasted(arm.graders, 200)}" + (" (self-graded)" if arm.self_graded else "")
    yield f"model {pasted(arm.model, 120)}, {graded}, {counted(arm.epochs, 'epoch')}"
    if arm.settings:
        yield f"Arguments: {pasted(', '.join(_settings(arm)), 600)}"
    rows = []
    for row in figures.table:
        cells = [_capped(row.cells[measure], row.probes) for measure in TABLE_MEASURES]
        numbers = [f"{cell.text} {cell.note}".rstrip() for cell in cells]
        rows.append([f"{row.label} ({counted(row.probes, 'probe')})", *numbers])
    yield markdown_table(["Fixture", *map(title_of, TABLE_MEASURES)], rows, pasted)
    yield f"{_compression(figures.costs)}  \n{_failed(figures.failures)}"
    if figures.survival.fact_agreement is not None:
        agreement = percent(figures.survival.fact_agreement)
        yield f"Facts in states: reader and look-up agree on {agreement}."
    if arm.role == "floor":
        yield "Misses of the floor are not listed: it knows nothing of the history."
    elif not figures.misses:
        yield f"No probe under {MISS}."
    else:
        yield f"Misses (probes under {MISS}): {len(figures.misses)}"
        more = len(figures.misses) - MAX_MISSES
        lines = []
        for miss in figures.misses[:MAX_MISSES]:
            lost = f"not in the answer: {', '.join(miss.lost)}" if miss.lost else ""
            why = "; ".join(pasted(part, 400) for part in (lost, _worst(miss)) if part)
            name = f"{pasted(miss.unit, 120)} / {pasted(miss.probe, 120)}"
            lines.append(f"- {name} **{miss.score:.2f}** {why}")
        yield "\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])])


def _compression(costs: Mapping[str, float]) -> str:
    return (
        f"Compression, means over conversations: {whole(costs['tokens_before'])} to "
        f"{whole(costs['tokens_after'])} tokens, {percent(costs['removed'], 1)} of each removed "
        f"({counted(int(costs['compressions']), 'state')}). "
        f"Cost per compression: {decimal(costs['calls'], 1)} calls, "
        f"{whole(costs['input_tokens'])} tokens in, {whole(costs['output_tokens'])} out, "
        f"{decimal(costs['seconds'])} s; per answer: {whole(costs['answer_input_tokens'])} in, "
        f"{whole(costs['answer_output_tokens'])} out."
        + ("" if math.isnan(costs["dollars"]) else f" All of it: ${costs['dollars']:,.2f}.")
    )


def _failed(failures: Failures) -> str:
    text = f"Scored: {failures.scored} of {counted(failures.samples, 'sample')}"
    if failures.abstained:
        text += f", {failures.abstained} of them abstained"
    if states := sum(failures.failed_states.values()):
        text += f"; {states} of {counted(failures.states, 'compression')} failed"
    if failures.suspect:
        text += f"; {counted(failures.suspect, 'state')} suspect"
    if not failures.reasons:
        return text + "."
    reasons = ", ".join(f"{pasted(name, 120)} {n}" for name, n in failures.reasons.items())
    return (
        f"{text}; without a score: {reasons}. With all of those as 0, its knowledge is "
        f"{decimal(failures.lower_bound)}."
    )
