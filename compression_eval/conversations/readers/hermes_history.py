"""From the stored messages of a Hermes lineage to its true history and its compactions.

A compaction leaves the earlier messages where they are and writes what the agent continues with
behind them: the kept head, the summary, the kept tail. So the kept messages are there twice,
once more for every compaction; taken as they are they would be said again and again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from compression_eval.conversations.drafts import (
    Compaction,
    Conversation,
    Draft,
    Image,
    Line,
)
from compression_eval.conversations.fields import Json, as_text, from_json, label
from compression_eval.conversations.readers.base import marks_of, without_thinking
from compression_eval.conversations.readers.openai import chat_draft

_ENCODED = "\x00json:"
"""Before content that is a list or an object, where a store only takes text."""
REASONING = ("reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items")
REPEATS = ("api_content", "codex_message_items")
_LOST = (
    "a summary stands for earlier messages that are no longer in the file; it is kept as a message"
)


@dataclass(eq=False)
class Row:
    """A message as stored; what becomes of it is decided when all are known."""

    line: Line
    draft: Draft
    session: int = 0
    """Which session of the lineage it is in, counted from 0."""
    undone: bool = False
    """Whether the user took it back."""
    compacted: bool = False
    """Whether the store says that it was summarised away."""
    origin: "Row | None" = None
    """The first row with this message, for a row that repeats it."""

    @property
    def source(self) -> "Row":
        """The first row with this message."""
        return self.origin or self

    @property
    def kept(self) -> bool:
        """Whether it says the same as the first row with this message."""
        return self.draft.said == self.source.draft.said


def message_row(value: Json, place: str, conversation: Conversation) -> Row | None:
    """Return the row of a message, as stored or exported; None if it is unknown."""
    line = conversation.enter(place, f"message:{label(value.at('role'))}")
    stored = value.at("tool_calls")
    calls = from_json(stored) if isinstance(stored, str) else stored
    if stored and not isinstance(calls, list):
        line.leave_out("tool calls", "they are no JSON list")
    objects = line.objects(calls if isinstance(calls, list) else [], "a tool call")
    content = decoded(value.at("content"))
    if not isinstance(content, str | list | None):
        content = as_text(content)
    draft = chat_draft(
        Json({**value, "content": content, "tool_calls": list(map(_chat_call, objects))}), line
    )
    if draft is None:
        return None
    if draft.role == "assistant":
        draft.content[:1] = without_thinking(draft.content[:1], line)
    if any(value.get(name) for name in REASONING):
        line.leave_out_thinking()
    for name in filter(value.get, REPEATS):
        line.leave_out(name, "it repeats the message as it was sent")
    active, compacted = value.get("active", 1), bool(value.get("compacted", 0))
    return Row(line, draft, undone=not active and not compacted, compacted=compacted)


def _chat_call(call: Json) -> Json:
    """Return a call as chat messages have it; some have another id, or no object inside."""
    flat = call if call.text("name") else None
    identifier = call.name("id") or call.name("call_id")
    return Json({**call, "id": identifier, "function": call.entry("function") or flat})


def decoded(value: Any) -> Any:
    """Return content as it was before it was stored."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    if not isinstance(value, str) or not value.startswith(_ENCODED):
        return value
    text = value.removeprefix(_ENCODED)
    found = from_json(text)
    return text if found is None and text != "null" else found


def _repeats(copy: Row, original: Row) -> bool:
    """Whether a message is an earlier one, whatever a compaction shortened or took out of it."""
    new, old = copy.draft, original.draft
    if new.role != old.role:
        return False
    if new.role == "tool":
        return new.call_id == old.call_id
    if new.calls:
        return {call.id for call in old.calls}.issuperset(call.id for call in new.calls)
    if any(isinstance(part, Image) for part in old.content):
        texts = [part for part in old.content if isinstance(part, str) and part]
        return bool(texts) and all(text in new.text for text in texts)
    return new.text == old.text


