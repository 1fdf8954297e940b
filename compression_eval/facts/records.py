"""What is recorded about every expected fact at compression time: history, summarizer, state.

`track` finds the messages before the cut that state each fact. `fact_records` looks each fact up
in what the summarizing model was shown and in the state after each compression, so that a lost fact
can be traced to the step that lost it.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from inspect_ai.model import ChatMessage
from pydantic import BaseModel, ConfigDict, Field

from compression_eval.fixtures.banks import ExpectedFact, Probe
from compression_eval.fixtures.conversation import decoded_text
from compression_eval.fixtures.models import Fixture
from compression_eval.text.lookup import Text, normalise

Region = Literal["head", "summary", "tail"]
"""Part of a state: kept verbatim at the start, rewritten, or kept at the end."""


class FactRecord(BaseModel):
    """Where one expected fact was before, during and after the compression."""

    model_config = ConfigDict(frozen=True)

    probe_id: str
    fact: str
    evidence: list[int] = Field(default_factory=list)
    """Indices of the messages that contain the fact in the original history."""
    in_history: bool
    fed: bool | None = None
    """Whether it reached a summarising model; None if no model call was seen."""
    in_state: bool | None = None
    """Whether it is in the state; None if the state cannot be read, or if the fact is derived and
    no look-up can tell."""
    regions: list[Region] = Field(default_factory=list)
    cycles: int = 0
    """Number of compressions whose input held its first evidence."""
    found: list[bool] = Field(default_factory=list)
    """Whether it was in the state after each of these; empty where only the last state was seen."""
    superseded_in_state: list[str] = Field(default_factory=list)
    """Superseded values that the state has instead; searched only if the fact is missing."""
    variants_in_state: list[str] = Field(default_factory=list)
    """The fact's own names with other values in rewritten messages; only if it is missing."""


def track(fixture: Fixture, cut: int, probes: Sequence[Probe]) -> list[Probe]:
    """Return the probes with the evidence that the history before a cut holds for each fact.

    Evidence that the bank names counts if it lies before the cut; without any, the history is
    searched. A fact without evidence after that does not occur before the cut, unless it is
    derived.
    """
    texts: list[Text] = []

    def tracked(fact: ExpectedFact) -> ExpectedFact:
        if fact.evidence:
            evidence = [index for index in fact.evidence if index < cut]
        else:
            texts.extend(Text(m.searchable()) for m in fixture.messages[len(texts) : cut])
            evidence = [index for index, text in enumerate(texts) if text.has_any(fact.forms)]
        return fact.model_copy(update={"evidence": evidence})

    return [
        probe.model_copy(update={"expected_facts": list(map(tracked, probe.expected_facts))})
        for probe in probes
    ]


def fact_records(
    probes: Sequence[Probe],
    *,
    cuts: Sequence[int],
    fed: Sequence[str] | None,
    state: Sequence[ChatMessage],
    regions: Sequence[Region],
    readable: bool,
    earlier: Sequence[str] = (),
    seen: dict[bytes, list[bool]] | None = None,
) -> list[FactRecord]:
    """Return where each expected fact is.

    Args:
        probes: What is asked, with the evidence that `track` found.
        cuts: The compression points of the chain.
        fed: Texts that summarising models were given, over all cycles; None if no model was
            called.
        state: The messages left.
        regions: Their regions.
        readable: Whether the state's text can be read at all.
        earlier: The texts of the states before it, where it is not the first of its chain.
        seen: What calls with the same probes found in fed texts, by digest; this one adds to it.
            Replicates feed a summariser the same history, the longest text of all.
    """
    facts = [(probe, fact) for probe in probes for fact in probe.expected_facts]
    was_fed: Sequence[bool | None] = [None] * len(facts)
    if fed is not None:
        fed_text, seen = "\n".join(fed), {} if seen is None else seen
        key = hashlib.sha256(fed_text.encode(errors="surrogatepass")).digest()
        if key not in seen:
            searched = Text(fed_text)
            seen[key] = [searched.has_any(fact.forms) for _, fact in facts]
        was_fed = seen[key]
    parts = [
        (region, message.role, decoded_text(message))
        for message, region in zip(state, regions, strict=True)
    ]
    by_region = {
        region: Text("\n".join(text for place, _, text in parts if place == region))
        for region in dict.fromkeys(regions)
    }
    # A kept result shows what a file or a command held when it was recorded; it claims nothing.
    claims = Text(
        "\n".join(text for place, role, text in parts if place == "summary" or role != "tool")
    )
    states = [*map(Text, earlier), Text("\n".join(text for *_, text in parts))] if earlier else []
    # What was kept cannot have been distorted.
    rewritten = "\n".join(text for place, _, text in parts if place == "summary")

    def record(probe: Probe, fact: ExpectedFact, fed: bool | None) -> FactRecord:
        in_regions: list[Region] = [
            name for name, text in by_region.items() if text.has_any(fact.forms)
        ]
        missing = readable and not in_regions
        if fact.derived:  # what it follows from may be there in other words
            missing, fed = False, fed or None
        since = [cut for cut in cuts if fact.evidence and fact.evidence[0] < cut]
        looked = readable and not fact.derived
        return FactRecord(
            probe_id=probe.id,
            fact=fact.fact,
            evidence=fact.evidence,
            in_history=fact.derived or bool(fact.evidence),
            fed=fed,
            in_state=bool(in_regions) if looked else None,
            regions=in_regions if readable else [],
            cycles=len(since),
            found=[text.has_any(fact.forms) for text in states[len(cuts) - len(since) :]]
            if looked
            else [],
            superseded_in_state=_superseded(fact, claims) if missing else [],
            variants_in_state=variants(fact.forms, rewritten) if missing else [],
        )

    return [record(*each, fed) for each, fed in zip(facts, was_fed, strict=True)]


