"""Where each expected fact was lost, decided by look-ups alone."""

from dataclasses import dataclass
from typing import Literal

from compression_eval.compressors.state import FactRecord
from compression_eval.fixtures.matching import Text
from compression_eval.fixtures.models import ExpectedFact, Probe

Stage = Literal[
    "absent",
    "used",
    "verbatim",
    "ignored",
    "survived",
    "unfed",
    "dropped",
    "lost",
    "guessed",
    "answered",
    "unanswered",
    "unknown",
]
"""What became of a fact.

``absent``: never in the history. In the state: ``used`` in the answer, ``verbatim`` (used, but in
the state only because its messages were kept as they were), ``ignored`` by the answer, ``survived``
(there is no answer). Not in the state: ``unfed`` (it never reached the summarising model),
``dropped`` (it did), ``lost`` (no summarising model was seen), ``guessed`` (and yet in the answer).
In a state that cannot be read: ``answered``, ``unanswered``, or ``unknown`` without an answer.
"""


@dataclass(frozen=True)
class FactFinding:
    """One expected fact, followed from the history to the answer."""

    fact: ExpectedFact
    record: FactRecord | None
    """What was recorded at compression time; None if nothing was."""
    in_answer: bool | None
    """None if there is no answer."""

    @property
    def in_state(self) -> bool | None:
        """Whether it is in the state; None if that is not known."""
        return self.record.in_state if self.record else None

    @property
    def stage(self) -> Stage:
        """What became of the fact."""
        if self.record is not None and not self.record.in_history:
            return "absent"
        if self.in_state is None:
            return _pick(self.in_answer, "answered", "unanswered", "unknown")
        if self.in_state:
            return _pick(self.in_answer, self._used, "ignored", "survived")
        if self.in_answer:
            return "guessed"
        return _pick(self.record.fed if self.record else None, "dropped", "unfed", "lost")

    @property
    def _used(self) -> Stage:
        regions = self.record.regions if self.record else []
        return "verbatim" if regions and "summary" not in regions else "used"


def _pick(known: bool | None, yes: Stage, no: Stage, unknown: Stage) -> Stage:
    if known is None:
        return unknown
    return yes if known else no


def follow_facts(probe: Probe, records: list[FactRecord], answer: str | None) -> list[FactFinding]:
    """Return a finding for every expected fact of a probe, in the probe's order.

    Args:
        probe: The question with its expected facts.
        records: What was recorded about the probe's facts at compression time.
        answer: What the model said; None if there is no answer.
    """
    by_fact = {record.fact: record for record in records if record.probe_id == probe.id}
    text = None if answer is None else Text(answer)
    return [
        FactFinding(
            fact=fact,
            record=by_fact.get(fact.fact),
            in_answer=None if text is None else text.has_any(fact.forms),
        )
        for fact in probe.expected_facts
    ]
