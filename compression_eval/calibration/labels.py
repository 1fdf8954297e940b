"""``compression-eval label``: have people judge facts and answers of logs, and compare.

`draw` takes facts that a reader judged and answers that a grader scored, the same number of each
arm, and writes them for people: texts in random order under names that say nothing of the arm, and
one table for the labels. `score` finds the judged items in the logs again, since an item's name is
a digest of where it is in them, and gives Cohen's kappa for every two who judged.
"""

import csv
import io
import math
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Literal, get_args

import click
from inspect_ai.log import EvalSample, read_eval_log_sample

from compression_eval.analysis.arms import arm_names
from compression_eval.analysis.comparison.sides import CONTROLS
from compression_eval.analysis.facts import rows_of_sample
from compression_eval.analysis.logs import find_logs, one_per_run
from compression_eval.calibration.scoring import compare
from compression_eval.errors import DataError, shorten
from compression_eval.facts.life import StateWord
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.writing import write_whole
from compression_eval.grading.rubric import KNOWLEDGE, MAX_SCORE
from compression_eval.record import SampleRecord, recorded_in, render_messages
from compression_eval.terminal import CleanCommand, CleanGroup, Output, examples
from compression_eval.text.printable import printable
from compression_eval.text.tables import Section, Table, as_text

Kind = Literal["fact", "answer"]

WORDS: tuple[str, ...] = get_args(StateWord)
HEADS = ("file", "item", "kind", "label")
JUDGES = ("reader", "look-up", "grader")
FACTS_OF_A_STATE = 5
"""Facts that are asked about one state, which takes minutes to read."""
STATES_OF_AN_INTERVAL = 10
"""Minimum states for an interval: resampling fewer says little."""

_WIDTH = 140

_ABOUT_FACTS = """\
Below is all that an agent still knows of a conversation. For each fact, write into labels.csv:
  stated     the text says it, in these words or in others
  derivable  the text does not say it, but a careful reader can tell it from the text for certain
  absent     neither
The fact is what answers the question below it. The same word about something else does not count.
"""
_ABOUT_ANSWERS = """\
How much of the reference does the answer give, and is what it gives right? Write a number from 0
to 5 into labels.csv: 5 all of it and nothing wrong, 0 nothing of it; halves are allowed. Style does
not count, nor does what goes beyond the question and is not wrong.
"""


@dataclass
class Item:
    """A fact in a state, or an answer, with what was said of it."""

    name: str
    """A digest of where it is in the logs."""
    kind: Kind
    arm: str
    place: str
    """What is shown as one text: the state, or the answer alone."""
    state: str
    """The state that it is about, whose items are not independent."""
    sample: tuple[str, str | int, int]
    """A sample that shows it: log, id and epoch; of a state the first about it."""
    words: str = ""
    """A fact, as people read it: what was asked, and its forms."""
    labels: dict[str, float] = field(default_factory=dict)
    """By who judged: of a fact whether it is in the state, 0 or 1; of an answer 0 to 5."""


@click.group(cls=CleanGroup)
def label() -> None:
    """Draw a blind sample for people to label, and compare labels with readers and graders."""


