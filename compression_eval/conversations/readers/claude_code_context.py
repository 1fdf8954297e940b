"""What stood in the context of a Claude Code session, and what its compactions made of it."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from compression_eval.conversations.drafts import Compaction, Conversation, Draft, Line
from compression_eval.conversations.fields import Json
from compression_eval.conversations.readers.base import marks_of
from compression_eval.conversations.readers.claude_code_tree import Record, preserved

_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CHARACTERS_PER_TOKEN = 4
_MIN_MISSING = 1_000
"""Tokens that a state may lack without a word, as it may a quarter of its own: estimates err."""

_STATE = "made by a compaction: it stands in the state that the compaction left"


class _Boundary(NamedTuple):
    """A compaction that is announced: its summary has yet to come."""

    compaction: Compaction
    kept: Sequence[Draft] = ()
    kept_first: bool = False


class Context:
    """The messages that the model would be sent next, followed line by line.

    A conversation keeps its whole history; the context is what the agent's own compactions left of
    it, and the source of the states that they are recorded with.
    """

    def __init__(self, conversation: Conversation, partial: bool) -> None:
        self._conversation = conversation
        """Gets the messages and the compactions."""
        self._messages: list[Draft] = []
        self._partial = partial
        """Whether the file begins in the middle: then what a compaction left is not recorded, for
        it holds more than the history does."""
        self._begun = False
        """Whether the user has said anything, or the model in a file that is whole."""
        self._compactions: list[Compaction] = []
        self._boundary: _Boundary | None = None
        self._restoring: Compaction | None = None
        """The compaction that nothing was said behind yet: the client still puts notes back."""
        self._repeatable: list[Draft] = []
        """The messages that it kept, which lines right behind it may repeat."""
        self._sizes = _Sizes()

    def say(self, drafts: Sequence[Draft], *, by_user: bool = False) -> None:
        """Add messages to the conversation."""
        self._begun = self._begun or by_user
        if drafts:
            self._conversation.drafts.extend(drafts)
            self._messages.extend(drafts)
            self._restoring, self._repeatable = None, []

    def take_repeated(self, draft: Draft) -> Draft | None:
        """Take, once each, the kept message that a line right behind a compaction repeats."""
        found = next((kept for kept in self._repeatable if kept.said == draft.said), None)
        if found is not None:
            self._repeatable.remove(found)
        return found

    @property
    def repeats_expected(self) -> bool:
        """Whether lines right behind a compaction may still repeat what it kept."""
        return bool(self._repeatable)

    def announce(self, record: Record, line: Line, kept: list[Draft] | None) -> None:
        """Record the compaction of a boundary; `kept` is None if not all that it kept is there."""
        metadata = record.entry.entry("compactMetadata")
        compaction = Compaction(self._conversation.last, trigger=metadata.text("trigger"))
        compaction.tokens_before = metadata.count("preTokens")
        compaction.tokens_after = metadata.count("postTokens")
        self._boundary = _Boundary(compaction, kept or [], preserved(record).before_summary)
        if kept is None:
            self._conversation.caveat(
                "a compaction names messages that it kept, which are not in the file"
            )
        self._compactions.append(compaction)
        line.skip("the boundary of a compaction, which is recorded beside the messages")

    def summarise(self, draft: Draft, line: Line) -> bool:
        """Record the message that hands a summary on; old versions write it without a boundary.

        Returns:
            Whether it belongs to a compaction of the conversation. Where the user has not said
            anything yet, what it summarises is not in the file: it is a message like any other.
        """
        boundary, self._boundary = self._boundary, None
        if not self._begun:
            if self._partial:
                self._compactions.clear()
            elif boundary:
                self._compactions.remove(boundary.compaction)
            self._begun, self._partial, self._messages = True, False, []
            self._conversation.caveat(
                "the file begins in the middle of a conversation, with a summary of what came "
                "before; the summary is the first message"
            )
            return False
        if boundary is None:
            boundary = _Boundary(Compaction(after=self._conversation.last))
            self._compactions.append(boundary.compaction)
        boundary.compaction.summary, kept = draft.text, boundary.kept
        state = [*kept, draft] if boundary.kept_first else [draft, *kept]
        self._replace(boundary.compaction, _ordered(state), kept, line)
        return True

    def restart(self, draft: Draft, plan: str, line: Line) -> None:
        """Record that the context was cleared for a plan, which is all that the agent kept."""
        compaction = Compaction(self._conversation.last, trigger="plan", summary=plan or draft.text)
        self._boundary = None
        self._compactions.append(compaction)
        self._replace(compaction, [draft], [], line)

    def _replace(
        self, compaction: Compaction, state: list[Draft], kept: Sequence[Draft], line: Line
    ) -> None:
        compaction.state = state
        self._messages = list(state)
        self._restoring, self._repeatable = compaction, list(kept)
        self._sizes.unmeasured = compaction
        line.skip(_STATE)

    def restore(self, draft: Draft, line: Line) -> bool:
        """Add a note to the state of the compaction that put it back; False if none did."""
        if self._restoring is None or self._restoring.state is None:
            return False
        self._restoring.state.append(draft)
        self._messages.append(draft)
        line.skip(_STATE)
        return True

    def clear(self, record: Record, line: Line, notes: Collection[Draft]) -> None:
        """Record a microcompaction: it cleared results in place, and took notes away."""
        metadata = record.entry.entry("microcompactMetadata")
        calls = {name for name in metadata.listed("compactedToolIds") if isinstance(name, str)}
        missing = calls - {draft.call_id for draft in self._messages if draft.role == "tool"}
        if missing:
            self._conversation.caveat(
                f"{len(missing)} results that a compaction cleared are not in the file"
            )
        self._messages = [
            Draft("tool", [marks_of("claude_code")["cleared_result"]], call_id=draft.call_id)
            if draft.role == "tool" and draft.call_id in calls
            else draft
            for draft in self._messages
            if draft not in notes
        ]
        compaction = Compaction(self._conversation.last, "clear", metadata.text("trigger"))
        before, saved = metadata.count("preTokens"), metadata.count("tokensSaved")
        compaction.tokens_before = before
        if before is not None and saved is not None:
            compaction.tokens_after = max(before - saved, 0)
        compaction.state = _ordered(self._messages)
        self._compactions.append(compaction)
        line.skip("cleared results in place, which is recorded beside the messages")

    def measure(self, message: Json) -> None:
        """Learn from an answer of the model how large the request was that it answers."""
        # The prompt may have been an argument of the program, so that no line holds it.
        self._begun = self._begun or not self._partial
        total = sum(message.count("usage", key) or 0 for key in _INPUT)
        self._sizes.measure(total, self._messages)

    def finish(self) -> None:
        """Record the compactions, with a caveat for everything that the file lacks of them."""
        caveat = self._conversation.caveat
        if self._partial:
            caveat(
                "the file begins in the middle of a conversation: its first line follows one that "
                "is not in it"
            )
            if self._compactions:
                caveat(
                    f"{len(self._compactions)} compactions were left out: what the agent went on "
                    "with holds history that is not in the file"
                )
            return
        self._conversation.compactions.extend(self._compactions)
        for number, compaction in enumerate(self._compactions, 1):
            missing = self._sizes.missing.get(compaction)
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


class _Sizes:
    """How much larger the requests behind compactions were than the states that are known."""

    def __init__(self) -> None:
        self.unmeasured: Compaction | None = None
        """The compaction that no request has followed yet."""
        self.missing: dict[Compaction, int | None] = {}
        """Tokens that the request behind a compaction held beside its state; None if unknown."""
        self._fixed: int | None = None
        """Tokens of what every request holds: the system prompt and the tools, roughly."""

    def measure(self, total: int, messages: Sequence[Draft]) -> None:
        """Compare the tokens of a request, 0 if unknown, with the messages known to be in it."""
        compaction, self.unmeasured = self.unmeasured, None
        if compaction is not None:
            self.missing[compaction] = None
            if total:
                compaction.tokens_after = total
            if total and self._fixed is not None:
                state = _tokens(messages)
                missing = total - self._fixed - state
                enough = missing >= max(_MIN_MISSING, state // 4)
                self.missing[compaction] = missing if enough else 0
        elif total and self._fixed is None and not self.missing:
            self._fixed = max(0, total - _tokens(messages))


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
