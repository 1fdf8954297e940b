"""From a draft to a fixture: what every fixture needs, whatever format it came from.

Results stand right behind their calls, every call has a result, no turn is empty, images are
described, texts can be written as UTF-8.
"""

import hashlib
import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal

from compression_eval.conversations.drafts import NO_CALL, Conversation, Draft, Image, Omitted
from compression_eval.conversations.fields import clean, json_object
from compression_eval.errors import DataError
from compression_eval.fixtures.metadata import FIELD, checked
from compression_eval.fixtures.models import (
    IMAGE_DATA,
    NO_RESULT,
    Fixture,
    FunctionCall,
    ImagePart,
    Message,
    RecordedCompaction,
    Source,
    TextPart,
    ToolCall,
    fixture_faults,
    typed,
)

IMPORTER = "importer 3"
"""Version of the rules here and in the readers; a change of what they yield raises it."""

Images = Literal["describe", "keep"]


@dataclass(frozen=True)
class Built:
    """A fixture, and what of its input is not in it."""

    fixture: Fixture
    left_out: tuple[Omitted, ...]
    notes: tuple[str, ...] = ()
    """What the import prints of it."""
    missing: str = ""
    """As `Conversation.missing`."""


def build(conversation: Conversation, *, images: Images = "describe") -> Built:
    """Return the fixture of a conversation.

    Cuts are not set; recorded compactions are.

    Raises:
        DataError: No fixture can be made of it; the text says why, without naming a file.
    """
    said = _not_empty(conversation)
    drafts = _answered(_with_results_behind_calls(said, conversation), conversation)
    numbers = {draft: index for index, draft in enumerate(drafts)}
    if not any(draft.role == "user" for draft in drafts):
        raise DataError("an empty conversation: there is no user message")
    ids = _CallIds()
    messages = [_message(draft, images, ids) for draft in drafts]
    origins = {draft.line for draft in drafts}
    for draft, why in conversation.dropped.items():
        line = draft.line
        if line is not None and line not in origins and line.reason is None:
            line.reason, line.lost = why, why == NO_CALL
    if missing := conversation.missing(drafts):
        conversation.note(missing)
    fixture = Fixture(
        name=_name(conversation, messages),
        description=f"Imported from {clean(conversation.origin)}.",
        model=clean(conversation.model),
        context_length=conversation.context_length,
        tools=conversation.tools,
        recorded_compactions=_compactions(conversation, messages, numbers, images),
        source=Source(
            origin=clean(conversation.origin),
            importer=IMPORTER,
            caveats=[clean(caveat) for caveat in dict.fromkeys(conversation.caveats)],
        ),
        messages=messages,
    )
    faults = list(fixture_faults(fixture))
    if faults:
        raise DataError("; ".join(faults[:3]))
    left_out = tuple(conversation.left_out(drafts))
    return Built(fixture, left_out, tuple(dict.fromkeys(conversation.notes)), missing)


def _not_empty(conversation: Conversation) -> list[Draft]:
    """Return the drafts that say anything."""
    kept = []
    for draft in conversation.drafts:
        if draft.role == "tool" or draft.calls or draft.text.strip() or _images(draft):
            kept.append(draft)
        else:
            conversation.dropped[draft] = f"an empty {draft.role} turn"
    return kept


def _images(draft: Draft) -> list[Image]:
    return [part for part in draft.content if isinstance(part, Image)]


def _with_results_behind_calls(drafts: list[Draft], conversation: Conversation) -> list[Draft]:
    """Move every result right behind the call that it answers.

    What the user typed while tools ran is between them in the file; providers accept it only
    after the results. The conversation is told of results that a compaction did not see.
    """
    last = {compaction.after for compaction in conversation.compactions}
    ends = [index for index, draft in enumerate(drafts) if draft in last]
    late = 0
    results: dict[int, list[Draft]] = {}
    open_calls: dict[str, list[int]] = defaultdict(list)
    moved: set[Draft] = set()
    for index, draft in enumerate(drafts):
        for call in draft.calls:
            # Ids are used again in later turns, and rarely twice in one.
            same_turn = [owner for owner in open_calls[call.id] if owner == index]
            open_calls[call.id] = [*same_turn, index]
        owners = open_calls[draft.call_id or ""] if draft.role == "tool" else []
        if owners:
            owner = owners.pop()
            results.setdefault(owner, []).append(draft)
            moved.add(draft)
            late += any(owner <= end < index for end in ends)
    if late:
        conversation.note(
            f"{late} tool results came after a compaction; they are placed after their calls, "
            "before it"
        )
    ordered: list[Draft] = []
    for index, draft in enumerate(drafts):
        if draft not in moved:
            ordered.append(draft)
            ordered.extend(results.get(index, ()))
    return ordered


