"""Make the bank of one fixture: candidates from every source, the best of them, one file."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compression_eval.authoring.candidates import Candidate, Dropped, Harvest
from compression_eval.authoring.choosing import TYPES, choose
from compression_eval.authoring.history import THIRDS, History, histories
from compression_eval.authoring.mechanical import mechanical
from compression_eval.authoring.model_generator import ModelGenerator
from compression_eval.fixtures.bank_checks import bank_findings
from compression_eval.fixtures.banks import Probe, ProbeBank
from compression_eval.fixtures.cuts import CutArgument, resolve_cut
from compression_eval.fixtures.errors import PassedOverError, shorten
from compression_eval.fixtures.models import Fixture

_POSITION = re.compile(r"probes\[(\d+)\]")


@dataclass(frozen=True)
class Wanted:
    """What is to be made.

    Attributes:
        per_type: Probes of each type and cut.
        tail_tokens: Budget of the kept tail.
        cuts: As the task takes them; none for the fixture's own, else the end.
        mechanical: Whether to ask what needs no model.
    """

    per_type: int
    tail_tokens: int
    cuts: tuple[CutArgument, ...]
    mechanical: bool


@dataclass
class CutResult:
    """What was made for one cut."""

    history: History
    chosen: list[Candidate] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    left_over: int = 0
    """Candidates that were fit and not needed."""
    probes: list[Probe] = field(default_factory=list)
    """The chosen ones with their ids, in the same order."""

    @property
    def by_type(self) -> dict[str, int]:
        """How many probes of each type there are."""
        counts = Counter(item.probe.type for item in self.chosen)
        return {kind: counts[kind] for kind in TYPES}

    @property
    def spread(self) -> dict[str, int]:
        """How many probes there are about each third of the compressed part."""
        counts = Counter(item.third for item in self.chosen)
        return {third: counts[third] for third in THIRDS}


@dataclass
class FixtureResult:
    """What was made for one fixture."""

    fixture: Fixture
    path: Path
    target: Path
    cuts: list[CutResult] = field(default_factory=list)

    @property
    def bank(self) -> ProbeBank | None:
        """The bank; None if nothing could be asked."""
        probes = [probe for cut in self.cuts for probe in cut.probes]
        if not probes:
            return None
        return ProbeBank(fixture=self.fixture.name, language=self.fixture.language, probes=probes)


def cuts_of(fixture: Fixture, wanted: Sequence[CutArgument]) -> list[int]:
    """Return the numbers of messages at which a fixture is cut, rising.

    Args:
        fixture: The conversation.
        wanted: Each as in `resolve_cut`, or ``recorded`` for where the recorded agent compacted,
            or ``auto``, as none at all, for the fixture's own cuts.

    Raises:
        PassedOverError: One that is wanted is out of range, or parts a call from its result, or
            the recorded agent never compacted.
    """
    found = {point for cut in wanted or ["auto"] for point in _points(fixture, cut)}
    return sorted(found)


def _points(fixture: Fixture, cut: CutArgument) -> list[int]:
    recorded = [compaction.cut for compaction in fixture.recorded_compactions]
    if cut == "auto":
        return fixture.cuts or recorded or [resolve_cut(fixture, "end")]
    if cut != "recorded":
        return [resolve_cut(fixture, cut)]
    if not recorded:
        name = shorten(fixture.name)
        raise PassedOverError(f"cut: 'recorded', but the agent of {name} compacted nothing")
    return recorded


async def generate_bank(
    result: FixtureResult,
    wanted: Wanted,
    generator: ModelGenerator | None,
    progress: Callable[[str], None],
) -> None:
    """Fill in the cuts of a result.

    Args:
        result: The fixture, without cuts.
        wanted: What is to be made.
        generator: Asks a model; None for none.
        progress: Told one line at a time.

    Raises:
        DataError: A cut does not fit the fixture.
    """
    cuts = cuts_of(result.fixture, wanted.cuts)
    for history in await histories(result.fixture, cuts, wanted.tail_tokens):
        done = CutResult(history)
        result.cuts.append(done)
        if not history.compressed:
            progress(f"cut {history.cut}: everything is kept")
            continue
        harvest = Harvest()
        if generator:
            harvest.add(await generator.generate(history))
        if wanted.mechanical:
            progress(f"cut {history.cut}: reading {len(history.calls)} tool calls")
            harvest.add(mechanical(history))
        chosen, twins = choose(harvest.candidates, wanted.per_type, fill=True)
        done.dropped = [*harvest.dropped, *twins]
        done.left_over = len(harvest.candidates) - len(chosen) - len(twins)
        _settle(done, chosen, result)


def _settle(done: CutResult, chosen: list[Candidate], result: FixtureResult) -> None:
    """Give the chosen their ids, after the check that every bank has to pass."""
    probes = _with_ids([item.probe for item in chosen], done.history.cut)
    wrong: dict[int, list[str]] = {}
    if probes:
        bank = ProbeBank(fixture=result.fixture.name, probes=probes)
        for finding in bank_findings(bank, result.fixture, result.target, shipped=False):
            found = _POSITION.search(finding.where.rpartition(": ")[2])
            if found and finding.severity == "error":
                wrong.setdefault(int(found[1]), []).append(finding.text)
    for position, reasons in wrong.items():
        probe = chosen[position].probe
        done.dropped.append(Dropped(probe.type, probe.origin, probe.question, tuple(reasons)))
    done.chosen = [item for position, item in enumerate(chosen) if position not in wrong]
    done.probes = _with_ids([item.probe for item in done.chosen], done.history.cut)


def _with_ids(probes: Sequence[Probe], cut: int) -> list[Probe]:
    numbers: Counter[str] = Counter()
    named: list[Probe] = []
    for probe in probes:
        numbers[probe.type] += 1
        identifier = f"{probe.type}-c{cut}-{numbers[probe.type]:02d}"
        named.append(probe.model_copy(update={"id": identifier}))
    return named