@label.command(
    cls=CleanCommand,
    short_help="Write a blind sheet of facts and answers.",
    epilog=examples("label draw logs --out sheet", "label draw logs --out sheet --facts 40"),
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--out", type=Output(folder=True), required=True, help="Output folder.")
@click.option(
    "--facts",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Facts to judge; up to five are asked about one state.",
)
@click.option(
    "--answers", type=click.IntRange(min=0), default=60, show_default=True, help="Answers to judge."
)
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Another seed draws other items."
)
def draw(logs: tuple[str, ...], out: Path, facts: int, answers: int, seed: int) -> None:
    """Write facts and answers for people to judge, without the arms they are of.

    LOG is a log of this eval that a language model graded, or a folder of logs. Writes a text
    for each state and each answer, and labels.csv, whose last column people fill. The arms none
    and full are left out.
    """
    if not facts and not answers:
        raise DataError("--facts and --answers: both are 0, so there is nothing to draw")
    if out.exists() and any(out.iterdir()):
        raise DataError(f"--out: {out}: is not empty, and may have labels; name a new folder")
    items = list(_items(logs, controls=False))
    chosen = random.Random(seed)  # noqa: S311 - a draw that can be repeated
    drawn = [
        *_drawn([each for each in items if each.kind == "fact"], facts, FACTS_OF_A_STATE, chosen),
        *_drawn([each for each in items if each.kind == "answer"], answers, 1, chosen),
    ]
    if not drawn:
        raise DataError(f"{', '.join(logs)}: no language model read a state or graded an answer")
    by_place: dict[str, list[Item]] = defaultdict(list)
    for each in drawn:
        by_place[each.place].append(each)
    numbers = list(range(1, len(by_place) + 1))
    chosen.shuffle(numbers)
    files = {
        place: f"{'state' if own[0].kind == 'fact' else 'answer'}-{number:03d}.txt"
        for (place, own), number in zip(by_place.items(), numbers, strict=True)
    }
    out.mkdir(parents=True, exist_ok=True)
    for place, own in by_place.items():
        write_whole(out / files[place], _text(own))
    rows = sorted((files[each.place], each.name, each.kind, "") for each in drawn)
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([HEADS, *rows])
    write_whole(out / "labels.csv", table.getvalue())
    counts = [sum(each.kind == kind for each in drawn) for kind in get_args(Kind)]
    click.echo(
        f"wrote {len(files)} texts with {counts[0]} facts and {counts[1]} answers, and "
        f"{out / 'labels.csv'}: fill its last column, then\n"
        f"  compression-eval label score {' '.join(logs)} --labels {out / 'labels.csv'}"
    )


@label.command(
    cls=CleanCommand,
    short_help="Compare filled sheets with reader, grader and look-up.",
    epilog=examples(
        "label score logs --labels sheet/labels.csv",
        "label score logs --labels first.csv --labels second.csv",
    ),
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    *("--labels", "sheets"),
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="A filled labels.csv. Repeatable, one for each person.",
)
def score(logs: tuple[str, ...], sheets: tuple[Path, ...]) -> None:
    """Compare people's labels with the reader, the grader and the look-up, by arm.

    LOG are the logs from which the sheets were drawn. Prints for every two judges how often
    they agree (for answers: how many points they are apart) and Cohen's kappa (for answers
    quadratically weighted) with its 95 % interval, by bootstrap over the states.
    """
    for position, sheet in enumerate(sheets):
        if sheet.resolve() in [each.resolve() for each in sheets[:position]]:
            raise DataError(f"--labels: {sheet}: is given twice")
    given = {_person(sheet, sheets): _read_sheet(sheet) for sheet in sheets}
    if taken := [name for name in given if name in JUDGES]:
        raise DataError(f"--labels: a person named {taken[0]!r}: rename the sheet or its folder")
    wanted = {name for labels in given.values() for name in labels}
    items = [each for each in _items(logs) if each.name in wanted]
    if lost := len(wanted) - len(items):
        raise DataError(
            f"--labels: {lost} of {len(wanted)} items are not in these logs, or their names are "
            "changed; give the logs that the sheet was drawn from"
        )
    for person, labels in given.items():
        for each in items:
            if each.name in labels:
                each.labels[person] = _value(labels[each.name], each.kind, person)
    if not any(person in each.labels for each in items for person in given):
        raise DataError("--labels: no item has a label")
    click.echo(as_text(list(_agreements(items, list(given))), _WIDTH), nl=False)


