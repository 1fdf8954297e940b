"""``probes analyse``: which probes tell arms apart, from the logs of runs with several arms.

Classical item analysis, with probes as items and the states of arms as those who are examined: how
many facts are answered (difficulty), whether the arms that answer a probe are those that answer
the others too (discrimination), and which probes could have been left out.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from compression_eval.analysis.frames import read_rows
from compression_eval.analysis.logs import find_logs, one_per_run
from compression_eval.errors import DataError, shorten
from compression_eval.fixtures.writing import versioned_json, write_whole
from compression_eval.grading.rubric import KNOWLEDGE
from compression_eval.terminal import Output, examples
from compression_eval.text.tables import Section, Table, as_text

if TYPE_CHECKING:
    from pandas import DataFrame

CONTROLS = ("full", "none")
"""Strategies that are shown apart: what they answer is known before a run."""

MIN_ARMS = 3
"""Minimum arms, controls apart, for a probe to be called dead or given a discrimination."""

MIN_STATES = 6
"""Minimum different outcomes of these arms for a discrimination."""

_SHARE = "fact_recall"
_ITEM = ["fixture", "cut", "probe_id"]
_COLUMNS = (
    *("sample", "epoch", *_ITEM, "probe_type", "replicate", "state_id", "gradings"),
    *("probe_digest", _SHARE, KNOWLEDGE),
)


@dataclass(frozen=True)
class ProbeFigures:
    """What a run says of one probe. Shares are of its expected facts, 0 to 1; None if unknown."""

    fixture: str
    cut: int
    probe: str
    type: str
    arms: int
    """Arms with an answer, controls apart."""
    missing: int
    """Answers that were not given or not looked into, of all arms."""
    answered: float | None
    """Mean share over these arms, every arm with the same weight."""
    answered_by_full: float | None
    answered_by_none: float | None
    knowledge: float | None
    """Mean over these arms, 0 to 5; where it was graded."""
    states: int
    """Different outcomes of these arms in which other probes were answered too."""
    discrimination: float | None
    """Correlation with the mean share of the other probes of its cut, over these states."""
    dead: Literal["everyone", "no one"] | None
    """Who answers it: every state of every arm in full, or none of them any fact."""
    note: str
    """Why there is no discrimination, and what the controls say against the probe."""


@dataclass(frozen=True)
class ItemAnalysis:
    """What the logs say of a bank's probes."""

    arms: list[str]
    controls: list[str]
    probes: list[ProbeFigures]

    @property
    def dead(self) -> dict[str, Any]:
        """How many of the probes that enough arms answered are dead."""
        judged = [each.dead for each in self.probes if each.arms >= MIN_ARMS]
        everyone, no_one = judged.count("everyone"), judged.count("no one")
        share = (everyone + no_one) / len(judged) if judged else None
        return {"probes": len(judged), "everyone": everyone, "no_one": no_one, "share": share}


def item_analysis(paths: Sequence[str]) -> ItemAnalysis:
    """Return what logs say of the probes that were asked in them.

    Args:
        paths: Logs of this eval, or folders of logs; of several logs of one run one is read.

    Raises:
        DataError: There are none, one is no finished log of this eval, a probe was edited between
            two of them, or no answer was looked into.
    """
    logs = one_per_run(find_logs(paths))
    rows = read_rows(logs, _COLUMNS)
    asked = rows[rows["probe_digest"].notna()]
    if asked[_SHARE].isna().all():
        raise DataError(f"{', '.join(paths)}: no answer was looked into for facts")
    for (fixture, _, probe), digests in asked.groupby(_ITEM)["probe_digest"]:
        if digests.nunique() > 1:
            where = f"{shorten(str(fixture))}: {shorten(str(probe))}"
            raise DataError(f"{where}: was edited between these logs; name those of one bank")
    control = asked["compressor"].isin(CONTROLS)
    discriminating = _discriminations(asked[~control])
    probes = [
        _probe_figures(item, group, *discriminating.get(item, (0, None)))
        for item, group in asked.groupby(_ITEM, sort=False)
    ]
    return ItemAnalysis(
        arms=_arms(asked[~control]),
        controls=_arms(asked[control]),
        probes=sorted(probes, key=lambda each: (each.fixture, each.cut, each.probe)),
    )


def _discriminations(rows: "DataFrame") -> dict[Any, tuple[int, float | None]]:
    """Return the number of different outcomes of each probe, and its correlation over them."""
    found: dict[Any, tuple[int, float | None]] = {}
    for (fixture, cut), group in rows.groupby(["fixture", "cut"]):
        table = group.pivot_table(
            index=["arm", "log_path", "replicate", "state_id"], columns="probe_id", values=_SHARE
        )
        # Of mechanical arms every compression comes out the same, which is no new evidence.
        table = table.reset_index("arm").drop_duplicates().set_index("arm")
        others = table.notna().sum(axis=1) - 1
        for probe in table.columns:
            own = table[probe]
            rest = (table.sum(axis=1) - own) / others.where(others > 0)
            both = own.notna() & rest.notna()
            enough = both.sum() >= MIN_STATES and own.index[both].nunique() >= MIN_ARMS
            value = own[both].corr(rest[both]) if enough and own[both].nunique() > 1 else math.nan
            found[fixture, cut, probe] = int(both.sum()), _known(value)
    return found


