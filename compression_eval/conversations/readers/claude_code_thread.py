"""From the lines of one thread of a Claude Code session to a conversation."""

import re
from collections import Counter

from compression_eval.conversations.drafts import Conversation, Draft
from compression_eval.conversations.fields import text_of
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.anthropic_blocks import AssistantTurn, user_drafts
from compression_eval.conversations.readers.claude_code_context import Context
from compression_eval.conversations.readers.claude_code_lines import Record
from compression_eval.conversations.readers.claude_code_marks import marks
from compression_eval.conversations.readers.claude_code_notes import note
from compression_eval.conversations.readers.claude_code_queue import UNDONE, Queue
from compression_eval.conversations.readers.claude_code_tree import (
    ThreadRecords,
    Tree,
    preserved,
)

_SYNTHETIC = "<synthetic>"
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,20}", re.ASCII)
_ARGUMENTS = re.compile(r"<command-args>\s*(?!\s|</command-args>)")


class ThreadReader:
    """Reads the lines of one thread in their order."""

    def __init__(self, thread: ThreadRecords) -> None:
        self._records = thread.records
        self._tree = Tree(self._records)
        self._conversation = Conversation(
            format="claude-code",
            origin=_origin(self._records),
            session=thread.session,
            ledger=Ledger(),
            part=thread.part,
            caveats=["the system prompt and the tools are not in the file"],
        )
        # A subagent's first line may name one of the thread that called it.
        self._context = Context(self._conversation, self._tree.cut_off and not thread.part)
        self._restarted = False
        self._queue = Queue(self._records, self._tree.followed)
        self._turns: dict[str, AssistantTurn] = {}
        self._drafts: dict[int, list[Draft]] = {}
        self._notes: dict[str, list[Draft]] = {}
        """Messages that attachments became, by the uuids of their lines."""
        self._models: Counter[str] = Counter()
        self._undone = 0

    def read(self) -> Conversation:
        """Return the conversation; the lines are given free while it is made."""
        for index, item in enumerate(self._records):
            line = self._conversation.ledger.enter(item.place, item.kind)
            if item.replaced:
                line.leave_out("bytes", "bytes that are not UTF-8 were replaced")
            try:
                self._take(index, item, line)
            except RecursionError:
                line.is_unknown("nested too deeply")
            item.value = {}
        self._say(left := self._queue.left())
        caveats = self._conversation.caveats
        if left:
            caveats.append(f"{len(left)} prompts still waited when the recording ended")
        if self._undone:
            caveats.append(f"{self._undone} lines on branches that the user left were left out")
        if self._tree.guessed:
            caveats.append(
                f"{self._tree.guessed} lines follow one that is not in the file; "
                "the line before them was taken for it"
            )
        self._context.finish()
        if self._models:
            self._conversation.model = self._models.most_common(1)[0][0]
        return self._conversation

    def _take(self, index: int, item: Record, line: Line) -> None:
        """Settle one line."""
        self._restarted = self._restarted or item.restart
        if item.problem:
            line.skip(item.problem)
        elif item.foreign:
            line.is_unknown("expected a JSON object")
        elif item.type == "queue-operation":
            self._say(self._queue.operate(index, line))
        elif item.type in marks().other_lines:
            line.skip(marks().other_lines[item.type])
        elif item.type not in ("user", "assistant", "attachment", "system"):
            line.is_unknown("a line of a kind that is not known")
        elif not item.uuid:
            line.is_unknown("expected the field uuid as text")
        else:
            self._linked(index, item, line)
            self._queue.spoken(index, self._drafts.get(index, ()), line.reason or "")

    def _linked(self, index: int, item: Record, line: Line) -> None:
        """Settle a line of the tree."""
        repeats = self._tree.repeats(index)
        if repeats is not None:
            first = self._drafts.get(repeats, [])
            for draft in first:
                line.merge(draft)
            if not first:
                line.skip("repeats an earlier line that is left out")
        elif index not in self._tree.followed:
            line.skip(UNDONE)
            self._undone += 1
        elif item.type == "system":
            self._system(item, line)
        elif item.type == "attachment":
            self._attachment(index, item, line)
        elif not isinstance(item.message.get("content"), str | list):
            line.is_unknown("expected the field message.content as text or blocks")
        elif item.type == "assistant":
            self._assistant(index, item, line)
        else:
            self._user(index, item, line)

    def _say(self, drafts: list[Draft]) -> None:
        self._conversation.drafts.extend(drafts)
        if drafts:
            self._context.said(drafts)

    def _system(self, item: Record, line: Line) -> None:
        if item.boundary:
            self._context.compacted(item, line, self._kept(item))
        elif item.subtype == "microcompact_boundary":
            self._context.cleared(item, line, self._notes)
        elif item.subtype in marks().system_lines:
            line.skip(marks().system_lines[item.subtype])
        else:
            line.is_unknown("a system line of a kind that is not known")

    def _kept(self, boundary: Record) -> list[Draft] | None:
        """Return the messages that a compaction kept; None if one of them is not in the file."""
        named = preserved(boundary)
        if named is None:
            return []
        indices = [self._tree.first.get(uuid, -1) for uuid in named.uuids]
        if any(index < 0 for index in indices):
            return None
        if named.ends_only:
            indices = list(range(indices[0], indices[1] + 1))
        found = (draft for index in indices for draft in self._drafts.get(index, ()))
        return list(dict.fromkeys(found))

    def _attachment(self, index: int, item: Record, line: Line) -> None:
        draft = note(item, line)
        if draft is None:
            return
        if item.subtype != "queued_command" and self._context.restored(draft, line):
            return
        self._drafts[index] = self._notes[item.uuid] = [line.became(draft)]
        self._say([draft])

    def _assistant(self, index: int, item: Record, line: Line) -> None:
        message = item.message
        if text_of(message, "model") == _SYNTHETIC or item.value.get("isApiErrorMessage") is True:
            line.skip("written by the client, not by the model")
            return
        self._models[text_of(message, "model")] += 1
        name = text_of(message, "id") or item.uuid
        turn = self._turns.setdefault(name, AssistantTurn())
        known = len(turn.drafts)
        self._context.measured(message)
        opened = turn.add(message["content"], line, repeats=self._context.repeats_expected)
        self._drafts[index] = [*line.drafts, *line.merged_into]
        if known == 0 or opened:
            self._say(opened)

    def _user(self, index: int, item: Record, line: Line) -> None:
        if item.display_copy:
            line.leave_out("toolUseResult", "a second form of the result, for the display")
        said = item.said
        if item.summary or (item.plan and self._restarted):
            self._handed_on(index, item, line)
        elif item.value.get("isVisibleInTranscriptOnly") is True:
            line.skip("shown to the user only")
        elif said.startswith(marks().local_caveat):
            line.skip("the client's words around a command to itself")
        elif said.startswith(marks().local_output):
            line.skip("output of a command to the client")
        elif said.startswith(marks().command) and self._is_local(index, said):
            line.skip("a command to the client, not to the model")
        else:
            self._message(index, item, line)

    def _handed_on(self, index: int, item: Record, line: Line) -> None:
        """Take what a compaction left: a summary, or the plan for which the context was cleared."""
        draft = user_drafts(item.message["content"], line)[-1]
        draft.injected = True
        if item.summary:
            recorded = self._context.summarised(draft, line)
        else:
            self._restarted = False
            recorded = self._context.planned(draft, text_of(item.value, "planContent"), line)
        if not recorded:
            self._drafts[index] = [line.became(draft)]
            self._say([draft])

    def _message(self, index: int, item: Record, line: Line) -> None:
        new: list[Draft] = []
        self._drafts[index] = []
        for draft in user_drafts(item.message["content"], line):
            if draft.role == "user":
                draft.injected = item.injected or item.plan
                self._context.begun = self._context.begun or not item.injected
            repeated = self._context.repeated(draft)
            if repeated is not None:
                line.merge(repeated)
            else:
                new.append(line.became(draft))
            self._drafts[index].append(repeated or draft)
        self._say(new)

    def _is_local(self, index: int, said: str) -> bool:
        """Return whether a command without arguments was answered by the client itself."""
        if _ARGUMENTS.search(said):
            return False
        behind = (self._records[place] for place in range(index + 1, len(self._records)))
        answer = next((item for item in behind if item.speaks), None)
        return answer is not None and answer.said.startswith(marks().local_output)


def _origin(records: list[Record]) -> str:
    versions = (item.version for item in reversed(records) if _VERSION.fullmatch(item.version))
    return f"Claude Code {next(versions, '')}".strip()
