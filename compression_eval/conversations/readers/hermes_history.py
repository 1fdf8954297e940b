"""From the stored messages of a Hermes lineage to its true history and its compactions."""

from collections.abc import Sequence

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.readers.hermes_blocks import Block, find_blocks
from compression_eval.conversations.readers.hermes_marks import review_prompt
from compression_eval.conversations.readers.hermes_rows import Row, identical

LOST = (
    "a summary stands for earlier messages that the file no longer holds; it is kept as a message"
)
_UNDONE = "undone by the user"


class History:
    """Sorts the rows of one lineage into history, repeats and what compactions wrote."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._history: list[Row] = []
        self._said: set[Row] = set()
        self._undone: set[Row] = set()
        self._review: Row | None = None
        """The last prompt of a background review, until its reply has come."""

    def assemble(self, rows: Sequence[Row]) -> None:
        """Fill the conversation.

        Args:
            rows: All messages of the lineage, in the order in which they were stored.
        """
        found = find_blocks(rows)
        position = 0
        marks: list[tuple[Block, int]] = []
        for block in found.blocks:
            for row in rows[position : block.begin]:
                self._say(row)
            marks.append((block, len(self._history)))
            self._write(block, rows[block.begin : block.end])
            position = block.end
        for row in rows[position:]:
            self._say(row)
        if found.lost:
            self._conversation.caveats.append(LOST)
        self._finish(marks, rows)

    def _say(self, row: Row) -> None:
        """Take a row into the history, unless it was never said."""
        reply, self._review = self._review, None
        if row.undone:
            row.line.skip(_UNDONE)
        elif row.draft.role in ("user", "system") and review_prompt(row.draft.text):
            self._review = row
            row.line.skip("a prompt of the agent's background review")
        elif reply is not None and row.draft.role == "assistant":
            row.line.skip("the reply to a prompt of the agent's background review")
        else:
            self._history.append(row)
            self._said.add(row)

    def _write(self, block: Block, rows: Sequence[Row]) -> None:
        """Settle what a compaction wrote."""
        head = rows[: rows.index(block.row)]
        for row in rows:
            original = block.copies.get(row)
            if original is not None:
                row.origin = original.source
                if row.undone:
                    self._undone.add(row.source)
            if row is block.row:
                self._summary(block)
            elif original is None and row in head:
                self._say(row)
            elif original is None:
                row.line.skip("added by a compaction")
            elif row.source not in self._said:
                row.line.skip("what an earlier compaction wrote, kept by this one")
            elif identical(row.draft, row.source.draft):
                row.line.merge(row.source.draft)
            else:
                row.line.skip("an earlier message, as a compaction kept it")

    def _summary(self, block: Block) -> None:
        """Settle a summary; what it was joined to is kept where it stands nowhere else."""
        line = block.row.line
        if block.summary.prior and block.row not in block.copies:
            self._history.append(Row(line, Draft(block.row.draft.role, [block.summary.prior])))
            line.leave_out("summary", "the summary of a compaction")
        else:
            line.skip("the summary of a compaction")

    def _finish(self, marks: Sequence[tuple[Block, int]], rows: Sequence[Row]) -> None:
        conversation = self._conversation
        for row in rows:
            if row.source in self._undone:
                row.line.skip("undone by the user after a compaction")
        for row in self._history:
            if row not in self._undone:
                conversation.drafts.append(row.line.became(row.draft))
        for block, count in marks:
            before = [row.draft for row in self._history[:count] if row not in self._undone]
            conversation.compactions.append(
                Compaction(
                    after=before[-1] if before else None,
                    summary=block.summary.text,
                    state=self._state(block, rows[block.begin : block.end]),
                )
            )

    def _state(self, block: Block, rows: Sequence[Row]) -> list[Draft]:
        """Return what the agent went on with: earlier messages where they are unchanged."""
        state: list[Draft] = []
        for row in rows:
            if row.source in self._undone or row.draft.role == "system":
                continue
            kept = row is not block.row and identical(row.draft, row.source.draft)
            state.append(row.source.draft if kept else row.draft)
        return state