def _probe_figures(
    item: Any, rows: "DataFrame", states: int, discrimination: float | None
) -> ProbeFigures:
    fixture, cut, probe = item
    names = rows["compressor"]
    tested = rows[~names.isin(CONTROLS)]
    shares = tested[_SHARE].dropna()
    arms = tested["arm"][shares.index].nunique()
    full, none = (_mean(rows[names == name], _SHARE) for name in CONTROLS)
    dead: Literal["everyone", "no one"] | None = None
    if arms >= MIN_ARMS and shares.nunique() == 1 and shares.iloc[0] in (0, 1):
        dead = "everyone" if shares.iloc[0] else "no one"
    notes = []
    if arms < MIN_ARMS:
        notes.append(f"too few arms ({arms} of {MIN_ARMS})")
    elif states < MIN_STATES and not dead:
        notes.append(f"too few states ({states} of {MIN_STATES})")
    elif discrimination is None and not dead:
        notes.append("all alike" if shares.nunique() == 1 else "the other probes are all alike")
    if discrimination is not None and discrimination < -_chance(states):
        notes.append("against the others")
    if full == 0:
        notes.append("not even from the full history")
    if none:
        notes.append("from nothing too")
    return ProbeFigures(
        fixture=str(fixture),
        cut=int(cut),
        probe=str(probe),
        type=str(rows["probe_type"].iloc[0]),
        arms=arms,
        missing=int(rows[_SHARE].isna().sum()),
        answered=_mean(tested, _SHARE),
        answered_by_full=full,
        answered_by_none=none,
        knowledge=_mean(tested, KNOWLEDGE),
        states=states,
        discrimination=discrimination,
        dead=dead,
        note="; ".join(notes),
    )


def _chance(states: int) -> float:
    """Return what 95 % of correlations without any relation stay below, by Fisher's z."""
    return math.tanh(1.96 / math.sqrt(states - 3))


def _mean(rows: "DataFrame", column: str) -> float | None:
    """Return the mean over arms of each arm's mean."""
    return _known(rows.groupby("arm")[column].mean().mean())


def _known(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)


def _arms(rows: "DataFrame") -> list[str]:
    return list(dict.fromkeys(rows["arm"]))


def page(analysis: ItemAnalysis) -> list[Section]:
    """Return an item analysis as a page for a terminal."""
    groups: dict[str, list[ProbeFigures]] = {}
    for each in analysis.probes:
        groups.setdefault(f"{each.fixture}, {each.cut} messages:", []).append(each)
    head = [
        f"{len(analysis.probes)} probes of {len(groups)} conversations and cuts, "
        f"{len(analysis.arms)} arms: {', '.join(analysis.arms) or 'none'}",
        f"apart from them: {', '.join(analysis.controls) or 'no control (full, none)'}",
    ]
    if missing := sum(each.missing for each in analysis.probes):
        head.append(f"{missing} answers are missing, and count nowhere")
    return [
        Section("", [head]),
        *(Section(title, _probes(probes)) for title, probes in groups.items()),
        Section("Together:", [list(_together(analysis))]),
    ]


def _probes(probes: Sequence[ProbeFigures]) -> list[Table | Sequence[str]]:
    """Return the table of some probes, and what is to be said of them, with their names."""
    heads = ("probe", "answered", "full", "none", "knowledge", "item-rest")
    rows = [
        (
            each.probe,
            _shown(each.answered, ".0%"),
            _shown(each.answered_by_full, ".0%"),
            _shown(each.answered_by_none, ".0%"),
            _shown(each.knowledge, ".2f"),
            _shown(each.discrimination, "+.2f"),
        )
        for each in probes
    ]
    lines = []
    if states := min(
        (each.states for each in probes if each.discrimination is not None), default=0
    ):
        lines.append(
            f"item-rest over {states} states: within ±{_chance(states):.2f} it may be chance, and "
            "somewhat beyond where several are of one arm"
        )
    said: dict[str, list[str]] = {}
    for each in probes:
        remarks = [f"dead, {each.dead} answers it"] if each.dead else []
        for remark in remarks + list(filter(None, each.note.split("; "))):
            said.setdefault(remark, []).append(each.probe)
    lines.extend(
        f"{remark}: {'all of them' if len(names) == len(probes) else ', '.join(names)}"
        for remark, names in said.items()
    )
    return [Table(heads, rows), lines]


def _together(analysis: ItemAnalysis) -> Iterator[str]:
    counts = analysis.dead
    if judged := counts["probes"]:
        yield (
            f"dead on these arms: {counts['everyone'] + counts['no_one']} of {judged} probes "
            f"({counts['share']:.0%}); {counts['everyone']} that every state of every arm answers "
            f"in full, {counts['no_one']} of which none answers any fact"
        )
    if left := len(analysis.probes) - judged:
        yield f"answered by fewer than {MIN_ARMS} arms, too few to call any dead: {left} probes"
    yield "answered: mean share of its facts over the arms, without full and none"
    yield (
        "item-rest: correlation of that share with the mean of the other probes of the "
        f"conversation, over different states (at least {MIN_STATES}, of {MIN_ARMS} arms)"
    )


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


@click.command(
    "analyse",
    epilog=examples(
        "probes analyse logs/sweep",
        "probes analyse logs/a.eval logs/b.eval logs/c.eval --json probes.json",
    ),
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--json", "json_file", type=Output(), help="Write the result as JSON.")
def analyse_command(logs: tuple[str, ...], json_file: Path | None) -> None:
    """Say which probes tell arms apart, and which could be left out.

    LOG is a log of this eval, or a folder of logs: those of several arms on the same probes. For
    every probe: how much of it is answered, with the controls full and none next to it; how far the
    arms that answer it are those that answer the other probes; and whether it is dead, answered by
    everyone or by no one. What too few arms were run for is left open. docs/authoring.md says how
    to read it.
    """
    analysis = item_analysis(logs)
    if json_file:
        limits = {"min_arms": MIN_ARMS, "min_states": MIN_STATES}
        data = {**asdict(analysis), **limits, "dead": analysis.dead}
        write_whole(json_file, versioned_json(data))
    click.echo(as_text(page(analysis)), nl=False)