def _answered(drafts: list[Draft], conversation: Conversation) -> list[Draft]:
    """Drop results that answer nothing, and say of calls without a result that they have none."""
    ordered: list[Draft] = []
    waiting: Counter[str] = Counter()
    orphans = 0

    def close() -> None:
        for call_id in sorted(waiting.elements()):
            result = Draft("tool", [NO_RESULT], call_id=call_id)
            ordered.append(result)
            conversation.added.add(result)
        waiting.clear()

    for draft in drafts:
        if draft.role == "tool":
            if waiting[draft.call_id or ""] > 0:
                waiting[draft.call_id or ""] -= 1
                ordered.append(draft)
            else:
                conversation.dropped[draft] = NO_CALL
                orphans += 1
            continue
        close()
        ordered.append(draft)
        waiting.update(call.id for call in draft.calls)
    close()
    if orphans:
        conversation.caveats.append(f"{orphans} tool results without their call were left out")
    unanswered = sum(draft.role == "tool" for draft in conversation.added)
    if unanswered:
        conversation.caveats.append(f"{unanswered} tool calls have no recorded result")
    return ordered


class _CallIds:
    """Gives ids that are unique in a conversation to calls whose file repeats them."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._open: dict[str, deque[str]] = defaultdict(deque)

    def of_call(self, identifier: str) -> str:
        identifier = clean(identifier) or "call"
        self._seen[identifier] += 1
        count = self._seen[identifier]
        unique = identifier if count == 1 else f"{identifier}-{count}"
        self._open[identifier].append(unique)
        return unique

    def of_result(self, identifier: str) -> str:
        identifier = clean(identifier) or "call"
        waiting = self._open[identifier]
        return waiting.popleft() if waiting else identifier


def _compactions(
    conversation: Conversation,
    messages: Sequence[Message],
    numbers: Mapping[Draft, int],
    images: Images,
) -> list[RecordedCompaction]:
    """Return what the agent compacted, at boundaries that a fixture can be cut at.

    There are caveats for what cannot be used.
    """
    added, dropped = conversation.added, conversation.dropped
    drafts = list(numbers)
    recorded: list[RecordedCompaction] = []
    for compaction in conversation.compactions:
        cut = 0
        if compaction.after in (known := conversation.drafts):
            before = known[: known.index(compaction.after) + 1]
            cut = max((numbers[draft] for draft in before if draft in numbers), default=-1) + 1
        while 0 < cut < len(drafts) and drafts[cut].role == "tool":  # results of open calls
            cut += 1
        if not any(draft.role == "user" for draft in drafts[:cut]):
            conversation.caveat("a compaction before the first user message was left out")
            continue
        state: list[int | Message] | None = None
        if compaction.state is not None:
            kept = [
                draft
                for draft in compaction.state
                if draft not in dropped and numbers.get(draft, -1) < cut
            ]
            turns: list[list[Draft]] = []
            for draft in kept:
                if draft.role != "tool":
                    # Behind kept calls stand the results that were added for missing ones.
                    behind = range(numbers.get(draft, len(drafts)) + 1, len(drafts))
                    results = takewhile(lambda place: drafts[place].role == "tool", behind)
                    found = [drafts[place] for place in results if drafts[place] in added]
                    turns.append([draft, *found])
                elif turns:
                    turns[-1].append(draft)
            whole = [turn for turn in map(_answered_turn, turns) if turn]
            if not set(kept) <= {draft for turn in whole for draft in turn}:
                conversation.caveat("calls or results without their other half left a kept tail")
            ids = _CallIds()  # unique within the state
            state = [
                part for turn in whole for part in _in_state(turn, messages, numbers, images, ids)
            ]
        made = RecordedCompaction(
            cut=cut,
            kind=compaction.kind,
            trigger=clean(compaction.trigger),
            summary=clean(compaction.summary) if compaction.summary else None,
            tokens_before=compaction.tokens_before,
            tokens_after=compaction.tokens_after,
            state=state,
        )
        if recorded and recorded[-1].cut == cut:
            conversation.caveat("compactions without a message between them are taken for one")
            made = _joined(recorded.pop(), made)
        recorded.append(made)
    return recorded


def _joined(first: RecordedCompaction, second: RecordedCompaction) -> RecordedCompaction:
    """Return one compaction for two at the same cut: the last one that left something.

    A second one that merely cleared results changed what the first one had left. The size before
    is the first one's.
    """
    if second.kind == "clear" and first.kind != "clear":
        if first.state is None or second.state is None:
            return first
        left = {"state": second.state, "tokens_after": second.tokens_after}
        return first.model_copy(update=left)
    alike = (first.kind == "clear") == (second.kind == "clear")
    left_nothing = second.summary is None and second.state is None
    if alike and left_nothing:
        return first
    before = second.tokens_before if first.tokens_before is None else first.tokens_before
    return second.model_copy(update={"tokens_before": before})


def _answered_turn(turn: Sequence[Draft]) -> list[Draft]:
    """Return a turn with the results of its calls; nothing if one of them has none."""
    first, *behind = turn
    wanted = Counter(call.id for call in first.calls)
    answers = []
    for answer in behind:
        if wanted[answer.call_id or ""] > 0:
            wanted[answer.call_id or ""] -= 1
            answers.append(answer)
    return [] if wanted.total() else [first, *answers]


def _in_state(
    turn: Sequence[Draft],
    messages: Sequence[Message],
    numbers: Mapping[Draft, int],
    images: Images,
    ids: "_CallIds",
) -> Iterator[int | Message]:
    """Yield a turn of a state, with ids that fit each other: the fixture's may not be the file's.

    Where the turn itself was kept, results that were changed answer the fixture's calls; where it
    was made again, the results go with it.
    """
    first, *answers = turn
    if first not in numbers:
        yield from (_message(draft, images, ids) for draft in turn)
        return
    yield (index := numbers[first])
    open_ids: dict[str, deque[str]] = defaultdict(deque)
    for call, known in zip(first.calls, messages[index].calls, strict=True):
        open_ids[call.id].append(known.id)
    for answer in answers:
        identifier = open_ids[answer.call_id or ""].popleft()
        if answer in numbers:
            yield numbers[answer]
        else:
            made = _message(answer, images, ids)
            yield made.model_copy(update={"tool_call_id": identifier})


def _message(draft: Draft, images: Images, ids: _CallIds) -> Message:
    data: dict[str, Any] = {"role": draft.role, "content": _content(draft, images)}
    if draft.calls:
        data["content"] = data["content"] or None
        data["tool_calls"] = [
            ToolCall(
                id=ids.of_call(call.id),
                function=FunctionCall(
                    name=clean(call.name) or "unnamed",
                    arguments=json.dumps(json_object(call.arguments), ensure_ascii=False),
                ),
            )
            for call in draft.calls
        ]
    if draft.role == "user" and (draft.injected or (draft.text and not typed(draft.text))):
        data["injected"] = True
    if draft.role == "tool":
        data["tool_call_id"] = ids.of_result(draft.call_id or "")
    known = {
        "is_error": draft.failed or None,
        "timestamp": draft.line.time if draft.line else "",
        "usage": draft.usage,
    }
    if metadata := checked(known):
        data[FIELD] = metadata
    return Message.model_validate(data)


def _content(draft: Draft, images: Images) -> str | list[TextPart | ImagePart]:
    shown = {image: IMAGE_DATA.fullmatch(image.url) is not None for image in _images(draft)}
    texts = (part if isinstance(part, str) else described(part) for part in draft.content)
    if images != "keep" or not any(shown.values()):
        return clean("\n".join(text for text in texts if text))
    return [
        ImagePart(type="image_url", image_url=ImagePart.Url(url=part.url))
        if isinstance(part, Image) and shown[part]
        else TextPart(type="text", text=clean(text))
        for part, text in zip(draft.content, texts, strict=True)
        if text
    ]


def described(image: Image) -> str:
    """Return the text that stands for an image."""
    kind, size = image.media_type or "image", image.size
    if size is None and image.url.startswith("data:"):
        size = len(image.url.partition(",")[2]) * 3 // 4
    return f"[image: {kind}]" if size is None else f"[image: {kind}, {size:,} bytes]"


def names_subagent(name: str) -> bool:
    """Return whether a conversation is a sub-agent's or a side chain, by the name given to it."""
    return re.search(r"-[0-9a-f]{12}-(agent|side|subagent)\b", name) is not None


def _name(conversation: Conversation, messages: list[Message]) -> str:
    """Return a name from the session's id, never from a path: a path may name a person.

    Without an id that is one, it is made from the content, so that it is the same in every import.
    """
    session = conversation.session.lower()
    if re.fullmatch(r"[0-9a-f-]{8,64}", session):
        identity = session.replace("-", "")[-12:]
    else:
        content = "\0".join([session, *(message.searchable() for message in messages)])
        identity = hashlib.sha256(content.encode(errors="replace")).hexdigest()[:12]
    part = re.sub(r"[^a-z0-9]+", "-", conversation.part.lower()).strip("-")[:40]
    return "-".join(piece for piece in (conversation.format, identity, part) if piece)
