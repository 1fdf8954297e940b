"""Survival of facts by cycle and by age, and the stages at which they were lost."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from compression_eval.analysis.report.charts.style import (
    NARROW,
    Chart,
    Look,
    finished,
    name_rows,
    new_figure,
    row_height,
)
from compression_eval.analysis.report.figures import Figures
from compression_eval.analysis.report.survival import Share, Survival
from compression_eval.analysis.report.wording import percent
from compression_eval.facts.life import AGE_GROUPS, Stage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STAGES: Mapping[str, tuple[str, str]] = {
    "used": ("#0072B2", ""),
    "verbatim": ("#56B4E9", ""),
    "answered": ("#56B4E9", "//"),
    "answered_not_found": ("#9AD0F0", ".."),
    "survived": ("#B9DDF4", ""),
    "unused": ("#F0E442", ""),
    "unanswered": ("#F0E442", "//"),
    "never_fed": ("#E69F00", ""),
    "superseded": ("#CC79A7", ""),
    "distorted": ("#CC79A7", "//"),
    "dropped": ("#D55E00", ""),
    "lost": ("#8A3B00", ""),
    "unknown": ("#CCCCCC", ""),
    "not_in_history": ("#CCCCCC", "//"),
    "compression_failed": ("#555555", ""),
}
"""Colour and hatch; blue is in the answer, yellow in the state only, orange to brown is lost."""


def survival(of: Figures, looks: Mapping[str, Look], narrow: bool = False) -> Chart | None:
    """Draw the share of facts in the state, by age and by cycle, a cell for each arm."""
    arms = [name for name in looks if of.of_arm[name].survival.by_age]
    if not arms:
        return None
    ages = [
        group
        for group in AGE_GROUPS
        if any(group in of.of_arm[name].survival.by_age for name in arms)
    ]
    cycles = sorted(
        {cycle for name in arms for cycle in of.of_arm[name].survival.by_cycle},
        key=lambda name: (len(name), name),
    )
    labels = [looks[name].label for name in arms]
    height = row_height(labels, least=2.2, each=0.36) + 0.3
    if narrow:
        figure = new_figure(NARROW, 2 * height)
        first, second = figure.subplots(2, 1)
        second.set_yticks(_middles(len(labels)), labels, fontsize=9)
        second.set_ylim(len(labels), 0)
    else:
        figure = new_figure(10, height)
        first, second = figure.subplots(
            1, 2, sharey=True, width_ratios=[max(len(ages), 2), max(len(cycles), 1.5)]
        )
    _cells(first, [of.of_arm[name].survival.by_age for name in arms], ages)
    first.set_title("by age: part of the history", loc="left")
    first.set_xticks(
        _middles(len(ages)),
        [group.replace(" quarter", "\nquarter") for group in ages],
        fontsize=8 if narrow else None,
    )
    _cells(second, [of.of_arm[name].survival.by_cycle for name in arms], cycles)
    second.set_title("by cycles", loc="left")
    second.set_xticks(_middles(len(cycles)), cycles)
    first.set_yticks(_middles(len(labels)), labels, fontsize=9)
    first.set_ylim(len(labels), 0)
    return finished(
        figure,
        "survival",
        "Facts that survive",
        "Share of the expected facts that are in the state. First quarter: said first in the "
        "oldest part of the history. Where a compression failed, none of them is. "
        + _who_says({name: of.of_arm[name].survival for name in arms}),
    )


def _who_says(arms: Mapping[str, Survival]) -> str:
    """Return by whose word facts are in the states of some arms."""
    if not any(found.read for found in arms.values()):
        return "Looked up in the state; no model read it."
    facts = sum(sum(found.stages.values()) for found in arms.values())
    agreed = ", ".join(
        f"{name} {percent(found.fact_agreement)}"
        for name, found in arms.items()
        if found.fact_agreement is not None
    )
    said = f"By the reader's word on {sum(found.read for found in arms.values())} of {facts} facts"
    return f"{said}, else looked up." + (f" The look-up agrees on: {agreed}." if agreed else "")


def stages(of: Figures, looks: Mapping[str, Look], narrow: bool = False) -> Chart | None:
    """Draw what became of the facts of every arm, as shares that add up to all."""
    arms = [name for name in looks if of.of_arm[name].survival.stages]
    if not arms:
        return None
    present = [
        stage for stage in _STAGES if any(stage in of.of_arm[name].survival.stages for name in arms)
    ]
    labels = [looks[name].label for name in arms]
    height = row_height(labels, least=2.0, each=0.36)
    figure = new_figure(NARROW if narrow else 10, height + (1.2 if narrow else 0.6))
    axes = figure.subplots()
    for place, name in enumerate(arms):
        counts = of.of_arm[name].survival.stages
        total, left = sum(counts.values()), 0.0
        for stage in present:
            share = counts.get(stage, 0) / total
            colour, hatch = _STAGES[stage]
            axes.barh(
                place,
                share,
                left=left,
                height=0.7,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                linewidth=0.8,
                label=stage.replace("_", " ") if place == 0 else None,
            )
            if share >= (0.13 if narrow else 0.06):
                dark = colour in {"#0072B2", "#D55E00", "#8A3B00", "#555555"}
                axes.text(
                    left + share / 2, place, f"{share:.0%}", ha="center", va="center", fontsize=8,
                    color="white" if dark else "black",
                )  # fmt: skip
            left += share
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    name_rows(axes, labels)
    columns = min(len(present), 2 if narrow else 6)
    figure.legend(loc="outside lower center", ncols=columns, fontsize=9)
    return finished(
        figure,
        "stages",
        "Where facts were lost",
        "Every expected fact of every answer by what became of it. Blue: in the answer. "
        "Yellow: in the state, not in the answer. Orange to brown: not in the state. "
        "Grey: not known, or no state.",
    )


def _cells(axes: "Axes", rows: Sequence[Mapping[str, Share]], columns: Sequence[str]) -> None:
    shares: list[list[float]] = [
        [row[column].share if column in row else float("nan") for column in columns] for row in rows
    ]
    colours: Any = _scale()
    # Drawn as shapes: an image would be pixels inside of the SVG.
    axes.pcolormesh(shares, cmap=colours, vmin=0, vmax=1, edgecolors="white", linewidth=2)
    for place, row in enumerate(rows):
        for number, column in enumerate(columns):
            if column not in row:
                axes.text(number + 0.5, place + 0.5, "–", ha="center", va="center", color="#555555")
                continue
            found = row[column]
            axes.text(
                number + 0.5,
                place + 0.5,
                f"{found.share:.0%}",
                ha="center",
                va="center",
                fontsize=9,
                color="white" if found.share > 0.55 else "black",
            )
    axes.tick_params(axis="both", length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _middles(count: int) -> list[float]:
    return [place + 0.5 for place in range(count)]


def _scale() -> object:
    """Return a scale from pale to dark blue that keeps its order in grey, too."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("survival", ["#F2F5F9", "#7FB2D9", "#08457E"])


assert set(_STAGES) == set(get_args(Stage))  # noqa: S101  (a new stage needs a colour)
