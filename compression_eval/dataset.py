"""Fixtures and banks as an Inspect dataset, with the plan behind each sample.

`dataset_of` loads the fixtures of a task's arguments and checks them. `_Planner` decides for each
fixture and cut which probes can be asked there, and makes a sample and a plan for each. Samples
have only small metadata; conversations stay in the plans, out of the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain as joined
from itertools import zip_longest
from pathlib import Path

from inspect_ai.dataset import Dataset, MemoryDataset, Sample

from compression_eval.arguments import CheckedArguments, TaskArguments, checked
from compression_eval.compressors.running import CompressionPlan
from compression_eval.errors import DataError, PassedOverError, nothing_left, shorten
from compression_eval.facts.records import track
from compression_eval.fixtures.banks import Probe, region, valid_qualification, verdict
from compression_eval.fixtures.conversation import declared_tools
from compression_eval.fixtures.cuts import Place, chain, places
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.loading import (
    FixtureSource,
    FixtureWithBank,
    StoredFixture,
    refuse_shared_names,
)
from compression_eval.fixtures.models import Fixture
from compression_eval.grading.metrics import REGION, VERDICT
from compression_eval.grading.rubric import rubric_digest
from compression_eval.plans import ProbePlan, preamble_digest
from compression_eval.record import AskedProbe

KEPT_MESSAGES = 20_000
"""Fixtures up to this many messages in all stay in memory; the others are read when needed."""

_LEAD, _CODE = 14, 5
"""Characters of an id's beginning: of the probe and its cut, and of a digest of all names."""

_NAMED_FIXTURES = 8
"""More fixtures than these are counted in the dataset's name."""


@dataclass(frozen=True)
class PlannedDataset:
    """Samples in the order they are to be run, and what to do for each."""

    samples: Dataset
    plans: dict[str, ProbePlan]
    """By sample id."""
    digests: dict[str, str]
    """Of every fixture and every bank, and of the rubrics they are graded by, by what it is."""
    passed_over: list[PassedOverError]
    """Fixtures and cuts that contain nothing for what was asked, and why."""


def dataset_of(arguments: TaskArguments) -> PlannedDataset:
    """Return the samples for a task's arguments; no model is called.

    Raises:
        DataError: As `checked` and `planned_dataset`.
    """
    return planned_dataset(checked(arguments))


def planned_dataset(ready: CheckedArguments) -> PlannedDataset:
    """Return one sample per fixture, cut and probe.

    Fixtures are read one after another, and only some stay in memory. Those that contain nothing
    for what was asked are skipped, and so are such cuts: an import makes many without probes.

    Raises:
        DataError: A file is not what it must be, everything was skipped, or the strategy can
            compress none of it.
    """
    planner = _Planner(ready)
    names: dict[str, str] = {}
    for source in ready.sources:
        try:
            pair = source.read()
            refuse_shared_names(pair.fixture, pair.origin, names)
            planner.add(pair, source)
        except PassedOverError as error:
            planner.passed_over.append(error)
    if not planner.groups:
        raise nothing_left(planner.passed_over)
    if planner.unsupported and all(planner.unsupported):
        raise DataError(f"compressor: {ready.spec.name}: {planner.unsupported[0]}")
    # Take turns over the states, so that samples that wait for one do not fill all slots.
    turns = joined.from_iterable(zip_longest(*planner.groups))
    samples = [sample for sample in turns if sample is not None]
    alone = len(planner.names) == 1 and not ready.sharded
    # With a single fixture, cluster by probe: a standard error over one cluster is 0.
    for sample in samples if alone else ():
        sample.metadata = (sample.metadata or {}) | {"cluster": sample.id}
    few = len(planner.names) <= _NAMED_FIXTURES
    name = ",".join(planner.names) if few else f"{len(planner.names)} fixtures"
    return PlannedDataset(
        MemoryDataset(samples, name=name),
        planner.plans,
        planner.digests | planner.rubrics,
        planner.passed_over,
    )


