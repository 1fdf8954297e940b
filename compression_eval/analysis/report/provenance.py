"""What a report was made from, and what a reader must know before its figures."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compression_eval.analysis.logs import Log
from compression_eval.analysis.report.figures import Figures
from compression_eval.analysis.report.grids import Grid, Shown
from compression_eval.grading.rubric import KNOWLEDGE

if TYPE_CHECKING:
    from pandas import DataFrame

_DIGESTS = {
    "fixture_digest": "fixture",
    "bank_digest": "probe bank",
    "rubric_digest": "rubric",
    "question_digest": "words around the question",
}
_SHOWN_DIGITS = 12
_SHARED = "every arm was asked and no grader failed on"


def notes(of: Figures, logs: Sequence[Log]) -> list[str]:
    """Return what stands above everything else, one line each; often nothing."""
    found = []
    offline = [arm.name for arm in of.arms if arm.offline]
    if of.offline:
        found.append(
            "No language model was involved: the embedded lexical model answered and graded. "
            "Figures are a lower bound and a regression check."
        )
    elif offline:
        found.append(f"No language model was involved in: {', '.join(offline)}")
    judged = [arm.name for arm in of.arms if arm.self_graded]
    if judged:
        found.append(
            f"Self-graded, which flatters: a model judged its own answers in {', '.join(judged)}"
        )
    found += [
        f"{log.name}: the run ended early ({log.header.status}); its figures are of what it got to"
        for log in logs
        if not log.complete
    ]
    failing = [f"{arm.name} ({arm.failed})" for arm in of.arms if arm.failed]
    if failing:
        found.append(
            f"Some samples have no score and count as 0 (see Failures): {', '.join(failing)}"
        )
    found += _beside(of)
    if of.differing:
        found.append(
            f"These arms cannot be compared just so. They differ in {'; '.join(of.differing)}"
        )
    return found


def formula(of: Figures) -> str:
    """Return what the leading figures are means of."""
    shared, asked = of.probes
    own = f"the {shared} of {asked} probes that {_SHARED}" if shared else "its own probes"
    return (
        f"Knowledge: 0 to 5, with its 95 % interval on these conversations; every arm on {own}, "
        "failures as 0, every conversation counting the same. Tokens "
        "left: on the conversations of which every arm has a state."
    )


def _beside(of: Figures) -> Iterator[str]:
    """Yield what keeps the arms from being read straight off the table."""
    shared, asked = of.probes
    if not shared:
        yield f"No probes that {_SHARED}: each arm stands on its own, so do not rank them"
    elif shared < asked:
        yield f"Arms are held together on the {shared} of {asked} probes that {_SHARED}"
    if of.several_cuts:
        yield f"Several cuts of one conversation are averaged: {', '.join(of.several_cuts[:5])}"
    for names in of.same_answers:
        yield f"{' and '.join(names)} gave the same answers, byte by byte: nothing was compared"
    lead = of.frontier.lead
    if lead is not None:
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


def runs(samples: "DataFrame", logs: Sequence[Log]) -> Grid:
    """Return one row per log."""
    heads = ["Arm", "Log", "Started", "Ended", "Samples", "Epochs", "Made with"]
    rows = []
    for log in logs:
        own = samples[samples["log_path"] == log.path]
        packages = ", ".join(
            f"{name} {version}" for name, version in log.header.eval.packages.items()
        )
        cells = [
            _of(own, "arm"),
            log.name,
            log.header.eval.created[:16].replace("T", " "),
            str(log.header.status),
            str(len(own)),
            str(own["epoch"].nunique()),
        ]
        made = {
            "model": _of(own, "model"),
            "compressor model": _of(own, "compressor_model"),
            "grader": _of(own, "graded_by") or _of(own, "graders"),
            "packages": packages,
            "task version": _of(own, "version"),
            "strategies' prompts": _of(own, "prompts_digest")[:_SHOWN_DIGITS],
            "arguments": _of(own, "compressor_args"),
        }
        told = "; ".join(f"{name} {value}" for name, value in made.items() if value)
        rows.append([Shown(cell) for cell in (*cells, told)])
    return Grid(heads, rows, texts=frozenset({1, 6}))


def digests(samples: "DataFrame") -> Grid:
    """Return what decided the results of each conversation, every combination once."""
    columns = ["unit", "rubric_language", "grader_context", "criteria", "token_counter"]
    heads = ["Conversation", "Rubric in", "Grader sees", "Criteria", "Tokens counted with"]
    kept = samples[[*columns, *_DIGESTS]]
    graded = kept[kept["rubric_digest"].notna()].drop_duplicates().sort_values("unit")
    return Grid(
        [*heads, *_DIGESTS.values()],
        [
            [
                *(Shown(_text(value)) for value in row[: len(columns)]),
                *(Shown(_text(value)[:_SHOWN_DIGITS]) for value in row[len(columns) :]),
            ]
            for row in graded.itertuples(index=False, name=None)
        ],
    )


def _of(rows: "DataFrame", column: str) -> str:
    return "; ".join(str(value) for value in dict.fromkeys(rows[column].dropna()))


def _text(value: object) -> str:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if missing else str(value)
