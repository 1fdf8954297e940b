"""The tables of docs/findings.md are those of the logs next to it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from compression_eval.analysis.comparison.measures import shown_p
from compression_eval.analysis.frames import facts_frame, samples_frame
from compression_eval.analysis.logs import find_logs
from compression_eval.analysis.report.figures import Figures, figures, read_frames
from compression_eval.analysis.statistics.significance import RECALL_OF_A_POINT
from compression_eval.cli import main
from compression_eval.grading.rubric import KNOWLEDGE, structure

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "findings.md").read_text(encoding="utf-8")
NAMES = {"tail (target_tokens=6000)": "`tail` at 6,000"}
CONTROLS = ("full", "none")
SHORT, DEFAULT = (
    "anchored (tail_tokens=500, summary_tokens=5500)",
    "anchored (tail_tokens=2000, summary_tokens=1500)",
)
EQUAL = {
    SHORT: "`anchored`, tail of 500",
    DEFAULT: "`anchored`, default tail",
    "claude-code": "`claude-code` without attached files",
}
T_OF_FOUR = 2.776  # 97.5 % of Student's t, five conversations


@pytest.fixture(scope="module")
def of() -> Figures:
    return figures(read_frames(find_logs([str(DOCS / "findings" / "logs")])))


@pytest.fixture(scope="module")
def equal() -> Figures:
    return figures(read_frames(find_logs([str(DOCS / "findings" / "equal")])))


def _row(arm: str, cells: list[str], names: dict[str, str] = NAMES) -> str:
    return f"| {names.get(arm, f'`{arm}`')} | {' | '.join(cells)} |"


def test_the_arms_and_their_dimensions(of: Figures, equal: Figures) -> None:
    for found, names in ((of, NAMES), (equal, EQUAL)):
        for arm in found.arms:
            own = found.of_arm[arm.name]
            low, high = own.estimates[KNOWLEDGE].elsewhere or (np.nan, np.nan)
            shares = (own.estimates[name].mean for name in ("fact_survival", "fact_recall"))
            cells = [
                f"{own.costs['tokens_after']:,.0f}",
                f"{own.estimates[KNOWLEDGE].mean:.2f} ({low:.2f} to {high:.2f})",
                *(f"{share:.0%}".replace("%", " %") for share in shares),
                f"{own.survival.contradicted or 0:.1%}".replace("%", " %"),
            ]
            assert _row(arm.name, cells, names) in PAGE
            if arm.name not in CONTROLS:
                means = [f"{own.estimates[name].mean:.2f}" for name in structure().dimensions]
                assert _row(arm.name, means, names) in PAGE


def test_the_pairs_of_equal_sizes(equal: Figures) -> None:
    pairs = {(pair.higher, pair.lower): pair for pair in equal.frontier.pairs}
    page = " ".join(PAGE.split())
    for higher, lower, said in (
        (SHORT, DEFAULT, "knows {} more than with the default ({}, p <.001)"),
        (
            SHORT,
            "claude-code",
            "it knows {} less than `anchored` with the short tail ({}, p <.001)",
        ),
        ("claude-code", DEFAULT, "and {} more than `anchored` with the default tail ({}, p .007)"),
        (DEFAULT, "anchored+artifacts", "knows {} less than `anchored` ({}, p .754)"),
    ):
        pair = pairs[higher, lower]
        low, high = pair.interval or (np.nan, np.nan)
        assert said.format(f"{pair.change:.2f}", f"{low:.2f} to {high:.2f}") in page
        assert f"p {shown_p(pair.p_value)}" in said
    last = (equal.of_arm[arm].survival.by_age["last quarter"].share for arm in (SHORT, DEFAULT))
    assert "keeps more ({} instead of {})".format(*map(_percent, last)) in page


def test_the_pairs_and_the_ages(of: Figures) -> None:
    pairs = {(pair.higher, pair.lower): pair for pair in of.frontier.pairs}
    for arm in ("anchored", "regenerative"):
        low, high = pairs[arm, "tail (target_tokens=6000)"].interval or (np.nan, np.nan)
        assert f"`{arm}` {low:.2f} to {high:.2f}" in PAGE
    alike = pairs["anchored", "regenerative"]
    low, high = alike.interval or (np.nan, np.nan)
    assert (
        f"{alike.change:.2f} apart ({low:.2f} to {high:.2f}; p .{alike.p_value:.3f}".replace(
            ".0.", "."
        )
        in PAGE
    )
    for arm in ("anchored", "regenerative", "claude-code"):
        first = of.of_arm[arm].survival.by_age["first quarter"].share
        assert (
            f"`{arm}` {first:.0%}".replace("%", " %").replace("`anchored` ", "`anchored` keeps ")
            in PAGE
        )


def test_the_labels() -> None:
    labels = DOCS / "findings" / "labels" / "first.csv"
    done = CliRunner().invoke(
        main, ["label", "score", str(DOCS / "findings" / "logs"), "--labels", str(labels)]
    )
    assert done.exit_code == 0, done.output
    for judge, said in (("reader", "state reader"), ("grader", "with the grader")):
        line = next(each for each in done.stdout.splitlines() if f"first and {judge}" in each)
        kappa, *interval = line.split()[6:]
        assert f"{said} {kappa} ({' '.join(interval)}" in " ".join(PAGE.split())


def test_what_a_point_means() -> None:
    frame = samples_frame(DOCS / "findings" / "logs")
    summaries = frame[frame["compressor"].isin(["anchored", "regenerative", "claude-code"])]
    states = summaries.groupby(["arm", "fixture", "epoch"])[[KNOWLEDGE, "fact_recall"]].mean()
    slope, start = np.polyfit(states["fact_recall"], states[KNOWLEDGE], 1)
    r = np.corrcoef(states["fact_recall"], states[KNOWLEDGE])[0, 1]
    said = f"{start:.2f} + {slope:.2f} x fact recall (r = {r:.2f})".replace("0.95", ".95")
    assert f"Over the {len(states)} states" in PAGE
    assert said in PAGE
    assert pytest.approx(1 / slope, abs=0.001) == RECALL_OF_A_POINT
    few = frame[(frame["fact_recall"] > 0) & (frame["fact_recall"] <= 0.25)]
    assert f"Accuracy is {few['accuracy'].mean():.1f} as soon as" in PAGE


def test_the_chains() -> None:
    folder = DOCS / "findings" / "drift"
    chained = figures(read_frames(find_logs([str(folder)])))
    after, once = samples_frame(folder), samples_frame(DOCS / "findings" / "logs")
    changes = {}
    for arm in chained.arms:
        own = chained.of_arm[arm.name]
        shares = [own.survival.passed[str(number)].share for number in range(1, 5)]
        assert _row(arm.compressor, [_percent(share) for share in shares]) in PAGE
        four, one = (
            frame[(frame["compressor"] == arm.compressor) & frame["fixture"].isin(after["fixture"])]
            .groupby(["fixture", "probe_id"])[[KNOWLEDGE, "fact_survival"]]
            .mean()
            .groupby("fixture")
            .mean()
            for frame in (after, once)
        )
        changes[arm.compressor] = change = four[KNOWLEDGE] - one[KNOWLEDGE]
        cells = [
            f"{own.costs['tokens_after']:,.0f}",
            f"{one[KNOWLEDGE].mean():.2f}",
            f"{four[KNOWLEDGE].mean():.2f}",
            _over_conversations(change),
            *(_percent(each["fact_survival"].mean()) for each in (one, four)),
            f"{own.survival.contradicted or 0:.1%}".replace("%", " %"),
        ]
        assert _row(arm.compressor, cells) in PAGE
    assert (
        f"loses {_over_conversations(changes['anchored'] - changes['regenerative'])}".replace(
            " (", " less than `regenerative` ("
        ).replace(")", ", 95 %")
        in PAGE
    )
    later = samples_frame(DOCS / "findings" / "equal")
    for name, said in ((DEFAULT, "the loss of `anchored` is {}"), ("claude-code", "files {}")):
        before, last = (
            frame.groupby(["fixture", "probe_id"])[KNOWLEDGE].mean().groupby("fixture").mean()
            for frame in (
                later[later["arm"] == name],
                after[after["compressor"] == name.split()[0]],
            )
        )
        assert said.format(_over_conversations((before - last).dropna())) in " ".join(PAGE.split())
    facts = facts_frame(folder)
    contradicted = (facts["in_answer_read"] == "contradicted").sum()
    assert f"Of {len(facts):,} facts in answers {contradicted} are contradicted" in PAGE
    violations = after["fact_violations"].dropna()
    assert f"none of the {len(violations)} answers that could give an outdated value" in PAGE
    assert (violations == 0).all()
    [pair] = [
        each
        for each in chained.frontier.pairs
        if [each.higher.split()[0], each.lower.split()[0]] == ["claude-code", "anchored"]
    ]
    low, high = pair.interval or (np.nan, np.nan)
    said = f"knows {pair.change:.2f} more ({low:.2f} to {high:.2f}, p .{pair.p_value:.3f})"
    assert said.replace(".0.", ".") in PAGE


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _over_conversations(values: "pd.Series[float]") -> str:
    """Return the mean of five conversations with its interval of 95 %."""
    half = T_OF_FOUR * values.std() / np.sqrt(len(values))
    return f"{values.mean():.2f} ({values.mean() - half:.2f} to {values.mean() + half:.2f})"
