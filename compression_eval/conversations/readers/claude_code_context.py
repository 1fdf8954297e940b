"""What stood in the context of a Claude Code session, and what its compactions made of it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import count_of, list_of, mapping_of, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.claude_code_lines import Record
from compression_eval.conversations.readers.claude_code_marks import marks
from compression_eval.conversations.readers.claude_code_tree import preserved

_STATE = "made by a compaction: it stands in the state that the compaction left"


class Context:
    """The messages that the model would be sent next, followed line by line.

    A conversation keeps its whole history; the context is what the agent's own compactions left of
    it, and the source of the states that they are recorded with.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._messages: list[Draft] = []
        self._awaited: Compaction | None = None
        """The compaction whose summary has yet to come."""
        self._restoring: Compaction | None = None
        """The compaction that still puts notes back."""
        self._kept: list[Draft] = []
        self._kept_first = False
        self._repeatable: list[Draft] = []

    def said(self, drafts: Sequence[Draft]) -> None:
        """Take messages of the conversation."""
        self._messages.extend(drafts)
        self._restoring = None
        self._repeatable = []

    def repeated(self, draft: Draft) -> Draft | None:
        """Return the kept message that a line right behind a compaction merely repeats."""
        found = next((kept for kept in self._repeatable if _same(kept, draft)), None)
        if found is not None:
            self._repeatable.remove(found)
        return found

    @property
    def repeats_expected(self) -> bool:
        """Whether lines right behind a compaction may still repeat what it kept."""
        return bool(self._repeatable)

    def compacted(self, item: Record, line: Line, kept: list[Draft] | None) -> None:
        """Take a boundary.

        Args:
            item: The boundary's line.
            line: Its entry.
            kept: The messages that it says were kept; None if it names some that are not there.
        """
        metadata = mapping_of(item.value, "compactMetadata")
        self._awaited = Compaction(
            after=self._last(),
            trigger=text_of(metadata, "trigger"),
            tokens_before=count_of(metadata, "preTokens"),
            tokens_after=count_of(metadata, "postTokens"),
        )
        named = preserved(item)
        self._kept_first = named is not None and named.before_summary
        if kept is None:
            self._conversation.caveats.append(
                "a compaction names messages that it kept, which are not in the file"
            )
        self._kept = kept or []
        self._conversation.compactions.append(self._awaited)
        line.skip("the boundary of a compaction, which is recorded beside the messages")

    def summarised(self, draft: Draft, line: Line) -> None:
        """Take the message that hands a summary on; old versions write it without a boundary."""
        compaction = self._awaited
        if compaction is None:
            compaction = Compaction(after=self._last())
            self._conversation.compactions.append(compaction)
            self._kept = []
        first = self._kept if self._kept_first else []
        behind = [kept for kept in self._kept if kept not in first]
        compaction.summary = draft.text
        compaction.state = _ordered([*first, draft, *behind])
        self._messages = list(compaction.state)
        self._restoring, self._awaited = compaction, None
        self._repeatable = list(self._kept)
        line.skip(_STATE)

    def restored(self, draft: Draft, line: Line) -> bool:
        """Take a note, and return whether a compaction put it back: then it is no new message."""
        if self._restoring is None or self._restoring.state is None:
            return False
        self._restoring.state.append(draft)
        self._messages.append(draft)
        line.skip(_STATE)
        return True

    def cleared(self, item: Record, line: Line, notes: Mapping[str, Sequence[Draft]]) -> None:
        """Take a microcompaction, which cleared results in place.

        Args:
            item: The boundary's line.
            line: Its entry.
            notes: The messages that attachments became, by the uuids of their lines.
        """
        metadata = mapping_of(item.value, "microcompactMetadata")
        calls = {name for name in list_of(metadata, "compactedToolIds") if isinstance(name, str)}
        gone = {
            draft
            for name in list_of(metadata, "clearedAttachmentUUIDs")
            if isinstance(name, str)
            for draft in notes.get(name, ())
        }
        found = {draft.call_id for draft in self._messages if draft.role == "tool"}
        if calls - found:
            self._conversation.caveats.append(
                f"{len(calls - found)} results that a compaction cleared are not in the file"
            )
        self._messages = [
            Draft("tool", [marks().cleared_result], call_id=draft.call_id)
            if draft.role == "tool" and draft.call_id in calls
            else draft
            for draft in self._messages
            if draft not in gone
        ]
        before, saved = count_of(metadata, "preTokens"), count_of(metadata, "tokensSaved")
        after = None if before is None or saved is None else max(before - saved, 0)
        self._conversation.compactions.append(
            Compaction(
                after=self._last(),
                kind="clear",
                trigger=text_of(metadata, "trigger"),
                tokens_before=before,
                tokens_after=after,
                state=_ordered(self._messages),
            )
        )
        line.skip("cleared results in place, which is recorded beside the messages")

    def _last(self) -> Draft | None:
        return self._conversation.drafts[-1] if self._conversation.drafts else None


def _ordered(drafts: Sequence[Draft]) -> list[Draft]:
    """Return messages with each result behind its call, whatever was said between them."""
    owners = {call.id: draft for draft in drafts for call in draft.calls}
    results: dict[Draft, list[Draft]] = defaultdict(list)
    for draft in drafts:
        if draft.role == "tool" and draft.call_id in owners:
            results[owners[draft.call_id]].append(draft)
    moved = {result for found in results.values() for result in found}
    return [
        message
        for draft in drafts
        if draft not in moved
        for message in (draft, *results.get(draft, ()))
    ]


def _same(one: Draft, other: Draft) -> bool:
    return (one.role, one.content, one.calls, one.call_id) == (
        other.role,
        other.content,
        other.calls,
        other.call_id,
    )