def _items(paths: Sequence[str], *, controls: bool = True) -> Iterator[Item]:
    """Yield what readers and graders judged in some logs.

    Args:
        paths: Logs, or folders with logs.
        controls: Whether those of the arms none and full are among them.
    """
    logs = one_per_run(find_logs(paths))
    first: dict[str, tuple[str, str | int, int]] = {}  # logs may keep a state once
    for log, arm in zip(logs, arm_names(logs), strict=True):
        if log.compressor in CONTROLS and not controls:
            continue
        for sample in log.samples():
            if (recorded := recorded_in(sample)) is not None:
                at = log.path, sample.id, sample.epoch
                for found in _of_sample(sample, recorded.record, arm, at):
                    found.sample = first.setdefault(found.place, at)
                    yield found


def _of_sample(
    sample: EvalSample, record: SampleRecord, arm: str, at: tuple[str, str | int, int]
) -> Iterator[Item]:
    state = record.state.state_id
    probe = record.probe
    asked = {
        each.fact: f"{_form(each.forms)}\n      asked for by: {' '.join(probe.question.split())}"
        for each in probe.expected_facts
    }
    for fact in rows_of_sample(record, sample.epoch, sample.scores):
        if fact["in_state_read"] is not None:
            name = _name(f"fact\n{sample.uuid}\n{fact['fact']}")
            found = Item(name, "fact", arm, state, state, at, asked[fact["fact"]])
            found.labels["reader"] = float(fact["in_state_read"] != "absent")
            if fact["in_state"] is not None:
                found.labels["look-up"] = float(fact["in_state"])
            yield found
    given = (sample.scores or {}).get("six_dimensions")
    graded = given.value.get(KNOWLEDGE) if given and isinstance(given.value, dict) else None
    if isinstance(graded, int | float) and not math.isnan(graded):
        name = _name(f"answer\n{sample.uuid}")
        yield Item(name, "answer", arm, name, state, at, labels={"grader": float(graded)})


def _name(text: str) -> str:
    return text[0] + digest(text)[:12]  # a letter first, or spreadsheets take some for numbers


def _drawn(
    items: Sequence[Item], number: int, of_a_place: int, chosen: random.Random
) -> list[Item]:
    """Return so many items, as many of each arm as can be, some of each state together."""
    arms: dict[str, dict[str, list[Item]]] = defaultdict(lambda: defaultdict(list))
    for each in items:
        arms[each.arm][each.place].append(each)
    queues = []
    for places in arms.values():
        groups = [
            chosen.sample(own, min(of_a_place, len(own))) for _, own in sorted(places.items())
        ]
        chosen.shuffle(groups)
        queues.append(groups)
    drawn: list[Item] = []
    while any(queues) and len(drawn) < number:
        for groups in filter(None, queues):
            drawn += groups.pop()[: number - len(drawn)]
    return drawn


def _text(items: Sequence[Item]) -> str:
    """Return what people read to judge the items of one place."""
    path, name, epoch = items[0].sample
    sample = read_eval_log_sample(path, name, epoch, resolve_attachments=True)
    recorded = recorded_in(sample)
    if recorded is None:  # there was one when the items were drawn
        raise DataError(f"{path}: sample {name}: its record is gone")
    record = recorded.record
    if items[0].kind == "fact":
        listed = "\n".join(sorted(f"  [{each.name}] {each.words}" for each in items))
        state = render_messages(sample.messages[: record.state.message_count])
        return f"{_ABOUT_FACTS}\nThe facts:\n{listed}\n\nThe text:\n\n{state}\n"
    reference = [record.probe.reference_answer] if record.probe.reference_answer else []
    reference += [f"- {_form(fact.forms)}" for fact in record.probe.expected_facts]
    parts = {
        "The question": record.probe.question,
        "The reference": "\n".join(reference),
        "The answer": record.answer.text if record.answer else "",
    }
    body = "\n\n".join(f"{title}:\n\n{text}" for title, text in parts.items())
    return f"{_ABOUT_ANSWERS}\nThe item: [{items[0].name}]\n\n{body}\n"