@dataclass
class _Planner:
    """Collects the samples and plans of one fixture after another."""

    ready: CheckedArguments
    plans: dict[str, ProbePlan] = field(default_factory=dict)
    groups: list[list[Sample]] = field(default_factory=list)
    """The samples of each state."""
    names: list[str] = field(default_factory=list)
    """Of the fixtures that are asked about."""
    digests: dict[str, str] = field(default_factory=dict)
    """Of these and their banks."""
    rubrics: dict[str, str] = field(default_factory=dict)
    passed_over: list[PassedOverError] = field(default_factory=list)
    unsupported: list[str | None] = field(default_factory=list)
    """For each fixture and cut: why it must fail."""
    kept: int = 0
    """Messages of all fixtures so far."""

    def add(self, pair: FixtureWithBank, source: FixtureSource) -> None:
        """Plan all samples of a fixture; cuts without any are skipped."""
        _refuse_unusable(pair)
        found = places(pair, self.ready.cuts, self.ready.types)
        if not found:
            raise self._no_probe(pair, "")
        name, digests = pair.fixture.name, (digest(pair.fixture), digest(pair.bank))
        self.kept += len(pair.fixture.messages)
        held: Fixture | StoredFixture = pair.fixture
        if self.kept > KEPT_MESSAGES:
            held = StoredFixture(name, source, digests[0])
        before = len(self.groups)
        for place in found:
            try:
                self._put(pair, place, held, digests, several_cuts=len(found) > 1)
            except PassedOverError as error:
                self.passed_over.append(error)
        if len(self.groups) > before:
            self.names.append(name)
            # Names of files without their folders, which may say whose they are.
            self.digests[f"fixture {name} ({Path(pair.origin).name})"] = digests[0]
            self.digests[f"bank of {name} ({Path(pair.bank_origin).name})"] = digests[1]

    def _put(
        self,
        pair: FixtureWithBank,
        place: Place,
        held: Fixture | StoredFixture,
        files: tuple[str, str],
        *,
        several_cuts: bool,
    ) -> None:
        """Plan the probes of one cut."""
        probes, tracked = _askable(pair.fixture, place)
        if not probes:
            raise self._no_probe(pair, f" at message {place.cut}")
        given, spec = self.ready.given, self.ready.spec
        cuts = chain(pair.fixture, place.cut, given.cycles)
        self.unsupported.append(spec.unsupported(pair.fixture, cuts))
        graded_in = given.language or pair.bank.language or pair.fixture.language
        compression = CompressionPlan(
            fixture=held,
            tools=declared_tools(pair.fixture, place.cut),
            cuts=cuts,
            spec=spec,
            tracked=tracked,
            min_removed=given.min_removed,
        )
        digests = {
            "fixture": files[0],
            "bank": files[1],
            "rubric": rubric_digest(graded_in),
            "question_preamble": preamble_digest(),
            "compressor": digest(str(spec.described())),
            "compressor_prompts": spec.texts_digest(),
        }
        self.rubrics[f"rubric {graded_in}"] = digests["rubric"]
        asked = tuple(map(AskedProbe.of, probes))
        mark = f"@{place.cut}" if several_cuts else ""
        group = [_sample(pair.fixture, probe, cuts, files[0], mark) for probe in probes]
        for sample, probe in zip(group, probes, strict=True):
            self.plans[str(sample.id)] = ProbePlan(probe, graded_in, compression, digests, asked)
        self.groups.append(group)

    def _no_probe(self, pair: FixtureWithBank, where: str) -> PassedOverError:
        types = self.ready.types
        return PassedOverError(
            f"{pair.bank_origin}: no probe to put{where} of {shorten(pair.fixture.name)}"
            + (f" (probe_types: {', '.join(sorted(types))})" if types else "")
        )


def _askable(fixture: Fixture, place: Place) -> tuple[list[Probe], list[Probe]]:
    """Return the probes whose facts the history before a cut can hold, as asked and as tracked.

    A plain bank names no evidence: what the history does not contain yet cannot be asked. A probe
    that names its cut stays, so that a fact that is nowhere shows as the bank's mistake.
    """
    tracked = track(fixture, place.cut, place.probes)
    if place.cut == len(fixture.messages):
        return place.probes, tracked
    named = {probe.id for probe in place.probes if probe.cut is not None}
    early = {
        probe.id
        for probe in tracked
        if not all(fact.evidence or fact.derived for fact in probe.expected_facts)
    } - named
    return (
        [probe for probe in place.probes if probe.id not in early],
        [probe for probe in tracked if probe.id not in early],
    )


def _refuse_unusable(pair: FixtureWithBank) -> None:
    """Raise for what `fixtures check` would find and a run cannot bear.

    Two samples cannot share an id, and a probe with evidence behind the end would fit no cut and
    silently be left out.
    """
    messages = len(pair.fixture.messages)
    seen: set[str] = set()
    for probe in pair.bank.probes:
        if probe.id in seen:
            raise DataError(f"{pair.bank_origin}: two probes have the id {probe.id!r}")
        seen.add(probe.id)
        for fact in probe.expected_facts:
            if any(not 0 <= index < messages for index in fact.evidence):
                raise DataError(
                    f"{pair.bank_origin}: probe {probe.id!r}: evidence {fact.evidence} is out of "
                    f"range, the fixture has {messages} messages"
                )


def sample_id(fixture: str, name: str, mark: str = "") -> str:
    """Return a sample's id: how it differs from others in its first 20 characters, then its names.

    The viewer's list shows no more than these.

    Args:
        fixture: Name of the fixture.
        name: Of what is asked: the probe's id.
        mark: Tells samples with the same names apart.
    """
    names = f"{fixture}/{name}{mark}"
    return f"{name[: max(0, _LEAD - len(mark))]}{mark[:_LEAD]}.{digest(names)[:_CODE]}/{names}"


def _sample(
    fixture: Fixture, probe: Probe, cuts: Sequence[int], fixture_digest: str, mark: str
) -> Sample:
    qualification = valid_qualification(probe, fixture_digest, cuts[-1])
    messages = len(fixture.messages)
    # The input stays short: a transcript in it would be marked as input and never be compressed.
    return Sample(
        input=probe.question,
        target=[fact.fact for fact in probe.expected_facts]
        or [probe.reference_answer or probe.rubric or "(unanswerable)"],
        id=sample_id(fixture.name, probe.id, mark),
        metadata={
            "fixture": fixture.name,
            "cluster": fixture.name,
            "probe_id": probe.id,
            "probe_type": probe.type,
            "task_type": fixture.task_type,
            "language": fixture.language,
            "length": "short" if messages < 50 else "medium" if messages < 150 else "long",
            "cut": cuts[-1],
            "cycles": len(cuts),
            VERDICT: verdict(qualification),
            REGION: region(qualification),
        },
    )
