"""What became of each expected fact, by look-up and by the words of readers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from compression_eval.facts.markers import ValueMarkers
from compression_eval.facts.records import FactRecord, Region
from compression_eval.facts.stated import stated_facts
from compression_eval.fixtures.banks import ExpectedFact, Probe

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
``survived`` (there is no answer). Not in the state, and the first of these that holds:
``answered_not_found`` (in the answer all the same), ``never_fed`` to the summarising model,
``superseded`` (an earlier value stands in the state as current), ``distorted`` (its name stands
there with another value), ``dropped`` by the summarising model, ``lost`` (no summarising model was
seen). In a state that cannot be read: ``answered``, ``unanswered``, or ``unknown`` if nothing tells
of the answer either. Without a state: ``compression_failed``.

Where a reader gave its word on the state, or the grader on the answer, that word decides, else the
look-up. What a reader can only derive counts as in the state.
"""


StateWord = Literal["stated", "derivable", "absent"]
"""Whether a state holds a fact, according to a reader."""

AnswerWord = Literal["stated", "contradicted", "missing"]
"""Whether an answer states a fact, according to its grader."""

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


class FactWords(NamedTuple):
    """What readers say about one fact; None if they say nothing."""

    state: StateFinding | None = None
    answer: AnswerWord | None = None

    @classmethod
    def in_row(cls, row: Mapping[str, Any]) -> "FactWords":
        """Return the words that `FactFinding.row` holds; none in rows of older logs."""
        word, quotes = row.get("in_state_read"), row.get("state_quotes") or ()
        regions = tuple(row.get("regions") or ())
        read = None if word is None else StateFinding(word, tuple(quotes), regions)
        return cls(read, row.get("in_answer_read"))


NO_WORDS = FactWords()


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
    """None if there is no answer, or if the fact is derived."""
    failed: bool = False
    """Whether the compression gave no state."""
    words: FactWords = NO_WORDS

    @property
    def in_state(self) -> bool | None:
        """Whether the look-up found it in the state; None if that is not known."""
        return self.record.in_state if self.record else None

    @property
    def in_state_read(self) -> bool | None:
        """Whether the reader says that the state holds it; None if it does not say."""
        word = self.words.state.word if self.words.state else None
        return None if word is None else word != "absent"

    @property
    def in_answer_read(self) -> bool | None:
        """Whether the grader says that the answer states it; None if it does not say."""
        return None if self.words.answer is None else self.words.answer == "stated"

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
        """The parts of the state that hold it: by look-up, else where the reader's quotes stand."""
        if self.record is not None and self.record.regions:
            return self.record.regions
        return self.words.state.regions if self.words.state else ()

    @property
    def region(self) -> str:
        """`regions` joined by ``+``; empty if no region holds it."""
        return "+".join(self.regions)

    @property
    def instead(self) -> list[str]:
        """What the state says instead of the fact."""
        if self.record is None:
            return []
        return [*self.record.superseded_in_state, *self.record.variants_in_state]

    def age(self, cut: int) -> Age | None:
        """Return the fact's age at a cut; None if no message is known to hold it."""
        if self.record is None or not self.record.evidence or cut < 1:
            return None
        messages = cut - min(self.record.evidence)
        return Age(messages, messages / cut)

    def row(self, cut: int) -> dict[str, Any]:
        """Return the finding as a score's metadata holds it, in plain values.

        Args:
            cut: Where the history ended.
        """
        record, age, reading = self.record, self.age(cut), self.words.state
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
            "in_answer_read": self.words.answer,
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
    markers: ValueMarkers,
    *,
    failed: bool = False,
    words: Sequence[FactWords] = (),
    looked_up: Sequence[bool | None] = (),
) -> list[FactFinding]:
    """Return a finding for every expected fact of a probe, in the probe's order.

    Args:
        probe: The question with its expected facts.
        records: What was recorded about the probe's facts at compression time.
        answer: What the model said; None if there is no answer.
        markers: The signs of denial in the answer's language.
        failed: Whether the compression gave no state.
        words: What readers say of each fact, in the probe's order; empty if nothing was read.
        looked_up: Whether the answer holds each fact, in the probe's order, if it is known; else
            the answer is searched.
    """
    by_fact = {record.fact: record for record in records if record.probe_id == probe.id}
    facts = probe.expected_facts
    unknown: list[bool | None] = [None] * len(facts)
    stated = unknown if answer is None else looked_up or stated_facts(probe, answer, markers)
    return [
        FactFinding(fact, by_fact.get(fact.fact), in_answer, failed, fact_words)
        for fact, in_answer, fact_words in zip(
            facts, stated, words or [NO_WORDS] * len(facts), strict=True
        )
    ]
