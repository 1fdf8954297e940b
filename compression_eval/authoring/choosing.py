"""Which candidates a bank gets: enough of each type, from all over the history, of many kinds."""

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from compression_eval.authoring.candidate_checks import duplicate
from compression_eval.authoring.candidates import Candidate, Dropped
from compression_eval.fixtures.banks import ProbeType

TYPES: tuple[ProbeType, ...] = get_args(ProbeType)


def choose(
    candidates: Sequence[Candidate], per_type: int, *, fill: bool = False
) -> tuple[list[Candidate], list[Dropped]]:
    """Choose probes for one cut.

    One of each type is taken in turn. Of those that are left, the one wins whose third of the
    history, then whose template, has been taken least for its type; then whose third has been taken
    least at all; then the one that came first.

    Args:
        candidates: Fit ones, the better first.
        per_type: How many of each type.
        fill: Whether others fill the places of a type that has too few.

    Returns:
        The chosen, by type; and those dropped since they ask what another asks already.
    """
    left = {kind: [c for c in candidates if c.probe.type == kind] for kind in TYPES}
    chosen: list[Candidate] = []
    dropped: list[Dropped] = []
    for _ in range(per_type):
        # The scarce first: a twin must not cost a type the only one that it has.
        for kind in sorted(TYPES, key=lambda kind: len(left[kind])):
            if (found := _next(left[kind], chosen, dropped)) is not None:
                chosen.append(found)
    # What a type comes short of, others make up for: tool calls seldom tell of decisions.
    while fill and len(chosen) < per_type * len(TYPES):
        rest = [item for kind in TYPES for item in left[kind]]
        kinds = sorted({item.probe.type for item in rest}, key=lambda kind: _count(chosen, kind))
        added = next((c for kind in kinds if (c := _next(left[kind], chosen, dropped))), None)
        if added is None:
            break
        chosen.append(added)
    chosen.sort(key=lambda item: TYPES.index(item.probe.type))
    return chosen, dropped


def _count(chosen: Sequence[Candidate], kind: ProbeType) -> int:
    return sum(item.probe.type == kind for item in chosen)


def _next(
    left: list[Candidate], chosen: Sequence[Candidate], dropped: list[Dropped]
) -> Candidate | None:
    """Take the best out of ``left``, and duplicates that are met on the way."""
    while left:
        kind = left[0].probe.type
        same = [item for item in chosen if item.probe.type == kind]
        thirds, overall = Counter(c.third for c in same), Counter(c.third for c in chosen)
        templates = Counter(c.template for c in same)
        best = min(left, key=lambda c: (thirds[c.third], templates[c.template], overall[c.third]))
        left.remove(best)
        reason = duplicate(best.probe, [item.probe for item in chosen])
        if reason is None:
            return best
        probe = best.probe
        dropped.append(Dropped(probe.type, probe.origin, probe.question, (reason,)))
    return None
