"""What stood in the context of a Claude Code session, and what its compactions made of it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import Json
from compression_eval.conversations.readers.base import marks_of
from compression_eval.conversations.readers.claude_code_tree import Record, preserved

_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CHARACTERS_PER_TOKEN = 4
_MIN_MISSING = 1_000
"""Tokens that a state may lack without a word, as it may a quarter of its own: estimates err."""

_STATE = "made by a compaction: it stands in the state that the compaction left"


class Context:
    """The messages that the model would be sent next, followed line by line.

    A conversation keeps its whole history; the context is what the agent's own compactions left of
    it, and the source of the states that they are recorded with.
    """

    def __init__(self, conversation: Conversation, partial: bool) -> None:
        """Begin.

        Args:
            conversation: Its compactions are recorded there.
            partial: Whether the file begins in the middle of it. What a compaction left is then not
                recorded: it holds more than the history does.
        """
        self._conversation = conversation
        self.begun = False
        """Whether the user has said anything, or the model in a file that is whole."""
        self._partial = partial
        self._left_out = 0
        self._fixed: int | None = None
        """Tokens of what every request holds: the system prompt and the tools, roughly."""
        self._unmeasured: Compaction | None = None
        """The compaction that no request has followed yet."""
        self._missing: dict[Compaction, int | None] = {}
        """Tokens that the request behind a compaction held beside its state; None if unknown."""
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
        found = next((kept for kept in self._repeatable if kept.said == draft.said), None)
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
        metadata = item.value.entry("compactMetadata")
        self._awaited = Compaction(
            after=self._conversation.last,
            trigger=metadata.text("trigger"),
            tokens_before=metadata.count("preTokens"),
            tokens_after=metadata.count("postTokens"),
        )
        self._kept_first = preserved(item).before_summary
        if kept is None:
            self._conversation.caveat(
                "a compaction names messages that it kept, which are not in the file"
            )
        self._kept = kept or []
        self._record(self._awaited)
        line.skip("the boundary of a compaction, which is recorded beside the messages")

    def summarised(self, draft: Draft, line: Line) -> bool:
        """Take the message that hands a summary on; old versions write it without a boundary.

        Returns:
            Whether it belongs to a compaction of the conversation. Where the user has not said
            anything yet, what it summarises is not in the file: it is a message like any other.
        """
        compaction = self._awaited
        if not self.begun:
            if compaction in self._conversation.compactions:
                self._conversation.compactions.remove(compaction)
            self._awaited, self._partial, self._left_out, self.begun = None, False, 0, True
            self._messages = []
            self._conversation.caveat(
                "the file begins in the middle of a conversation, with a summary of what came "
                "before; the summary is the first message"
            )
            return False
        if compaction is None:
            compaction = Compaction(after=self._conversation.last)
            self._record(compaction)
            self._kept = []
        compaction.summary = draft.text
        state = [*self._kept, draft] if self._kept_first else [draft, *self._kept]
        self._leave(compaction, _ordered(state), line)
        return True

    def planned(self, draft: Draft, plan: str, line: Line) -> None:
        """Take the plan for which the context was cleared: it is all that the agent went on with.

        Args:
            draft: The message that hands it on.
            plan: The plan alone, if the line holds it.
            line: Its entry.
        """
        compaction = Compaction(self._conversation.last, trigger="plan", summary=plan or draft.text)
        self._record(compaction)
        self._kept = []
        self._leave(compaction, [draft], line)

    def _leave(self, compaction: Compaction, state: list[Draft], line: Line) -> None:
        compaction.state = state
        self._messages = list(state)
        self._restoring, self._awaited = compaction, None
        self._repeatable = list(self._kept)
        self._unmeasured = compaction
        line.skip(_STATE)

    def _record(self, compaction: Compaction) -> None:
        if self._partial:
            self._left_out += 1
        else:
            self._conversation.compactions.append(compaction)

    def measured(self, message: Json) -> None:
        """Take an answer of the model: its usage tells how large the request was."""
        # The prompt may have been an argument of the program, so that no line holds it.
        self.begun = self.begun or not self._partial
        total, held = sum(message.count("usage", key) or 0 for key in _INPUT), self._unmeasured
        if held is not None:
            self._unmeasured = None
            self._missing[held] = None
            if total:
                held.tokens_after = total
            if total and self._fixed is not None:
                state = _tokens(self._messages)
                missing = total - self._fixed - state
                self._missing[held] = missing if missing >= max(_MIN_MISSING, state // 4) else 0
        elif total and self._fixed is None and not self._missing:
            self._fixed = max(0, total - _tokens(self._messages))

    def finish(self) -> None:
        """Say what of the states that were recorded is not in the file."""
        caveat = self._conversation.caveat
        if self._partial:
            caveat(
                "the file begins in the middle of a conversation: its first line follows one that "
                "is not in it"
            )
        if self._left_out:
            caveat(
                f"{self._left_out} compactions were left out: what the agent went on with holds "
                "history that is not in the file"
            )
        for number, compaction in enumerate(self._conversation.compactions, 1):
            missing = self._missing.get(compaction)
            if missing:
                caveat(
                    f"compaction {number}: the next request held about {round(missing, -3):,} "
                    "tokens more than the recorded state; what the agent's client attached again "
                    "(files, plan, tasks) is not in the file"
                )
            elif missing is None and compaction.kind == "summary" and compaction.state:
                caveat(
                    f"compaction {number}: the recorded state is what the file shows; what the "
                    "agent's client attached again (files, plan, tasks) may be missing"
                )

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
        metadata = item.value.entry("microcompactMetadata")
        calls = {name for name in metadata.listed("compactedToolIds") if isinstance(name, str)}
        names = [n for n in metadata.listed("clearedAttachmentUUIDs") if isinstance(n, str)]
        gone = {draft for name in names for draft in notes.get(name, ())}
        found = {draft.call_id for draft in self._messages if draft.role == "tool"}
        if calls - found:
            self._conversation.caveat(
                f"{len(calls - found)} results that a compaction cleared are not in the file"
            )
        self._messages = [
            Draft("tool", [marks_of("claude_code")["cleared_result"]], call_id=draft.call_id)
            if draft.role == "tool" and draft.call_id in calls
            else draft
            for draft in self._messages
            if draft not in gone
        ]
        before, saved = metadata.count("preTokens"), metadata.count("tokensSaved")
        self._record(
            Compaction(
                after=self._conversation.last,
                kind="clear",
                trigger=metadata.text("trigger"),
                tokens_before=before,
                tokens_after=None if before is None or saved is None else max(before - saved, 0),
                state=_ordered(self._messages),
            )
        )
        line.skip("cleared results in place, which is recorded beside the messages")


def _ordered(drafts: Sequence[Draft]) -> list[Draft]:
    """Return messages with each result behind its call, whatever was said between them."""
    owners = {call.id: draft for draft in drafts for call in draft.calls}
    results: dict[Draft, list[Draft]] = defaultdict(list)
    others: list[Draft] = []
    for draft in drafts:
        owned = draft.role == "tool" and draft.call_id in owners
        (results[owners[draft.call_id or ""]] if owned else others).append(draft)
    return [message for draft in others for message in (draft, *results[draft])]


def _tokens(drafts: Sequence[Draft]) -> int:
    """Return an estimate of the tokens of messages, the same wherever they are imported."""
    sizes = (
        len(draft.text) + sum(len(call.name) + len(call.arguments) for call in draft.calls)
        for draft in drafts
    )
    return sum(sizes) // _CHARACTERS_PER_TOKEN
