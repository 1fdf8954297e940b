"""A probe on its way into a bank, and why others did not get there."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from compression_eval.authoring.history import History, Third
from compression_eval.fixtures.banks import AnswerKey, ExpectedFact, Probe, ProbeType

DRAFT = "draft"
"""The id of a probe before it has its place in a bank."""


@dataclass(frozen=True)
class Candidate:
    """A probe that may be taken, and what decides which are."""

    probe: Probe
    template: str
    """What it is made after; few of one kind are taken."""
    third: Third
    warnings: tuple[str, ...] = ()
    """What a person should look at."""


@dataclass(frozen=True)
class Dropped:
    """A candidate that was not fit, and why."""

    type: ProbeType
    origin: str
    question: str
    reasons: tuple[str, ...]


@dataclass
class Harvest:
    """Candidates and what was dropped on the way to them."""

    candidates: list[Candidate] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    def add(self, other: "Harvest") -> None:
        """Take over what another has."""
        self.candidates.extend(other.candidates)
        self.dropped.extend(other.dropped)


def draft(
    history: History,
    kind: ProbeType,
    question: str,
    facts: Sequence[ExpectedFact],
    answer: str,
    origin: str,
    key: AnswerKey | None = None,
) -> Probe:
    """Return a probe without an id; only fields with a value are set, so only they are written."""
    more = {"answer_key": key} if key is not None else {}
    return Probe(
        id=DRAFT,
        type=kind,
        question=question,
        expected_facts=list(facts),
        reference_answer=answer,
        cut=history.cut,
        origin=origin,
        **more,
    )


def fact(
    text: str,
    evidence: Sequence[int],
    any_of: Sequence[str] = (),
    superseded: Sequence[str] = (),
) -> ExpectedFact:
    """Return an expected fact; only fields with a value are set."""
    others = list(dict.fromkeys(form for form in any_of if form != text))
    fields: dict[str, object] = {"fact": text}
    if others:
        fields["any_of"] = others
    fields["evidence"] = sorted(set(evidence))
    if superseded:
        fields["superseded"] = list(dict.fromkeys(superseded))
    return ExpectedFact.model_validate(fields)


def third_of(probe: Probe, history: History) -> Third:
    """Return the third of the compressed part that a probe is about.

    It is where those facts first stand that the kept parts do not give; the middle one of several.
    """
    needed = [item for item in probe.expected_facts if not history.kept(item.forms)]
    places = sorted(min(item.evidence) for item in needed or probe.expected_facts if item.evidence)
    return history.third(places[len(places) // 2] if places else history.start)
