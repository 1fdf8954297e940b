"""Follow every expected fact through a compression: history, summariser's input, state."""

from collections.abc import Sequence
from dataclasses import dataclass

from inspect_ai.model import ChatMessage

from compression_eval.compressors.state import FactRecord, Region
from compression_eval.compressors.tokens import message_text
from compression_eval.fixtures.matching import Text
from compression_eval.fixtures.models import ExpectedFact, Fixture, Probe


@dataclass(frozen=True)
class TrackedFact:
    """An expected fact with the place it has in the history before a cut."""

    probe_id: str
    fact: ExpectedFact
    evidence: tuple[int, ...]
    """Messages before the cut that hold it; empty if none does."""


def track(fixture: Fixture, cut: int, probes: Sequence[Probe]) -> list[TrackedFact]:
    """Find the expected facts of some probes in a fixture's history before a cut.

    Evidence that the bank names is taken as it is; without any, the history is searched.
    """
    texts: list[Text] | None = None
    result: list[TrackedFact] = []
    for probe in probes:
        for fact in probe.expected_facts:
            evidence = tuple(index for index in fact.evidence if index < cut)
            if not fact.evidence:
                texts = texts or [Text(m.searchable()) for m in fixture.messages[:cut]]
                evidence = tuple(
                    index for index, text in enumerate(texts) if text.has_any(fact.forms)
                )
            result.append(TrackedFact(probe.id, fact, evidence))
    return result


def fact_records(
    tracked: Sequence[TrackedFact],
    *,
    cuts: Sequence[int],
    fed: Sequence[str] | None,
    state: Sequence[ChatMessage],
    regions: Sequence[Region],
    readable: bool,
) -> list[FactRecord]:
    """Return where each fact is.

    Args:
        tracked: The facts, as `track` found them.
        cuts: The compression points of the chain.
        fed: Texts that summarising models were given, over all cycles; None if no model was
            called, so that nothing can be said.
        state: The messages left.
        regions: Their regions.
        readable: Whether the state's text can be read at all.
    """
    fed_text = Text("\n".join(fed)) if fed is not None else None
    by_region = {
        region: Text(
            "\n".join(
                message_text(message)
                for message, place in zip(state, regions, strict=True)
                if place == region
            )
        )
        for region in dict.fromkeys(regions)
    }
    records: list[FactRecord] = []
    for item in tracked:
        forms = item.fact.forms
        found: list[Region] = [name for name, text in by_region.items() if text.has_any(forms)]
        records.append(
            FactRecord(
                probe_id=item.probe_id,
                fact=item.fact.fact,
                evidence=list(item.evidence),
                in_history=bool(item.evidence),
                fed=fed_text.has_any(forms) if fed_text is not None else None,
                in_state=bool(found) if readable else None,
                regions=found if readable else [],
                cycles=sum(1 for cut in cuts if item.evidence and item.evidence[0] < cut),
            )
        )
    return records
