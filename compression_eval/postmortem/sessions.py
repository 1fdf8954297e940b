"""Sessions read for a post-mortem, with their compactions, and what a folder of them shows.

`read_sessions` reads conversations as an import does and keeps nothing of them but their rows.
Forks of one thread share the compactions before they parted: such a compaction counts once. Over
several sessions, intervals are by drawing threads, each with all its compactions.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean, median, quantiles
from typing import Literal

from inspect_ai.log import EvalSample

from compression_eval.conversations.building import build
from compression_eval.conversations.pipeline import ImportOptions, conversations_in
from compression_eval.conversations.readers.inspect_log import conversations_of
from compression_eval.conversations.sources import Input, find_inputs
from compression_eval.engine import Engine
from compression_eval.errors import DataError
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.models import Fixture
from compression_eval.postmortem.windows import (
    MIN_CONTROLS,
    WINDOW,
    Compaction,
    Session,
    Window,
)

MIN_EXCESS = 1_000
"""Tokens above the session's own usual, below which nothing is called far above it."""
_DECILE = 9
_DRAWS = 4_000

Verdict = Literal["far above usual", "usual", "too few calls", "too few windows to compare with"]

MEASURES: dict[str, tuple[str, Callable[[Window, int], float]]] = {
    "held": ("output that the session already held, tokens", lambda window, _: window.held),
    "shown_again": ("file text shown again, tokens", lambda window, _: window.shown_again),
    "without_edit": ("calls before the first new edit", Window.without_edit),
}
"""What is measured in a window: its name for people, and how it is read.

It is read within as many calls of a window as of the control that it is compared with.
"""


@dataclass(frozen=True)
class Told:
    """One compaction with its verdict."""

    compaction: Compaction
    verdict: Verdict
    limit: float
    """Tokens above which a window of the session is far above its usual; infinite if unknown."""
    known_by: str
    """Digest of the messages before it: forks of a thread have it in common."""

    @property
    def excess(self) -> float:
        """Tokens held beyond the usual; NaN where there is too little to say so."""
        found = self.compaction
        if not found.told or found.window is None or found.usual is None:
            return math.nan
        return found.window.held - found.usual


@dataclass(frozen=True)
class SessionRow:
    """What is told of one session."""

    name: str
    place: str
    agent: str
    """As its file says, with its version."""
    thread: str
    """Digest of how it begins: forks begin alike. Empty without compactions."""
    calls: int = 0
    """Tool calls; not counted without compactions."""
    compactions: Sequence[Told] = field(default_factory=list)
    readable: bool = False
    """Whether the summary of a compaction can be read."""
    flagged_controls: tuple[int, int] = (0, 0)
    """Control windows far above the usual of the others by the same rule, of all."""


def session_row(fixture: Fixture, place: str = "", *, shift: int = 0) -> SessionRow:
    """Return what is told of one conversation.

    Args:
        fixture: The conversation.
        place: Where it was read.
        shift: Calls by which compactions are moved, to see what comes of none.
    """
    session = Session(fixture)
    found = list(session.compactions(shift=shift))
    usual = [control.held for control in _apart(each.controls for each in found)]
    limit = _flag_limit(usual)
    told = [
        Told(each, _verdict(each, limit), limit, digest(_before(fixture, each.cut)))
        for each in found
    ]
    opening = [message.text for message in fixture.messages if message.role != "system"][:2]
    source = fixture.source
    return SessionRow(
        name=fixture.name,
        place=place,
        agent=(source.origin if source else None) or "",
        thread=digest("\0".join(opening)),
        calls=session.calls,
        compactions=told,
        readable=any(each.kind == "summary" for each in fixture.recorded_compactions),
        flagged_controls=(
            sum(held > _flag_limit(usual[:at] + usual[at + 1 :]) for at, held in enumerate(usual)),
            len(usual),
        ),
    )


def sample_rows(sample: EvalSample, model: str = "") -> Iterator[SessionRow]:
    """Yield what is told of a sample of any Inspect task: of its agent, then of its sub-agents.

    Args:
        sample: With its messages and events, attachments resolved.
        model: The model, where no call names it.
    """
    for conversation in conversations_of(sample, model, ""):
        try:
            fixture = build(conversation).fixture
        except DataError:  # nobody asked anything
            continue
        yield session_row(fixture)


def _before(fixture: Fixture, cut: int) -> str:
    return "\0".join(message.text for message in fixture.messages[:cut])


def _apart(controls: Iterable[Sequence[Window]]) -> Iterator[Window]:
    """Yield windows that do not overlap: a stretch between two compactions has those of both."""
    end = 0
    for window in sorted((each for own in controls for each in own), key=lambda each: each.start):
        if window.start >= end:
            yield window
            end = window.start + WINDOW


