"""What became of each expected fact: in the history, the summariser, the state and the answer.

`follow_facts` joins what was recorded at compression time (`records.FactRecord`), what a reader
says of the state (`StateFinding`), and the grader's word on the answer into a `FactFinding` per
fact. Where a language model gave its word, that word decides, else the look-up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from compression_eval.facts.records import FactRecord, Region
from compression_eval.fixtures.banks import ExpectedFact, Probe
from compression_eval.text.lookup import Text

Stage = Literal[
    "not_in_history",
    "used",
    "verbatim",
    "unused",
    "survived",
    "answered_not_found",
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
``survived`` (there is no answer). Not in the state, and the first of these that contains:
``answered_not_found`` (in the answer all the same), ``never_fed`` to the summarising model,
``superseded`` (an earlier value is in the state instead), ``distorted`` (its name stands
there with another value), ``dropped`` by the summarising model, ``lost`` (no summarising model was
seen). In a state that cannot be read: ``answered``, ``unanswered``, or ``unknown`` if nothing tells
of the answer either. Without a state: ``compression_failed``.

What a reader can only derive counts as in the state.
"""


StateWord = Literal["stated", "derivable", "absent"]
"""Whether a state contains a fact, according to a reader."""

AnswerWord = Literal["stated", "contradicted", "missing"]
"""Whether an answer gives a fact, or a wrong value, as true now, according to its grader."""

AGE_GROUPS = ("first quarter", "second quarter", "third quarter", "last quarter", "unknown")
"""Parts of the history, the oldest first."""


@dataclass(frozen=True)
class StateFinding:
    """What a reader says of one fact in a state."""

    word: StateWord | None
    """None if the reader gave no usable word."""
    quotes: tuple[str, ...] = ()
    """Passages of the state that support it, as the reader copied them."""
    regions: tuple[Region, ...] = ()
    """Where in the state they stand."""
    problem: str = ""
    """Why there is no word; empty if there is one."""


def wrong_values(probe: Probe) -> list[list[str]]:
    """Return the forms of each value that an answer must not give as current.

    They are the superseded values of the probe's facts, and its forbidden facts.
    """
    superseded = [[value] for fact in probe.expected_facts for value in fact.superseded]
    forbidden = [fact.forms for fact in probe.forbidden_facts]
    return list({forms[0]: forms for forms in [*superseded, *forbidden]}.values())


class Age(NamedTuple):
    """How long before the cut a fact was first stated."""

    messages: int
    """Messages from its first evidence to the cut; 1 is the last message before it."""
    share: float
    """The same as a share of the history; near 1 is its beginning."""


def age_group(share: float | None) -> str:
    """Return the quarter of the history that a fact comes from.

    Args:
        share: Its age as a share of the history; None if it is not known.
    """
    return "unknown" if share is None else AGE_GROUPS[3 - min(int(share * 4), 3)]


