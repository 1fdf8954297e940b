"""Follow every expected fact through a compression: history, summariser's input, state."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from inspect_ai.model import ChatMessage, ChatMessageAssistant

from compression_eval.compressors.distortion import variants
from compression_eval.compressors.state import FactRecord, Region
from compression_eval.compressors.tokens import content_text
from compression_eval.fixtures.banks import ExpectedFact, Probe
from compression_eval.fixtures.matching import Text
from compression_eval.fixtures.models import Fixture, leaves

StaleValues = Callable[[str, ExpectedFact], list[str]]
"""Returns the superseded values of a fact that a text gives as current."""


def decoded_text(message: ChatMessage) -> str:
    """Return what a message says, with everything decoded that stands in it as JSON.

    Tool arguments are JSON, and so is the material that our summarising strategies send. In the
    encoded form a line break, a quotation mark or a backslash would hide a fact.
    """
    parts = [_decoded_line(line) for line in content_text(message).split("\n")]
    if isinstance(message, ChatMessageAssistant):
        for call in message.tool_calls or []:
            parts.extend((call.function, *leaves(call.arguments)))
    return "\n".join(parts)


def _decoded_line(line: str) -> str:
    if not line.startswith("{"):
        return line
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return line
    # The position of a message in the material is ours, and no fact of the conversation.
    value.pop("index", None)
    return "\n".join(leaves(value))


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
    stale: StaleValues | None = None,
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
        stale: Finds superseded values where a fact is missing; without it none are looked for.
    """
    fed_text = Text("\n".join(fed)) if fed is not None else None
    by_region = {
        region: Text(
            "\n".join(
                decoded_text(message)
                for message, place in zip(state, regions, strict=True)
                if place == region
            )
        )
        for region in dict.fromkeys(regions)
    }
    claims = "\n".join(_claims(state, regions))
    rewritten = "\n".join(_rewritten(state, regions))
    records: list[FactRecord] = []
    for item in tracked:
        forms = item.fact.forms
        found: list[Region] = [name for name, text in by_region.items() if text.has_any(forms)]
        missing = readable and not found
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
                superseded_in_state=stale(claims, item.fact) if missing and stale else [],
                variants_in_state=variants(forms, rewritten) if missing else [],
            )
        )
    return records


def _claims(state: Sequence[ChatMessage], regions: Sequence[Region]) -> Iterator[str]:
    """Yield what a state says, rather than shows: all but kept tool results.

    A kept result shows what a file or a command held when it was recorded; it claims nothing.
    """
    for message, region in zip(state, regions, strict=True):
        if region == "summary" or message.role != "tool":
            yield decoded_text(message)


def _rewritten(state: Sequence[ChatMessage], regions: Sequence[Region]) -> Iterator[str]:
    """Yield the texts that a compression wrote: what was kept cannot have been distorted."""
    for message, region in zip(state, regions, strict=True):
        if region == "summary":
            yield decoded_text(message)
