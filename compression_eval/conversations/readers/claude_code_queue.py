"""Prompts that a user typed while the agent worked, as queue operations record them.

Such a prompt may stand in a user line or an attachment as well, once it was handed over, or
nowhere else; or it was taken back for editing.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from compression_eval.conversations.drafts import Draft
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.anthropic_blocks import content_of
from compression_eval.conversations.readers.claude_code_lines import Record
from compression_eval.conversations.readers.claude_code_marks import marks

UNDONE = "on a branch that the user left (a rewind or a retry)"
_HANDED_OVER = ("dequeue", "remove")
_TAKEN_BACK = "popAll"


@dataclass(eq=False)
class _Waiting:
    """A prompt in the queue."""

    index: int
    line: Line
    draft: Draft

    @property
    def text(self) -> str:
        return self.draft.text.strip()


class Queue:
    """The queue of one thread, followed line by line."""

    def __init__(self, records: Sequence[Record], followed: set[int]) -> None:
        self._records = records
        self._followed = followed
        self._waiting: list[_Waiting] = []
        self._claimed: set[int] = set()
        self._claims: dict[int, list[Line]] = defaultdict(list)
        self._outcomes: dict[int, tuple[Sequence[Draft], str]] = {}
        self._spoken = [
            (index, said)
            for index, item in enumerate(records)
            if not item.summary and (said := item.said)
        ]

    def operate(self, index: int, line: Line) -> list[Draft]:
        """Take one operation and return the prompts that it handed over and no line repeats."""
        item = self._records[index]
        content = item.value.get("content")
        if item.subtype == "enqueue":
            if isinstance(content, str | list):
                draft = Draft("user", content_of(content, line))
                self._waiting.append(_Waiting(index, line, draft))
            else:
                line.is_unknown("expected the field content as text or blocks")
            return []
        if item.subtype in _HANDED_OVER:
            return self._hand_over(index, content, line)
        if item.subtype == _TAKEN_BACK:
            for waiting in self._waiting:
                waiting.line.skip("taken back by the user for editing")
            self._waiting.clear()
            line.skip("the user took the waiting prompts back for editing")
            return []
        line.is_unknown("a queue operation of a kind that is not known")
        return []

    def spoken(self, index: int, drafts: Sequence[Draft], reason: str) -> None:
        """Take what became of a line, which may hold queued prompts.

        Args:
            index: Of the line.
            drafts: The messages that it became or repeats.
            reason: Why there are none.
        """
        if self._records[index].said:
            self._outcomes[index] = (drafts, reason)
            for line in self._claims.pop(index, ()):
                _share(line, drafts, reason)

    def left(self) -> list[Draft]:
        """Return the prompts that still wait at the end and stand in no other line."""
        found: list[Draft] = []
        for waiting in self._waiting:
            place = self._exactly(waiting)
            if place is None:
                found.append(waiting.line.became(waiting.draft))
            else:
                self._claim(place, waiting.line)
        for line in (line for lines in self._claims.values() for line in lines):
            line.skip("the same words stand in a line that could not be read")
        return found

    def _hand_over(self, index: int, content: object, line: Line) -> list[Draft]:
        wanted = content.strip() if isinstance(content, str) else None
        found = next(
            (waiting for waiting in self._waiting if wanted in (None, waiting.text)),
            self._waiting[0] if self._waiting else None,
        )
        if found is None:
            line.skip("no prompt of this file was waiting")
            return []
        self._waiting.remove(found)
        place = self._exactly(found)
        if place is None:
            place = self._within_next(index, found.text)
        if place is not None:
            self._claim(place, found.line)
            self._claim(place, line)
            return []
        if self._undone(index):
            found.line.skip(UNDONE)
            line.skip(UNDONE)
            return []
        line.merge(found.draft)
        return [found.line.became(found.draft)]

    def _exactly(self, waiting: _Waiting) -> int | None:
        """Return the later line that is this prompt; each line is one prompt only."""
        text = waiting.text
        name = text.split(maxsplit=1)[0] if text.startswith("/") else ""
        command = f"<command-name>{name}</command-name>"
        for index, said in self._spoken:
            if index < waiting.index or index in self._claimed or not text:
                continue
            is_command = bool(name) and said.startswith(marks().command) and command in said
            if said == text or is_command:
                self._claimed.add(index)
                return index
        return None

    def _within_next(self, index: int, text: str) -> int | None:
        """Return the next thing said, if the prompt is a part of it.

        Prompts that waited together are handed over as one.
        """
        following = next(((place, said) for place, said in self._spoken if place > index), None)
        if not following or not text or following[1] == text:
            return None
        return following[0] if f"\n{text}\n" in f"\n{following[1]}\n" else None

    def _claim(self, index: int, line: Line) -> None:
        if index in self._outcomes:
            _share(line, *self._outcomes[index])
        else:
            self._claims[index].append(line)

    def _undone(self, index: int) -> bool:
        """Return whether the messages around a line are on a branch that was left."""
        before = (i for i in range(index - 1, -1, -1) if self._speaks(i))
        behind = (i for i in range(index + 1, len(self._records)) if self._speaks(i))
        around = [i for i in (next(before, None), next(behind, None)) if i is not None]
        return bool(around) and not any(i in self._followed for i in around)

    def _speaks(self, index: int) -> bool:
        return self._records[index].linked and self._records[index].speaks


def _share(line: Line, drafts: Sequence[Draft], reason: str) -> None:
    """Settle a line whose words stand in another one as that one was settled."""
    for draft in drafts:
        line.merge(draft)
    if not drafts:
        line.skip(reason)
