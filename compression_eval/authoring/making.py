"""Make the bank of one fixture: the best candidates from every source, for each of its cuts."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compression_eval.authoring.candidates import TYPES, Candidate, Dropped, Harvest, choose
from compression_eval.authoring.history import THIRDS, histories
from compression_eval.authoring.mechanical import mechanical as without_model
from compression_eval.errors import one_line, shorten
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.cuts import cuts_of
from compression_eval.fixtures.models import Fixture

if TYPE_CHECKING:
    from compression_eval.authoring.by_model import ModelGenerator
    from compression_eval.authoring.generate import Wanted

_MAX_DROPPED_SHOWN = 12
FEW = 8
"""Probes below which a cut has too few; a bank has from 8 on at each."""
_USE_MODEL = "--model MODEL writes more and better ones"
_MAX_REASON = 200


@dataclass
class CutResult:
    """What was made for one cut."""

    cut: int
    compressed: range
    """The messages that are not kept verbatim."""
    chosen: list[Candidate] = field(default_factory=list)
    """Those that the bank has, with their ids."""
    dropped: list[Dropped] = field(default_factory=list)
    left_over: int = 0
    """Candidates that were fit and not needed."""
    remarks: list[str] = field(default_factory=list)
    """What else there is to say."""

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

    def notes(self, wanted: "Wanted") -> Iterator[str]:
        """Yield which types have fewer probes than were wanted, why, and the remarks."""
        for kind, count in self.by_type.items():
            if count >= wanted.per_type:
                continue
            dropped = sum(item.type == kind for item in self.dropped)
            why = f"{dropped} dropped" if dropped else "nothing more was found"
            yield f"{kind}: {count} of {wanted.per_type}: {why}"
        yield from self.remarks
        if wanted.model is None and len(self.chosen) < FEW:
            found = f"{len(self.chosen)} of at least {FEW} that a comparison needs"
            yield f"too few sure questions were found without a model, {found}; {_USE_MODEL}"


@dataclass
class FixtureResult:
    """What was made for one fixture."""

    fixture: Fixture
    origin: str
    """Where it is."""
    target: Path
    """Where its bank goes."""
    cuts: list[CutResult] = field(default_factory=list)

    @property
    def bank(self) -> ProbeBank | None:
        """The bank; None if nothing could be asked."""
        probes = [item.probe for cut in self.cuts for item in cut.chosen]
        if not probes:
            return None
        return ProbeBank(fixture=self.fixture.name, language=self.fixture.language, probes=probes)

    def why_none(self, wanted: "Wanted") -> str:
        """Return why there is no bank, and what may give one."""
        if not any(cut.compressed for cut in self.cuts):
            reason = "nothing is compressed: all of it fits the kept tail"
        else:
            dropped = [item for cut in self.cuts for item in cut.dropped]
            reason = "nothing to ask was found"
            if dropped:
                reason = f"{len(dropped)} dropped, the first since {'; '.join(dropped[0].reasons)}"
            elif wanted.model is None:
                reason += " that is sure without a model"
            if wanted.model is None:
                reason += f"; {_USE_MODEL}"
        return f"no probe could be made: {reason}"

    def lines(self, wanted: "Wanted") -> Iterator[str]:
        """Yield what became of the fixture, a line each."""

        def counts(found: dict[str, int]) -> str:
            return ", ".join(f"{name} {count}" for name, count in found.items())

        for cut in self.cuts:
            name = f"{self.fixture.name}, cut {cut.cut}"
            if not cut.compressed:
                tail = f"the tail of {wanted.tail_tokens} tokens"
                yield f"{name}: nothing is compressed: all fits {tail}"
                continue
            first, last = cut.compressed[0], cut.compressed[-1]
            yield f"{name}: {len(cut.chosen)} probes (messages {first} to {last} are compressed)"
            yield f"  {counts(cut.by_type)}; {counts(cut.spread)}"
            for note in cut.notes(wanted):
                yield f"  {note}"
            for dropped in cut.dropped[:_MAX_DROPPED_SHOWN]:
                asked = f" {shorten(dropped.question)}" if dropped.question else ""
                reason = "; ".join(one_line(each, _MAX_REASON) for each in dropped.reasons)
                kind = dropped.type or "candidate"
                yield f"  dropped: {kind} ({dropped.origin}){asked}: {reason}"
            if len(cut.dropped) > _MAX_DROPPED_SHOWN:
                number = len(cut.dropped) - _MAX_DROPPED_SHOWN
                yield f"  dropped: {number} more (--report FILE lists them)"

    def as_data(self, wanted: "Wanted") -> dict[str, Any]:
        """Return everything, as the report file holds it."""
        return {
            "fixture": self.fixture.name,
            "bank": str(self.target) if self.bank else None,
            "cuts": [
                {
                    "cut": cut.cut,
                    "compressed_from": cut.compressed.start,
                    "tail_starts_at": cut.compressed.stop,
                    "by_type": cut.by_type,
                    "spread": cut.spread,
                    "notes": list(cut.notes(wanted)),
                    "left_over": cut.left_over,
                    "probes": [
                        {
                            "id": item.probe.id,
                            "origin": item.probe.origin,
                            "third": item.third,
                            "question": item.probe.question,
                            "facts": [fact.fact for fact in item.probe.expected_facts],
                            "need": item.need,
                        }
                        for item in cut.chosen
                    ],
                    "dropped": [asdict(item) for item in cut.dropped],
                }
                for cut in self.cuts
            ],
        }


async def generate_bank(
    result: FixtureResult,
    wanted: "Wanted",
    generator: "ModelGenerator | None",
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
        done = CutResult(history.cut, history.compressed)
        result.cuts.append(done)
        if not history.compressed:
            progress(f"cut {history.cut}: everything is kept")
            continue
        harvest = Harvest()
        if generator:
            harvest.add(await generator.generate(history))
        if wanted.mechanical:
            progress(f"cut {history.cut}: reading {len(history.calls)} tool calls")
            harvest.add(without_model(history))
        chosen, twins = choose(harvest.candidates, wanted.per_type)
        done.left_over = len(harvest.candidates) - len(chosen) - len(twins)
        done.dropped = [*harvest.dropped, *twins]
        done.remarks = harvest.notes
        numbers: Counter[str] = Counter()
        for item in chosen:
            kind = item.probe.type
            numbers[kind] += 1
            identifier = f"{kind}-c{history.cut}-{numbers[kind]:02d}"
            probe = item.probe.model_copy(update={"id": identifier})
            done.chosen.append(replace(item, probe=probe))