def _is_kept(copy: Row, original: Row) -> bool:
    """Whether a message of the tail is an earlier one, perhaps with its calls taken out."""
    removed = bool(original.draft.calls) and copy.draft.text == marks_of("hermes")["removed_call"]
    return removed or _repeats(copy, original)


@dataclass(eq=False)
class _Block:
    """What one compaction wrote: the rows from ``begin`` up to, not including, ``end``."""

    begin: int
    end: int
    row: Row
    """The row with the summary."""
    summary: str
    """As the agent wrote it, without the line that marks its end."""
    prior: str | None
    """What the message said before the summary was joined to it; None if it was no message."""
    copies: dict[Row, Row] = field(default_factory=dict)
    """Rows of the block that repeat an earlier one, and which."""


def _summary_in(row: Row) -> tuple[str, str | None] | None:
    """Return the summary that a message carries, and what it was joined to."""
    marks, text = marks_of("hermes"), row.draft.text
    prior: str | None = None
    joined = text[:200].lstrip().startswith(marks["joined_start"])
    if joined and marks["joined_split"] in text:
        before, _, text = text.partition(marks["joined_split"])
        inner = before.lstrip().partition("\n")[2]
        prior = inner.rpartition(marks["joined_split_start"])[0].strip()
    starts = text[:200].lstrip().startswith(marks["summary_starts"])
    if not starts or row.draft.role not in ("user", "assistant"):
        return None
    body, _, last = text.strip().rpartition("\n")
    ended = last.startswith(marks["summary_end"])
    return (body.rstrip() if ended else text.strip()), prior


def _find_blocks(rows: Sequence[Row]) -> tuple[list[_Block], bool]:
    """Return what compactions wrote, and whether messages before one of them are lost."""
    blocks: list[_Block] = []
    lost = False
    view_begin = view_end = 0
    seen: list[Row] = []
    for position, row in enumerate(rows):
        found = _summary_in(row) if position >= view_end else None
        if found is None or any(_repeats(row, known) for known in seen):
            continue
        seen.append(row)
        begin = _head(rows, view_begin, view_end, position)
        view = [earlier for earlier in rows[view_begin:begin] if not earlier.undone]
        block = _Block(begin, position + 1, row, *found)
        head = rows[begin:position]
        pairs = zip(head, view, strict=False)
        block.copies.update((copy, old) for copy, old in pairs if _repeats(copy, old))
        _add_tail(block, rows[position + 1 :], view)
        # The store itself may say that what is before a summary was compacted.
        told = any(earlier.compacted or earlier.session != row.session for earlier in view)
        if view and (told or block.copies.keys() - set(head)):
            blocks.append(block)
            view_begin, view_end = begin, block.end
        else:
            lost = True
    return blocks, lost


def _head(rows: Sequence[Row], view_begin: int, view_end: int, position: int) -> int:
    """Return where the kept head before a summary begins: with its session, or what it repeats."""
    first = position
    while first > view_end and rows[first - 1].session == rows[position].session:
        first -= 1
    if first > 0 and rows[first - 1].session != rows[position].session:
        return first
    for begin in range(view_end, position):
        view = [row for row in rows[view_begin:begin] if not row.undone]
        size = position - begin
        if len(view) >= size and all(map(_repeats, rows[begin:position], view)):
            return begin
    return position


