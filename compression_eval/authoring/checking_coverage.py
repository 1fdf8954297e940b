"""What the probes of a bank are spread over, and which of them compression cannot touch."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, get_args

from compression_eval.authoring.history import THIRDS, History
from compression_eval.fixtures.banks import ExpectedFact, Probe, ProbeType
from compression_eval.fixtures.findings import Finding
from compression_eval.fixtures.verdicts import Verdict

_Name = TypeVar("_Name", str, int)

_ENOUGH_PROBES = 4
"""Below this a bank is not expected to reach into every third."""


@dataclass(frozen=True)
class Coverage:
    """Counts over the probes of one bank."""

    types: Counter[str] = field(default_factory=Counter)
    thirds: Counter[str] = field(default_factory=Counter)
    """Expected facts by where in the compressed part they are first said; others are ``kept``."""
    cuts: Counter[int] = field(default_factory=Counter)
    tail_only: tuple[str, ...] = ()
    """Ids of probes all of whose facts stand in what is kept verbatim."""
    system_only: tuple[str, ...] = ()
    """Ids of probes all of whose facts stand in the system prompt."""
    verdicts: Counter[str] = field(default_factory=Counter)

    def lines(self) -> Iterator[str]:
        """Yield the counts for people, one kind a line."""
        total = sum(self.types.values())
        yield f"{total} probes: " + _counted(self.types, get_args(ProbeType))
        yield "facts first said: " + _counted(self.thirds, (*THIRDS, "kept"))
        yield "at cut: " + _counted(self.cuts, sorted(self.cuts))
        share = len(self.tail_only) / total
        yield (
            f"answered by the kept tail: {len(self.tail_only)} ({share:.0%}), "
            f"by the system prompt alone: {len(self.system_only)}"
        )
        if set(self.verdicts) - {"unknown"}:
            yield "verdicts: " + _counted(self.verdicts, get_args(Verdict))


def coverage(probes: Sequence[tuple[Probe, History, Verdict]]) -> Coverage:
    """Count what a bank covers.

    Args:
        probes: Each probe with what lies before its cut, and its verdict.
    """
    return Coverage(
        types=Counter(probe.type for probe, _, _ in probes),
        thirds=Counter(
            _place(fact, history) for probe, history, _ in probes for fact in probe.expected_facts
        ),
        cuts=Counter(history.cut for _, history, _ in probes),
        tail_only=tuple(p.id for p, history, _ in probes if _kept(p, history)),
        system_only=tuple(p.id for p, history, _ in probes if _in_system(p, history)),
        verdicts=Counter(verdict for _, _, verdict in probes),
    )


def coverage_findings(found: Coverage) -> Iterator[Finding]:
    """Warn of parts of the history that no probe reaches; ``where`` is left to the caller."""
    if sum(found.types.values()) < _ENOUGH_PROBES:
        return
    for third in THIRDS:
        if not found.thirds[third]:
            yield Finding("warning", "", f"no fact is first said in the {third} third")


def region_findings(probe: Probe, history: History) -> Iterator[Finding]:
    """Warn of a probe that is answered by what every arm keeps."""
    if _in_system(probe, history):
        yield Finding("warning", "", "the system prompt alone holds every fact")
    elif _kept(probe, history):
        text = (
            f"every fact also stands in the kept tail (messages {history.tail_start} to "
            f"{history.cut - 1}): compression cannot lose it"
        )
        yield Finding("warning", "", text)


def _kept(probe: Probe, history: History) -> bool:
    return all(history.kept(fact.forms) for fact in probe.expected_facts)


def _in_system(probe: Probe, history: History) -> bool:
    head = range(history.start)
    return all(history.stated_in(fact.forms, head) for fact in probe.expected_facts)


def _place(fact: ExpectedFact, history: History) -> str:
    evidence = [index for index in fact.evidence if index < history.cut]
    first = min(evidence or history.stated_in(fact.forms), default=history.cut)
    return history.third(first) if first in history.compressed else "kept"


def _counted(counts: Mapping[_Name, int], names: Sequence[_Name]) -> str:
    return ", ".join(f"{name} {counts.get(name, 0)}" for name in names)
