"""Where each expected fact was lost, decided by look-ups alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compression_eval.compressors.state import FactRecord
from compression_eval.fixtures.banks import ExpectedFact, Probe
from compression_eval.fixtures.models import Language
from compression_eval.grading.stated import stated_facts

Stage = Literal[
    "not_in_history",
    "used",
    "verbatim",
    "unused",
    "survived",
    "guessed",
    "never_fed",
    "superseded",
    "distorted",
    "dropped",
    "lost",
    "answered",
    "unanswered",
    "unknown",
    "compression_failed",
]
"""What became of a fact; every fact of a sample has exactly one.

``not_in_history``: the bank is wrong. In the state: ``used`` in the answer, ``verbatim`` (used, but
in the state only because its messages were kept as they were), ``unused`` by the answer,
``survived`` (there is no answer). Not in the state, and the first of these that holds: ``guessed``
(in the answer all the same), ``never_fed`` to the summarising model, ``superseded`` (an earlier
value stands in the state as current), ``distorted`` (its name stands there with another value),
``dropped`` by the summarising model, ``lost`` (no summarising model was seen). In a state that
cannot be read: ``answered``, ``unanswered``, or ``unknown`` without an answer. Without a state:
``compression_failed``.
"""


@dataclass(frozen=True)
class Age:
    """How long before the cut a fact was first said."""

    messages: int
    """Messages from its first evidence to the cut; 1 is the last message before it."""
    share: float
    """The same as a share of the history; near 1 is its beginning."""


@dataclass(frozen=True)
class FactFinding:
    """One expected fact, followed from the history to the answer."""

    fact: ExpectedFact
    record: FactRecord | None
    """What was recorded at compression time; None if nothing was."""
    in_answer: bool | None
    """None if there is no answer."""
    failed: bool = False
    """Whether the compression gave no state."""

    @property
    def in_state(self) -> bool | None:
        """Whether it is in the state; None if that is not known."""
        return self.record.in_state if self.record else None

    @property
    def stage(self) -> Stage:
        """What became of the fact."""
        if self.record is not None and not self.record.in_history:
            return "not_in_history"
        if self.failed:
            return "compression_failed"
        if self.in_state is None:
            return _pick(self.in_answer, "answered", "unanswered", "unknown")
        if self.in_state:
            return _pick(self.in_answer, self._used, "unused", "survived")
        return "guessed" if self.in_answer else self._missing

    @property
    def region(self) -> str:
        """The parts of the state that hold it, joined by ``+``; empty if none does."""
        return "+".join(self.record.regions) if self.record else ""

    @property
    def instead(self) -> list[str]:
        """What the state says in the fact's place."""
        if self.record is None:
            return []
        return [*self.record.superseded_in_state, *self.record.variants_in_state]

    def age(self, cut: int) -> Age | None:
        """Return the fact's age at a cut; None if no message is known to hold it."""
        if self.record is None or not self.record.evidence or cut < 1:
            return None
        messages = cut - min(self.record.evidence)
        return Age(messages, messages / cut)

    @property
    def _used(self) -> Stage:
        regions = self.record.regions if self.record else []
        return "verbatim" if regions and "summary" not in regions else "used"

    @property
    def _missing(self) -> Stage:
        record = self.record
        if record is None:
            return "lost"
        if record.fed is False:
            return "never_fed"
        if record.superseded_in_state:
            return "superseded"
        if record.variants_in_state:
            return "distorted"
        return "dropped" if record.fed else "lost"


def _pick(known: bool | None, yes: Stage, no: Stage, unknown: Stage) -> Stage:
    if known is None:
        return unknown
    return yes if known else no


def follow_facts(
    probe: Probe,
    records: Sequence[FactRecord],
    answer: str | None,
    language: Language,
    *,
    failed: bool = False,
) -> list[FactFinding]:
    """Return a finding for every expected fact of a probe, in the probe's order.

    Args:
        probe: The question with its expected facts.
        records: What was recorded about the probe's facts at compression time.
        answer: What the model said; None if there is no answer.
        language: The language of the conversation.
        failed: Whether the compression gave no state.
    """
    by_fact = {record.fact: record for record in records if record.probe_id == probe.id}
    unknown: list[bool | None] = [None] * len(probe.expected_facts)
    stated = unknown if answer is None else stated_facts(probe, answer, language)
    return [
        FactFinding(
            fact=fact,
            record=by_fact.get(fact.fact),
            in_answer=in_answer,
            failed=failed,
        )
        for fact, in_answer in zip(probe.expected_facts, stated, strict=True)
    ]
