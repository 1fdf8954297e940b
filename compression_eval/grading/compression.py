"""The scorer that reports how far the history was compressed, and whether that worked."""

import math

from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    metric,
    scorer,
)
from inspect_ai.solver import TaskState

from compression_eval.grading.markdown import escaped, number
from compression_eval.grading.metrics import over_conversations
from compression_eval.grading.sample import Sample, nothing_recorded, read_sample

KEYS = ("tokens_removed", "tokens_retained", "failed_states")
"""Keys of the score, on every sample that has a record."""


@metric(scores="unreduced")
def failed_states() -> Metric:
    """Count the compressions that failed.

    Many samples share a state, so states are counted, not samples; and every epoch is a
    compression of its own, so epochs are not reduced first.
    """

    def count(scores: list[SampleScore]) -> float:
        failed = {
            _state_key(item)
            for item in scores
            if isinstance(item.score.value, int | float) and item.score.value == 1
        }
        return float(len(failed))

    return count


def _state_key(item: SampleScore) -> tuple[object, ...]:
    metadata = item.score.metadata or {}
    return tuple(metadata.get(part) for part in ("fixture", "cut", "replicate"))


def compression_metrics() -> dict[str, list[Metric]]:
    """Return the metrics: means over conversations, and a count of failed states."""
    return {
        "tokens_removed": [over_conversations()],
        "tokens_retained": [over_conversations()],
        "failed_states": [failed_states()],
    }


@scorer(metrics=compression_metrics())
def compression() -> Scorer:
    """Report the compression of the sample's state; calls no model.

    ``tokens_removed`` is the share of the history's tokens that is gone (0 to 1),
    ``tokens_retained`` the size of the state in tokens; both are NaN for a failed compression.
    ``failed_states`` is 1 for a failed compression and 0 otherwise.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        sample = read_sample(state)
        if sample is None:
            return nothing_recorded()
        failure = sample.compression_failure
        removed = _removed(sample)
        return Score(
            value={
                "tokens_removed": math.nan if failure else removed,
                "tokens_retained": math.nan if failure else float(sample.state.state_tokens),
                "failed_states": 1 if failure else 0,
            },
            reason=failure,
            explanation=_explanation(sample),
            metadata={
                "fixture": sample.record.fixture,
                "cut": sample.record.cut,
                "replicate": sample.record.replicate,
                "state_id": sample.state.state_id,
                "status": sample.state.status,
                "failure": sample.state.failure,
                "suspect": list(sample.state.suspect),
                "token_counter": sample.state.token_counter,
                "original_tokens": sample.state.original_tokens,
                "state_tokens": sample.state.state_tokens,
            },
        )

    return score


def _removed(sample: Sample) -> float:
    original = sample.state.original_tokens
    return round(1 - sample.state.state_tokens / original, 4) if original else math.nan


def _explanation(sample: Sample) -> str:
    state = sample.state
    lines = [
        f"- cut {cycle.cut}: {escaped(cycle.applied)}"
        + (f" ({escaped(cycle.fallback_reason)})" if cycle.fallback_reason else "")
        + f"; tokens {cycle.tokens_before} → {cycle.tokens_after}; messages "
        f"{cycle.messages_before} → {cycle.messages_after}; model calls {cycle.model_calls} "
        f"(tokens in {cycle.input_tokens}, out {cycle.output_tokens}); "
        f"{number(cycle.seconds)} seconds"
        for cycle in state.cycles
    ]
    failure = f": {escaped(state.failure)}" if state.failure else ""
    notes = [
        f"Status: {state.status}{failure}",
        f"History {state.original_tokens} tokens, state {state.state_tokens} tokens, "
        f"removed {number(_removed(sample))}; counted with {escaped(state.token_counter)}",
    ]
    if state.computed_by and not state.computed_here:
        notes.append(f"Computed by the sample {escaped(state.computed_by)}")
    notes.extend(f"Suspect: {escaped(sign)}" for sign in state.suspect)
    return "\n\n".join(["\n".join(lines), *notes] if lines else notes)