@dataclass(frozen=True)
class FactFinding:
    """One expected fact, followed from the history to the answer."""

    fact: ExpectedFact
    record: FactRecord | None
    """What was recorded at compression time; None if nothing was."""
    in_answer: bool | None
    """Whether the look-up found it in the answer; None without an answer or for a derived fact."""
    failed: bool = False
    """Whether the compression gave no state."""
    read: StateFinding | None = None
    """What a reader says of the state; None if none did."""
    graded: AnswerWord | None = None
    """The grader's word on the answer; None if it gave none."""

    @property
    def in_state(self) -> bool | None:
        """Whether the look-up found it in the state; None if that is not known."""
        return self.record.in_state if self.record else None

    @property
    def in_state_read(self) -> bool | None:
        """Whether the reader says that the state contains it; None if it does not say."""
        word = self.read.word if self.read else None
        return None if word is None else word != "absent"

    @property
    def in_answer_read(self) -> bool | None:
        """Whether the grader says that the answer states it; None if it does not say."""
        return None if self.graded is None else self.graded == "stated"

    @property
    def stated(self) -> bool | None:
        """Whether the answer states it: the grader's word decides, else the look-up."""
        return self.in_answer if self.in_answer_read is None else self.in_answer_read

    @property
    def agreed(self) -> bool | None:
        """Whether look-up and reader agree about the state; None if one says nothing."""
        if self.in_state is None or self.in_state_read is None:
            return None
        return self.in_state == self.in_state_read

    @property
    def stage(self) -> Stage:
        """What became of the fact."""
        if self.record is not None and not self.record.in_history:
            return "not_in_history"
        if self.failed:
            return "compression_failed"
        present = self.in_state if self.in_state_read is None else self.in_state_read
        if present is None:
            return _pick(self.stated, "answered", "unanswered", "unknown")
        if present:
            verbatim = self.regions and "summary" not in self.regions
            return _pick(self.stated, "verbatim" if verbatim else "used", "unused", "survived")
        return "answered_not_found" if self.stated else self._missing

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

    @property
    def regions(self) -> Sequence[Region]:
        """The parts of the state that contain it: by look-up, else by the reader's quotes."""
        if self.record is not None and self.record.regions:
            return self.record.regions
        return self.read.regions if self.read else ()

    @property
    def region(self) -> str:
        """`regions` joined by ``+``; empty if no region contains it."""
        return "+".join(self.regions)

    @property
    def instead(self) -> list[str]:
        """What the state says instead of the fact."""
        if self.record is None:
            return []
        return [*self.record.superseded_in_state, *self.record.variants_in_state]

    def age(self, cut: int) -> Age | None:
        """Return the fact's age at a cut; None if no message is known to contain it."""
        if self.record is None or not self.record.evidence or cut < 1:
            return None
        messages = cut - min(self.record.evidence)
        return Age(messages, messages / cut)

    def row(self, cut: int) -> dict[str, Any]:
        """Return the finding as a score's metadata contains it, in plain values.

        Args:
            cut: Where the history ended.
        """
        record, age, reading = self.record, self.age(cut), self.read
        return {
            "fact": self.fact.fact,
            "in_history": record.in_history if record else None,
            "fed": record.fed if record else None,
            "in_state": self.in_state,
            "in_state_read": reading.word if reading else None,
            "state_quotes": list(reading.quotes) if reading else [],
            "state_read_problem": reading.problem if reading else "",
            "regions": list(self.regions),
            "cycles": record.cycles if record else None,
            "age_messages": age.messages if age else None,
            "age_share": round(age.share, 3) if age else None,
            "instead": self.instead,
            "in_answer": self.in_answer,
            "in_answer_read": self.graded,
            "stage": self.stage,
        }


def _pick(known: bool | None, yes: Stage, no: Stage, unknown: Stage) -> Stage:
    if known is None:
        return unknown
    return yes if known else no


def follow_facts(
    probe: Probe,
    records: Sequence[FactRecord],
    answer: str | None,
    *,
    failed: bool = False,
    read: Sequence[StateFinding | None] = (),
    graded: Sequence[AnswerWord | None] = (),
) -> list[FactFinding]:
    """Return a finding for every expected fact of a probe, in the probe's order.

    Args:
        probe: The question with its expected facts.
        records: What was recorded about the probe's facts at compression time.
        answer: What the model said; None if there is no answer.
        failed: Whether the compression gave no state.
        read: What a reader says of each fact in the state; empty if it was not read.
        graded: The grader's word on each fact in the answer; empty if there is none.
    """
    by_fact = {record.fact: record for record in records if record.probe_id == probe.id}
    text = None if answer is None else Text(answer)
    facts = probe.expected_facts
    nothing = [None] * len(facts)
    return [
        FactFinding(
            fact,
            by_fact.get(fact.fact),
            None if text is None or fact.derived else text.has_any(fact.forms),
            failed,
            finding,
            word,
        )
        for fact, finding, word in zip(facts, read or nothing, graded or nothing, strict=True)
    ]


def row_words(row: Mapping[str, Any]) -> tuple[StateFinding | None, AnswerWord | None]:
    """Return the words that `FactFinding.row` keeps; none in rows of older logs."""
    word, quotes = row.get("in_state_read"), row.get("state_quotes") or ()
    regions = tuple(row.get("regions") or ())
    finding = None if word is None else StateFinding(word, tuple(quotes), regions)
    return finding, row.get("in_answer_read")