def _add_tail(block: _Block, rows: Sequence[Row], view: Sequence[Row]) -> None:
    """Find the kept tail behind a summary; it is the end of what the agent saw before it."""
    session = list(takewhile(lambda row: row.session == block.row.session, rows))
    behind = [row for row in session if row.draft.role != "tool"]
    before = [row for row in view if row.draft.role != "tool"]

    def overlap() -> int:
        sizes = range(min(len(behind), len(before)), 0, -1)
        fits = (size for size in sizes if all(map(_is_kept, behind[:size], before[-size:])))
        return next(fits, 0)

    size = overlap()
    if not size and behind and behind[0].draft.role == "user":
        # A user message of long ago, put there so that one is left.
        anchor = next((row for row in reversed(before) if _is_kept(behind[0], row)), None)
        if anchor is not None:
            block.copies[behind[0]] = anchor
            behind = behind[1:]
            size = overlap()
    block.copies.update(zip(behind, before[len(before) - size :], strict=False))
    if block.prior is not None:
        joined = (row for row in reversed(before) if row.draft.text.strip() == block.prior)
        if (original := next(joined, None)) is not None:
            block.copies[block.row] = original
    # It ends behind the last row that repeats or was added.
    results = {row.draft.call_id: row for row in view if row.draft.role == "tool"}
    added = marks_of("hermes")["added_starts"]
    for row in session:
        if row.draft.role == "tool" and row.draft.call_id in results:
            block.copies[row] = results[row.draft.call_id]
        elif row not in block.copies and not (
            row.draft.role == "user" and row.draft.text.startswith(added)
        ):
            break
        block.end += 1


def assemble(conversation: Conversation, rows: Sequence[Row]) -> None:
    """Fill a conversation from all messages of its lineage, in the order as stored."""
    blocks, lost = _find_blocks(rows)
    if lost:
        conversation.caveat(_LOST)
    history: list[Row] = []
    undone: set[Row] = set()
    counts: list[int] = []
    position = 0
    for block in blocks:
        history += _said(rows[position : block.begin])
        counts.append(len(history))
        undone.update(_settle(block, rows[block.begin : block.end], history))
        position = block.end
    history += _said(rows[position:])
    for row in rows:
        if row.source in undone:
            row.line.skip("undone by the user after a compaction")
    for row in history:
        if row not in undone:
            conversation.say(row.line, row.draft)
    for block, count in zip(blocks, counts, strict=True):
        before = [row.draft for row in history[:count] if row not in undone]
        state = [  # earlier messages where they are unchanged
            row.source.draft if row is not block.row and row.kept else row.draft
            for row in rows[block.begin : block.end]
            if row.source not in undone and row.draft.role != "system"
        ]
        after = before[-1] if before else None
        conversation.compactions.append(Compaction(after, summary=block.summary, state=state))
    conversation.name_missing()


def _said(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows that were said; settle background reviews and what the user took back."""
    prompts, review = marks_of("hermes")["review_starts"], False
    for row in rows:
        replies, review = review and row.draft.role == "assistant", False
        if row.undone:
            row.line.skip("undone by the user")
        elif row.draft.role in ("user", "system") and (
            row.draft.text[:200].lstrip().startswith(prompts)
        ):
            review = True
            row.line.skip("a prompt of the agent's background review")
        elif replies:
            row.line.skip("the reply to a prompt of the agent's background review")
        else:
            yield row


def _settle(block: _Block, rows: Sequence[Row], history: list[Row]) -> Iterator[Row]:
    """Settle the rows that a compaction wrote; yield the earlier ones that the user took back."""
    said, head = set(history), rows[: rows.index(block.row)]
    new = [row for row in head if row not in block.copies]
    history += _said(new)
    for row in rows:
        if row in new:
            continue
        original = block.copies.get(row)
        if original is not None:
            row.origin = original.source
            if row.undone:
                yield row.source
        if row is block.row and block.prior and original is None:
            # What the summary was joined to is nowhere else.
            history.append(Row(row.line, Draft(row.draft.role, [block.prior])))
            row.line.leave_out("summary", "the summary of a compaction")
        elif row is block.row:
            row.line.skip("the summary of a compaction")
        elif original is None:
            row.line.skip("added by a compaction")
        elif row.source not in said:
            row.line.skip("what an earlier compaction wrote, kept by this one")
        elif not row.kept:
            row.line.skip("an earlier message, as a compaction kept it")
