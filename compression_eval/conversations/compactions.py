"""From the compactions of a draft to those of a fixture."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import clean
from compression_eval.fixtures.models import Message, RecordedCompaction


def recorded_compactions(
    conversation: Conversation,
    drafts: Sequence[Draft],
    numbers: Mapping[Draft, int],
    *,
    messages: Sequence[Message],
    maker: Callable[[], Callable[[Draft], Message]],
) -> list[RecordedCompaction]:
    """Return what the agent compacted, at boundaries that a fixture can be cut at.

    Args:
        conversation: Caveats are added to it for what cannot be used.
        drafts: The messages of the fixture, in order.
        numbers: Their indices.
        messages: What they became.
        maker: Returns what makes messages of the drafts that only one state holds; ids of calls
            are unique within that state.
    """
    found: list[RecordedCompaction] = []
    for compaction in conversation.compactions:
        cut = _cut(compaction, conversation, drafts, numbers)
        if not any(draft.role == "user" for draft in drafts[:cut]):
            conversation.caveat("a compaction before the first user message was left out")
            continue
        state: list[int | Message] | None = None
        if compaction.state is not None:
            kept = [
                draft
                for draft in compaction.state
                if draft not in conversation.ledger.dropped and numbers.get(draft, -1) < cut
            ]
            turns = list(_turns(_with_added(kept, drafts, numbers, conversation)))
            if not set(kept) <= {draft for turn in turns for draft in turn}:
                conversation.caveat("calls or results without their other half left a kept tail")
            make = maker()
            state = [part for turn in turns for part in _turn(turn, numbers, messages, make)]
        found.append(
            RecordedCompaction(
                cut=cut,
                kind=compaction.kind,
                trigger=clean(compaction.trigger),
                summary=clean(compaction.summary) if compaction.summary else None,
                tokens_before=compaction.tokens_before,
                tokens_after=compaction.tokens_after,
                state=state,
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


def _with_added(
    kept: Sequence[Draft],
    drafts: Sequence[Draft],
    numbers: Mapping[Draft, int],
    conversation: Conversation,
) -> Iterator[Draft]:
    """Yield kept messages, and behind their calls the results that stand for missing ones."""
    for draft in kept:
        yield draft
        index = numbers.get(draft, len(drafts)) + 1
        while draft.role != "tool" and index < len(drafts) and drafts[index].role == "tool":
            if drafts[index] in conversation.ledger.added:
                yield drafts[index]
            index += 1


def _turns(drafts: Iterable[Draft]) -> Iterator[list[Draft]]:
    """Yield turns with their results; never calls that are not all answered, or stray results."""
    turns: list[list[Draft]] = []
    for draft in drafts:
        if draft.role != "tool":
            turns.append([draft])
        elif turns:
            turns[-1].append(draft)
    for first, *behind in turns:
        wanted = Counter(call.id for call in first.calls)
        answers = []
        for answer in behind:
            if wanted[answer.call_id or ""] > 0:
                wanted[answer.call_id or ""] -= 1
                answers.append(answer)
        if not wanted.total():
            yield [first, *answers]


def _turn(
    turn: Sequence[Draft],
    numbers: Mapping[Draft, int],
    messages: Sequence[Message],
    message: Callable[[Draft], Message],
) -> Iterator[int | Message]:
    """Yield a turn of a state, with ids that fit each other: the fixture's may not be the file's.

    Where the turn itself was kept, results that were changed answer the fixture's calls; where it
    was made anew, the results go with it.
    """
    first, *answers = turn
    if first not in numbers:
        yield from map(message, turn)
        return
    index = numbers[first]
    yield index
    open_ids: dict[str, deque[str]] = defaultdict(deque)
    for call, known in zip(first.calls, messages[index].calls, strict=True):
        open_ids[call.id].append(known.id)
    for answer in answers:
        identifier = open_ids[answer.call_id or ""].popleft()
        if answer in numbers:
            yield numbers[answer]
        else:
            yield message(answer).model_copy(update={"tool_call_id": identifier})
