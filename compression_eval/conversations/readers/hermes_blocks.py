"""Find what compactions wrote among the messages of a Hermes session.

A compaction leaves the earlier messages where they are and writes what the agent goes on with
behind them: the kept head, the summary, the kept tail. So the kept messages stand there twice,
once more for every compaction; taken as they are they would be said again and again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compression_eval.conversations.readers.hermes_marks import (
    Summary,
    added_by_compaction,
    removed_call,
    summary_in,
)
from compression_eval.conversations.readers.hermes_rows import Row, repeats


@dataclass(eq=False)
class Block:
    """What one compaction wrote: the rows from ``begin`` up to, not including, ``end``."""

    begin: int
    end: int
    row: Row
    """The row with the summary."""
    summary: Summary
    copies: dict[Row, Row] = field(default_factory=dict)
    """Rows of the block that repeat an earlier one, and which."""


@dataclass
class Found:
    """The compactions of a lineage, in order."""

    blocks: list[Block] = field(default_factory=list)
    lost: list[Row] = field(default_factory=list)
    """Summaries whose earlier messages are not there: all that is left of them."""


def find_blocks(rows: Sequence[Row]) -> Found:
    """Return what compactions wrote.

    Args:
        rows: All messages of a lineage, in the order in which they were stored.
    """
    found = Found()
    view_begin = view_end = 0
    seen: list[Row] = []
    for position, row in enumerate(rows):
        if position < view_end:
            continue
        summary = summary_in(row.draft.text) if row.draft.role in ("user", "assistant") else None
        if summary is None or any(repeats(row.draft, known.draft) for known in seen):
            continue
        seen.append(row)
        begin = _head(rows, view_begin, view_end, position)
        view = [earlier for earlier in rows[view_begin:begin] if not earlier.undone]
        block = Block(begin, position + 1, row, summary)
        block.copies.update(_head_copies(rows[begin:position], view))
        _add_tail(block, rows, position, view)
        if not view or not (block.copies.keys() - set(rows[begin:position]) or _told(view, row)):
            found.lost.append(row)
            continue
        found.blocks.append(block)
        view_begin, view_end = begin, block.end
    return found


def _told(view: Sequence[Row], row: Row) -> bool:
    """Whether the store itself says that what stands before a summary was compacted."""
    return any(earlier.compacted or earlier.session != row.session for earlier in view)


def _head(rows: Sequence[Row], view_begin: int, view_end: int, position: int) -> int:
    """Return where the kept head before a summary begins."""
    first = position
    while first > view_end and rows[first - 1].session == rows[position].session:
        first -= 1
    if first > 0 and rows[first - 1].session != rows[position].session:
        return first
    opening = next((row for row in rows[view_begin:position] if not row.undone), None)
    for size in range(position - view_end, 0, -1):
        begin = position - size
        if opening is None or not repeats(rows[begin].draft, opening.draft):
            continue
        view = [row for row in rows[view_begin:begin] if not row.undone][:size]
        if len(view) == size and all(
            repeats(copy.draft, original.draft)
            for copy, original in zip(rows[begin:position], view, strict=True)
        ):
            return begin
    return position


def _head_copies(head: Sequence[Row], view: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    for copy, original in zip(head, view, strict=False):
        if repeats(copy.draft, original.draft):
            yield copy, original


def _add_tail(block: Block, rows: Sequence[Row], position: int, view: Sequence[Row]) -> None:
    """Find the kept tail behind a summary; it is the end of what the agent saw before it."""
    behind = [row for row in _same_session(rows, position) if row.draft.role != "tool"]
    before = [row for row in view if row.draft.role != "tool"]
    size = _overlap(behind, before)
    if not size and behind and behind[0].draft.role == "user":
        # A user message of long ago, put there so that one is left.
        anchor = next((row for row in reversed(before) if _says(behind[0], row)), None)
        if anchor is not None:
            block.copies[behind[0]] = anchor
            behind = behind[1:]
            size = _overlap(behind, before)
    kept = before[len(before) - size :]
    block.copies.update(zip(behind, kept, strict=False))
    if block.summary.prior is not None:
        joined = (row for row in reversed(before) if row.draft.text.strip() == block.summary.prior)
        if (original := next(joined, None)) is not None:
            block.copies[block.row] = original
    block.end = _end(block, rows, position, view)


def _same_session(rows: Sequence[Row], position: int) -> Iterator[Row]:
    for row in rows[position + 1 :]:
        if row.session != rows[position].session:
            return
        yield row


def _overlap(behind: Sequence[Row], before: Sequence[Row]) -> int:
    """Return how many rows behind a summary repeat the last ones before it."""
    for size in range(min(len(behind), len(before)), 0, -1):
        kept = before[len(before) - size :]
        if all(_says(copy, original) for copy, original in zip(behind, kept, strict=False)):
            return size
    return 0


def _says(copy: Row, original: Row) -> bool:
    return repeats(copy.draft, original.draft) or (
        bool(original.draft.calls) and copy.draft.text == removed_call()
    )


def _end(block: Block, rows: Sequence[Row], position: int, view: Sequence[Row]) -> int:
    """Return where the block ends: behind the last row that repeats or was added."""
    results = {row.draft.call_id: row for row in view if row.draft.role == "tool"}
    last = position
    for index, row in enumerate(_same_session(rows, position), start=position + 1):
        if row.draft.role == "tool" and row.draft.call_id in results:
            block.copies[row] = results[row.draft.call_id]
        elif row not in block.copies and not _added(row):
            break
        last = index
    return last + 1


def _added(row: Row) -> bool:
    return row.draft.role == "user" and added_by_compaction(row.draft.text)
