"""Fixtures and banks as an Inspect dataset, with the plan behind each sample."""

from dataclasses import dataclass
from itertools import chain as joined
from itertools import zip_longest

from inspect_ai.dataset import Dataset, MemoryDataset, Sample

from compression_eval.arguments import CheckedArguments
from compression_eval.compressors.facts import track
from compression_eval.compressors.prompts import prompts_digest
from compression_eval.compressors.running import CompressionPlan
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.conversation import declared_tools
from compression_eval.fixtures.cuts import CutArgument, chain, resolve_cut
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.loading import FixtureWithBank
from compression_eval.fixtures.models import Fixture, Language
from compression_eval.grading.rubric import rubric_digest
from compression_eval.grading.stale import stale_values
from compression_eval.probing.prompts import preamble_digest
from compression_eval.probing.solver import ProbePlan


@dataclass(frozen=True)
class PlannedDataset:
    """Samples in the order they are to be run, and what to do for each."""

    samples: Dataset
    plans: dict[str, ProbePlan]
    """By sample id."""


def planned_dataset(
    arguments: CheckedArguments, *, cycles: int, language: Language | None, min_removed: float
) -> PlannedDataset:
    """Return one sample per fixture, cut and probe.

    Args:
        arguments: What to read and to compress.
        cycles: How many compressions lead to a cut.
        language: Language of the rubric; that of the bank or fixture if None.
        min_removed: Share of the tokens that each compression must remove.

    Raises:
        DataError: A cut does not fit a fixture, or no probe fits a cut.
    """
    plans: dict[str, ProbePlan] = {}
    groups: list[list[Sample]] = []
    for pair in arguments.pairs:
        for cut in arguments.cuts:
            group = _plan(pair, cut, arguments, cycles, language, min_removed)
            if any(sample_id in plans for sample_id, _, _ in group):
                raise DataError(f"cut: {cut!r} is in {pair.fixture.name!r} where another cut is")
            plans.update({sample_id: plan for sample_id, plan, _ in group})
            groups.append([sample for _, _, sample in group])
    name = ",".join(pair.fixture.name for pair in arguments.pairs)
    return PlannedDataset(MemoryDataset(_round_robin(groups), name=name), plans)


def rubric_language(pair: FixtureWithBank, language: Language | None) -> Language:
    """Return the language that answers about a fixture are graded in."""
    return language or pair.bank.language or pair.fixture.language


def _plan(
    pair: FixtureWithBank,
    cut: CutArgument,
    arguments: CheckedArguments,
    cycles: int,
    language: Language | None,
    min_removed: float,
) -> list[tuple[str, ProbePlan, Sample]]:
    """Return id, plan and sample of each probe that can be put to a fixture at a cut."""
    fixture, types = pair.fixture, arguments.types
    _refuse_unusable(pair)
    point = resolve_cut(fixture, cut)
    probes = [
        probe
        for probe in pair.bank.probes
        if (types is None or probe.type in types) and _fits(probe, point)
    ]
    tracked = track(fixture, point, probes)
    if point < len(fixture.messages):
        # A plain bank names no evidence: what the history does not hold yet cannot be asked.
        early = {item.probe_id for item in tracked if not item.evidence}
        probes = [probe for probe in probes if probe.id not in early]
        tracked = [item for item in tracked if item.probe_id not in early]
    if not probes:
        raise DataError(
            f"{pair.bank_path}: no probe to put at message {point} of {fixture.name!r}"
            + (f" (probe_types: {', '.join(sorted(types))})" if types else "")
        )
    graded_in = rubric_language(pair, language)
    compression = CompressionPlan(
        fixture=fixture,
        tools=declared_tools(fixture, point),
        cuts=chain(fixture, point, cycles),
        spec=arguments.spec,
        tracked=tracked,
        stale=stale_values(graded_in),
        min_removed=min_removed,
    )
    digests = {
        "fixture": digest(fixture),
        "bank": digest(pair.bank),
        "rubric": rubric_digest(graded_in),
        "question_preamble": preamble_digest(),
        "compressor": digest(str(arguments.spec.described())),
        "compressor_prompts": prompts_digest(),
    }
    result = []
    for probe in probes:
        sample_id = f"{fixture.name}/{probe.id}" + (f"@{point}" if len(arguments.cuts) > 1 else "")
        plan = ProbePlan(probe, graded_in, compression, digests)
        result.append(
            (
                sample_id,
                plan,
                _sample(
                    sample_id, fixture, probe, compression.cuts, several=len(arguments.pairs) > 1
                ),
            )
        )
    return result


def _refuse_unusable(pair: FixtureWithBank) -> None:
    """Raise for what `fixtures check` would find and a run cannot bear.

    Two samples cannot share an id, and a probe with evidence behind the end would fit no cut and
    silently be left out.
    """
    messages = len(pair.fixture.messages)
    seen: set[str] = set()
    for probe in pair.bank.probes:
        if probe.id in seen:
            raise DataError(f"{pair.bank_path}: two probes have the id {probe.id!r}")
        seen.add(probe.id)
        for fact in probe.expected_facts:
            if any(not 0 <= index < messages for index in fact.evidence):
                raise DataError(
                    f"{pair.bank_path}: probe {probe.id!r}: evidence {fact.evidence} is out of "
                    f"range, the fixture has {messages} messages"
                )


def _fits(probe: Probe, cut: int) -> bool:
    """Return whether a probe can be answered from what lies before a cut."""
    if probe.cut is not None and probe.cut != cut:
        return False
    evidence = [index for fact in probe.expected_facts for index in fact.evidence]
    return all(index < cut for index in evidence)


def _sample(
    sample_id: str, fixture: Fixture, probe: Probe, cuts: tuple[int, ...], *, several: bool
) -> Sample:
    # The input stays short: a transcript in it would be marked as input and never be compressed.
    return Sample(
        id=sample_id,
        input=probe.question,
        target=[fact.fact for fact in probe.expected_facts],
        metadata={
            "fixture": fixture.name,
            "cluster": fixture.name if several else sample_id,
            "probe_id": probe.id,
            "probe_type": probe.type,
            "task_type": fixture.task_type,
            "language": fixture.language,
            "length": _length(len(fixture.messages)),
            "cut": cuts[-1],
            "cycles": len(cuts),
        },
    )


def _length(messages: int) -> str:
    return "short" if messages < 50 else "medium" if messages < 150 else "long"


def _round_robin(groups: list[list[Sample]]) -> list[Sample]:
    """Take turns over the states, so that samples that wait for one do not fill all slots."""
    turns = zip_longest(*groups)
    return [sample for sample in joined.from_iterable(turns) if sample is not None]