def _form(words: Sequence[str]) -> str:
    first, *others = words
    return first + (f"  (or: {' | '.join(others)})" if others else "")


# ----- reading labels


def _person(sheet: Path, sheets: Sequence[Path]) -> str:
    """Return how a person is named: by the sheet, or by its folder where sheets are named alike."""
    alike = sum(each.stem == sheet.stem for each in sheets) > 1
    name = sheet.resolve().parent.name if alike or sheet.name == "labels.csv" else sheet.stem
    if alike and len({each.resolve().parent.name for each in sheets}) < len(sheets):
        name = f"{name} {sheets.index(sheet) + 1}"
    return printable(name, 40)


def _read_sheet(sheet: Path) -> dict[str, str]:
    """Return the labels that were filled in, by item."""
    try:
        text = sheet.read_text(encoding="utf-8-sig")
        heads = text.partition("\n")[0]
        # Spreadsheets of many countries write semicolons.
        delimiter = max(",;\t", key=heads.count)
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{sheet}: not a table in UTF-8 ({error})") from error
    if not rows:
        raise DataError(f"{sheet}: the sheet has no rows")
    if not {"item", "label"} <= rows[0].keys():
        raise DataError(f"{sheet}: not a sheet of label draw, which has {', '.join(HEADS)}")
    labels: dict[str, str] = {}
    for row in rows:
        name, text = str(row["item"]).strip(), str(row["label"] or "").strip().lower()
        if labels.setdefault(name, text) != text:
            raise DataError(f"{sheet}: item {shorten(name)} has two labels")
    return {name: text for name, text in labels.items() if text}


def _value(text: str, kind: Kind, person: str) -> float:
    if kind == "fact":
        if text in WORDS:
            return float(text != "absent")
        raise DataError(f"{person}: label {text!r} of a fact: expected {', '.join(WORDS)}")
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        value = -1.0
    if not 0 <= value <= MAX_SCORE:
        raise DataError(f"{person}: label {text!r} of an answer: expected a number from 0 to 5")
    return value


def _agreements(items: Sequence[Item], people: Sequence[str]) -> Iterator[Section]:
    """Yield a table for facts and one for answers: a row for every two who judged, and arm."""
    titles = {"fact": "Is the fact in the state?", "answer": "What is the answer worth (0 to 5)?"}
    for kind, title in titles.items():
        own = [each for each in items if each.kind == kind]
        judges = [*people, *(("reader", "look-up") if kind == "fact" else ("grader",))]
        rows = [
            cells
            for pair in combinations(judges, 2)
            for arm in ("all", *sorted({each.arm for each in own}))
            if (cells := _row(pair, arm, own))
        ]
        if rows:
            apart = "agree" if kind == "fact" else "points apart"
            heads = ("between", "arm", "items", apart, "kappa", "95 %")
            yield Section(title, [Table(heads, rows, names=2)])


def _row(pair: tuple[str, str], arm: str, items: Iterable[Item]) -> list[str]:
    """Return the cells of two who judged; empty if they have no item in common."""
    both = [
        each
        for each in items
        if arm in ("all", each.arm) and all(name in each.labels for name in pair)
    ]
    if not both:
        return []
    one, other = ([each.labels[name] for each in both] for name in pair)
    states = [each.state for each in both]
    found = compare(one, other, groups=states)
    binary = pair[1] in ("reader", "look-up")
    apart = f"{1 - found.error:.0%}" if binary else f"{found.error:.2f}"
    shown = [f"{x:.2f}" if x == x else "-" for x in (found.kappa, found.low, found.high)]  # noqa: PLR0124
    too_few = "-" in shown[1:] or len(set(states)) < STATES_OF_AN_INTERVAL
    between = "-" if too_few else f"{shown[1]} to {shown[2]}"
    return [" and ".join(pair), arm, str(found.answers), apart, shown[0], between]