def _superseded(fact: ExpectedFact, claims: Text) -> list[str]:
    """Return the superseded values of a fact that a state has; a bare number can be anything's."""
    return [
        value for value in fact.superseded if any(map(str.isalpha, value)) and claims.spells(value)
    ]


_NUMBER = r"-?\d+(?:\.\d+)?"
_SETTING = re.compile(
    rf"^'?(?P<name>[a-z][\w.-]*[a-z0-9])'?(?P<between> ?[:=|(] ?| (?:of|is|was|to|at) | )"
    rf"(?:(?:int|float) ?= ?)?'?(?P<value>{_NUMBER})\b"
)
_BETWEEN = r"'?(?:\s?[:=|(,]\s?|\s(?:of|is|to|at|set to|is set to|stays at|stays)\s|\s|->)'?"
_CHANGED_TO = re.compile(rf"^[^.\n]{{0,12}}?(?:->|\bto\b)\s?'?(?P<value>{_NUMBER})")
_WHOLE = r"(?![\d_a-z]|\.\d)"


def variants(forms: Sequence[str], text: str) -> list[str]:
    """Return each name of a fact that a text gives another value, with that value, in order.

    Only settings can be told apart from coincidence by look-ups. A fact has a name if one of its
    forms is ``name=value``, ``name: value``, or a name with ``_`` or ``-`` inside followed by a
    number (``Retry-After 2``, ``lift_after_s of 360``). A variant is that name, as a whole token,
    followed by a number that no form of the fact gives.

    Limits, on purpose: numbers that count something (``17 ranges``, ``48 小时``), dates, codes and
    words have no name and so no variants; a name that stands for several things (``timeout`` of two
    services) gives a false one; and ``name from 24 to 8`` says nothing.

    Args:
        forms: All accepted forms of the fact.
        text: Any text.
    """
    settings = list(_settings(forms))
    accepted = {value for _, value in settings}
    named: list[str] = []
    searched = normalise(text) if settings else ""
    for name in dict.fromkeys(name for name, _ in settings):
        pattern = re.compile(rf"(?<![\w.-]){re.escape(name)}{_BETWEEN}(?P<value>{_NUMBER}){_WHOLE}")
        for match in pattern.finditer(searched):
            changed = _CHANGED_TO.match(searched[match.end() : match.end() + 30])
            value = changed["value"] if changed else match["value"]
            if float(value) not in accepted:
                named.append(f"{name} {value}")
    return list(dict.fromkeys(named))


def _settings(forms: Sequence[str]) -> Iterator[tuple[str, float]]:
    for form in forms:
        match = _SETTING.match(normalise(form))
        if match is None:
            continue
        name = match["name"]
        if match["between"].strip() in (":", "=") or "_" in name or "-" in name:
            yield name, float(match["value"])