def _flag_limit(usual: Sequence[float]) -> float:
    """Return the tokens above which a window is far above a session's usual."""
    if len(usual) < MIN_CONTROLS:
        return math.inf
    return max(quantiles(usual, n=10, method="inclusive")[_DECILE - 1], median(usual) + MIN_EXCESS)


def _verdict(compaction: Compaction, limit: float) -> Verdict:
    if compaction.window is None:
        return "too few calls"
    if not compaction.told:
        return "too few windows to compare with"
    return "far above usual" if compaction.window.held > limit else "usual"


def read_sessions(
    paths: Sequence[str],
    engine: Engine | None = None,
    skipped: Callable[[str, str], None] = lambda *_: None,
    *,
    shift: int = 0,
) -> Iterator[SessionRow]:
    """Yield the sessions in files and folders, in their order.

    Of a session without compactions only its name, place and agent are told.

    Args:
        paths: As ``import`` takes them.
        engine: Who reads; by default as many processes as there are cores.
        skipped: Is told which file could not be read, and why.
        shift: As in `session_row`.
    """
    # As if none were named: the reason for one that is would name the formats of import.
    inputs = [replace(item, named=False) for item in find_inputs(paths)]
    engine = engine or Engine()
    with engine.opened([item.size for item in inputs], (__name__,)):
        read = partial(_rows, shift=shift)
        for number, (rows, failures) in engine.run(
            "reading", read, inputs, lambda item: item.place, size=lambda item: item.size, stop=True
        ):
            for reason in failures:
                skipped(inputs[number].place, reason)
            yield from rows


def _rows(item: Input, *, shift: int) -> tuple[list[SessionRow], list[str]]:
    rows: list[SessionRow] = []
    failures: list[str] = []
    for fixture, reason in conversations_in(item, ImportOptions()):
        if fixture is None:
            failures.append(reason)
        elif any(each.kind != "clear" for each in fixture.recorded_compactions):
            rows.append(session_row(fixture, item.place, shift=shift))
        else:
            agent = (fixture.source.origin if fixture.source else None) or ""
            rows.append(SessionRow(fixture.name, item.place, agent, thread=""))
    return rows, failures


def each_once(rows: Iterable[SessionRow]) -> Iterator[tuple[SessionRow, Told]]:
    """Yield the compactions of some sessions; what forks share comes once, judged if one can be."""
    known: dict[str, tuple[SessionRow, Told]] = {}
    for row in rows:
        for told in row.compactions:
            before = known.get(told.known_by)
            if before is None or (told.compaction.told and not before[1].compaction.told):
                known[told.known_by] = row, told
    yield from known.values()


@dataclass(frozen=True)
class Mean:
    """A measure over compactions and their controls."""

    measure: str
    after: float
    median_after: float
    control: float
    median_control: float
    compactions: int
    low: float
    high: float
    """Limits of the difference, of 95 %; NaN with too few threads."""

    @property
    def difference(self) -> float:
        """After a compaction less control."""
        return self.after - self.control


MIN_THREADS = 6


def over_sessions(rows: Iterable[SessionRow]) -> list[Mean]:
    """Return the means of each measure over the compactions of some sessions."""
    threads: dict[str, list[tuple[Window, Sequence[Window]]]] = defaultdict(list)
    for row, each in each_once(rows):
        if each.compaction.told and each.compaction.window:
            threads[row.thread].append((each.compaction.window, each.compaction.controls))
    found: list[Mean] = []
    for measure, (_, value) in MEASURES.items() if threads else ():
        pairs = [
            [
                (
                    fmean(value(window, each.reach) for each in controls),
                    fmean(value(each, each.reach) for each in controls),
                )
                for window, controls in own
            ]
            for own in threads.values()
        ]
        after, control = zip(*(pair for own in pairs for pair in own), strict=True)
        low, high = _interval([[one - other for one, other in own] for own in pairs])
        found.append(
            Mean(
                measure=measure,
                after=fmean(after),
                median_after=median(after),
                control=fmean(control),
                median_control=median(control),
                compactions=len(after),
                low=low,
                high=high,
            )
        )
    return found


def _interval(threads: Sequence[Sequence[float]]) -> tuple[float, float]:
    if len(threads) < MIN_THREADS:
        return math.nan, math.nan
    import numpy as np

    sums = np.array([sum(own) for own in threads])
    counts = np.array([len(own) for own in threads])
    drawn = np.random.default_rng(0).integers(0, len(threads), (_DRAWS, len(threads)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)
