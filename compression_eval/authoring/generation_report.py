"""Say what was made and what was not: lines for a terminal, data for a file."""

from collections.abc import Iterator, Sequence
from typing import Any

from compression_eval.authoring.candidates import Dropped
from compression_eval.authoring.generating import CutResult, FixtureResult, Wanted
from compression_eval.authoring.model_generator import Usage
from compression_eval.fixtures.errors import PassedOverError, shorten

_SHOWN_DROPPED = 12
_TELLS_NO_REASONS = "tool calls tell no reasons: decisions need a model (--model)"


def lines(result: FixtureResult, wanted: Wanted, model: str | None) -> Iterator[str]:
    """Yield what became of one fixture, a line each."""
    for cut in result.cuts:
        history = cut.history
        name = f"{result.fixture.name}, cut {history.cut}"
        if not history.compressed:
            yield f"{name}: nothing is compressed: all fits the tail of {wanted.tail_tokens} tokens"
            continue
        compressed = f"messages {history.start} to {history.tail_start - 1} are compressed"
        yield f"{name}: {len(cut.probes)} probes ({compressed})"
        yield f"  {_counts(cut.by_type)}; {_counts(cut.spread)}"
        for note in notes(cut, wanted, model):
            yield f"  {note}"
        for probe, item in zip(cut.probes, cut.chosen, strict=True):
            for warning in item.warnings:
                yield f"  look at {probe.id}: {warning}"
        shown = cut.dropped[:_SHOWN_DROPPED]
        for dropped in shown:
            yield f"  dropped: {_dropped_line(dropped)}"
        if len(cut.dropped) > len(shown):
            yield f"  dropped: {len(cut.dropped) - len(shown)} more (--report FILE lists them)"


def notes(cut: CutResult, wanted: Wanted, model: str | None) -> Iterator[str]:
    """Yield which types have fewer probes than were wanted, and why."""
    for kind, count in cut.by_type.items():
        if count < wanted.per_type:
            dropped = sum(item.type == kind for item in cut.dropped)
            why = f"{dropped} dropped" if dropped else "nothing more was found"
            if kind == "decision" and model is None:
                why = _TELLS_NO_REASONS
            elif kind == "continuation" and model is None and not cut.history.continuation:
                why = f"nothing is recorded after the cut; {why}"
            yield f"{kind}: {count} of {wanted.per_type}: {why}"


def usage_line(model: str, usage: Usage) -> str:
    """Return what the calls to a model took."""
    total = usage.total
    cached = (
        f", {total.input_tokens_cache_read} read from cache"
        if total.input_tokens_cache_read
        else ""
    )
    return (
        f"{model}: {usage.calls} calls, {total.input_tokens} tokens in{cached}, "
        f"{total.output_tokens} out"
    )


def as_data(
    results: Sequence[FixtureResult], wanted: Wanted, model: str | None, usage: Usage
) -> dict[str, Any]:
    """Return everything, as the report file holds it."""
    return {
        "model": model,
        "mechanical": wanted.mechanical,
        "per_type": wanted.per_type,
        "tail_tokens": wanted.tail_tokens,
        "usage": {"calls": usage.calls, **usage.total.model_dump(exclude_none=True)},
        "fixtures": [
            {
                "fixture": result.fixture.name,
                "bank": str(result.target) if result.bank else None,
                "cuts": [_cut(cut, wanted, model) for cut in result.cuts],
            }
            for result in results
        ],
    }


def _cut(cut: CutResult, wanted: Wanted, model: str | None) -> dict[str, Any]:
    history = cut.history
    return {
        "cut": history.cut,
        "compressed_from": history.start,
        "tail_starts_at": history.tail_start,
        "by_type": cut.by_type,
        "spread": cut.spread,
        "notes": list(notes(cut, wanted, model)),
        "left_over": cut.left_over,
        "probes": [
            {
                "id": probe.id,
                "origin": probe.origin,
                "third": item.third,
                "question": probe.question,
                "facts": [fact.fact for fact in probe.expected_facts],
                "warnings": list(item.warnings),
            }
            for probe, item in zip(cut.probes, cut.chosen, strict=True)
        ],
        "dropped": [
            {
                "type": item.type,
                "origin": item.origin,
                "question": item.question,
                "reasons": list(item.reasons),
            }
            for item in cut.dropped
        ],
    }


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _dropped_line(item: Dropped) -> str:
    asked = f" {shorten(item.question)}" if item.question else ""
    reason = " ".join("".join(c if c.isprintable() else " " for c in item.reasons[0]).split())
    more = f" (and {len(item.reasons) - 1} more)" if len(item.reasons) > 1 else ""
    return f"{item.type} ({item.origin}){asked}: {reason[:200]}{more}"


def why_none(result: FixtureResult) -> PassedOverError:
    """Return why a fixture has no probe."""
    if all(not cut.history.compressed for cut in result.cuts):
        reason = "nothing is compressed: all of it fits the kept tail"
    else:
        dropped = sum(len(cut.dropped) for cut in result.cuts)
        reason = f"{dropped} candidates were dropped" if dropped else "nothing to ask was found"
    reason = f"no probe could be made: {reason}"
    return PassedOverError(f"{result.path}: {reason}", result.path, reason)
