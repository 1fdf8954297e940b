"""From the compactions of a draft to those of a fixture."""

from collections.abc import Callable, Mapping, Sequence

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.fixtures.models import Message, RecordedCompaction


def recorded_compactions(
    conversation: Conversation,
    drafts: Sequence[Draft],
    numbers: Mapping[Draft, int],
    *,
    message: Callable[[Draft], Message],
) -> list[RecordedCompaction]:
    """Return what the agent compacted, at boundaries that a fixture can be cut at.

    Args:
        conversation: Caveats are added to it for what cannot be used.
        drafts: The messages of the fixture, in order.
        numbers: Their indices.
        message: Makes a message of a draft that only a state holds.
    """
    found: list[RecordedCompaction] = []
    for compaction in conversation.compactions:
        cut = _cut(compaction, conversation, drafts, numbers)
        if not any(draft.role == "user" for draft in drafts[:cut]):
            conversation.caveats.append("a compaction before the first user message was left out")
            continue
        found.append(
            RecordedCompaction(
                cut=cut,
                kind=compaction.kind,
                trigger=compaction.trigger,
                summary=compaction.summary,
                tokens_before=compaction.tokens_before,
                tokens_after=compaction.tokens_after,
                state=_state(compaction, conversation, numbers, cut, message),
            )
        )
    return found


def _cut(
    compaction: Compaction,
    conversation: Conversation,
    drafts: Sequence[Draft],
    numbers: Mapping[Draft, int],
) -> int:
    """Return how many messages lie before a compaction, moved behind the results of open calls."""
    if compaction.after is None:
        return 0
    known = conversation.drafts
    position = known.index(compaction.after) if compaction.after in known else -1
    before = [numbers[draft] for draft in known[: position + 1] if draft in numbers]
    cut = max(before, default=-1) + 1
    while cut < len(drafts) and drafts[cut].role == "tool":
        cut += 1
    return cut


def _state(
    compaction: Compaction,
    conversation: Conversation,
    numbers: Mapping[Draft, int],
    cut: int,
    message: Callable[[Draft], Message],
) -> list[int | Message] | None:
    if compaction.state is None:
        return None
    dropped = conversation.ledger.dropped
    kept = [
        draft
        for draft in compaction.state
        if draft not in dropped and (numbers.get(draft, -1) < cut)
    ]
    paired = _paired(kept)
    if len(paired) != len(kept):
        conversation.caveats.append("calls or results without their other half left a kept tail")
    return [numbers[draft] if draft in numbers else message(draft) for draft in paired]


def _paired(drafts: Sequence[Draft]) -> list[Draft]:
    """Leave out turns whose calls are not all answered right behind them, and stray results."""
    result: list[Draft] = []
    index = 0
    while index < len(drafts):
        draft = drafts[index]
        behind: list[Draft] = []
        index += 1
        while index < len(drafts) and drafts[index].role == "tool":
            behind.append(drafts[index])
            index += 1
        wanted = {call.id for call in draft.calls}
        answers = [answer for answer in behind if answer.call_id in wanted]
        if draft.role != "tool" and {answer.call_id for answer in answers} == wanted:
            result.extend([draft, *answers])
    return result
