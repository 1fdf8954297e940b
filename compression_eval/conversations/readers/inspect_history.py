"""The true history of a conversation in an Inspect log, and what compactions made of it.

A sample's messages are its last state. Where a compaction replaced earlier ones they are taken
from what the model was given before.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

import yaml

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import as_text, label
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.inspect_messages import drafts_of, key_of, tools_of
from compression_eval.conversations.readers.inspect_threads import Call, Thread

if TYPE_CHECKING:
    from inspect_ai.event import CompactionEvent, ToolEvent
    from inspect_ai.model import ChatMessage, ChatMessageAssistant
    from inspect_ai.tool import ToolInfo


_Kind = Literal["summary", "clear", "opaque"]


class History:
    """Fills a conversation from one thread of a sample."""

    def __init__(self, conversation: Conversation, thread: Thread, lines: Sequence[Line]) -> None:
        """Begin.

        Args:
            conversation: To fill.
            thread: Its calls and its last state.
            lines: The line of every event of the sample; only those of the thread are settled.
        """
        self._conversation = conversation
        self._thread = thread
        self._lines = lines
        self._order: list[str] = []
        self._places: dict[str, int] = {}
        self._drafts: dict[str, list[Draft]] = {}
        """What the messages of the history became, by their keys."""
        self._made: set[str] = set()
        """Keys of messages that a compaction wrote, or that join others."""
        self._last = {key_of(message) for message in thread.messages}
        self._answers = {key_of(call.answer) for call in thread.calls}
        self._answered: set[str | None] = set()
        """Calls whose result is in the history."""

    def fill(self) -> None:
        """Take all messages, then the compactions."""
        after_compaction = {call for _, _, call in self._thread.compactions}
        for call in self._thread.calls:
            self._take_call(call, compacted=call in after_compaction)
        self._take_last()
        self._conversation.drafts.extend(
            draft for key in self._order for draft in self._drafts[key]
        )
        # Of several before one call only the last left what the call was given.
        pending: dict[Call | None, CompactionEvent] = {}
        for index, event, following in self._thread.compactions:
            self._lines[index].skip("recorded as a compaction of the agent")
            pending[following] = event
        for following, event in pending.items():
            self._conversation.compactions.append(self._compaction(event, following))
        tools: dict[str, ToolInfo] = {}
        for call in self._thread.calls:
            tools.update((info.name, info) for info in call.event.tools)
        self._conversation.tools = tools_of(tools.values())

    def add_results(self, events: Sequence[tuple[int, "ToolEvent"]]) -> None:
        """Settle tool calls; a result that no message holds is taken from its event.

        Args:
            events: Those of the thread's calls, with their places.
        """
        drafts = self._conversation.drafts
        results = {draft.call_id: draft for draft in drafts if draft.call_id}
        calls = {call.id for draft in drafts for call in draft.calls}
        for index, event in events:
            line = self._lines[index]
            if event.id in results:
                line.merge(results[event.id])
                continue
            if event.id not in calls:
                line.skip("a call of a message that a compaction wrote")
                continue
            text = event.error.message if event.error is not None else as_text(event.result)
            draft = line.became(Draft("tool", [text], call_id=event.id))
            self._conversation.drafts.insert(self._behind(event.id), draft)
            results[event.id] = draft

    def _behind(self, identifier: str) -> int:
        """Return the place behind a call and the results that it has."""
        drafts = self._conversation.drafts
        place = 1 + next(
            index
            for index, draft in enumerate(drafts)
            if any(call.id == identifier for call in draft.calls)
        )
        while place < len(drafts) and drafts[place].role == "tool":
            place += 1
        return place

    def _take_call(self, call: Call, *, compacted: bool) -> None:
        """Take what a call was given for the first time, and its answer: they are the newest."""
        line = self._lines[call.index]
        for message in [*self._thread.summarised.get(call, ()), *call.event.input]:
            key = key_of(message)
            if key in self._made or key in self._places:
                continue
            if self._is_made(message, compacted=compacted):
                self._made.add(key)
            else:
                self._insert(message, len(self._order), line)
        key = key_of(call.answer)
        if key not in self._places:
            self._insert(call.answer, len(self._order), line)
        elif not line.drafts:
            self._repeat(key, line)

    def _take_last(self) -> None:
        """Take from the last state what no call was given."""
        position = -1
        for number, message in enumerate(self._thread.messages):
            line = self._conversation.ledger.enter(
                f"message {number}", f"message:{label(message.role)}"
            )
            key = key_of(message)
            if self._is_summary(message) or key in self._made:
                self._made.add(key)
                line.skip("written by a compaction")
                continue
            if key not in self._places:
                self._insert(message, position + 1, line)
            else:
                self._repeat(key, line)
            position = self._places[key]

    def _repeat(self, key: str, line: Line) -> None:
        for draft in self._drafts[key]:
            line.merge(draft)

    def _insert(self, message: "ChatMessage", position: int, line: Line) -> None:
        key = key_of(message)
        self._drafts[key] = [line.became(draft) for draft in drafts_of(message, line)]
        self._order.insert(position, key)
        for place in range(position, len(self._order)):
            self._places[self._order[place]] = place
        if message.role == "tool":
            self._answered.add(message.tool_call_id)

    def _is_made(self, message: "ChatMessage", *, compacted: bool) -> bool:
        """Whether a message that was not seen before was not said, but made of others."""
        if self._is_summary(message):
            return True
        joined = (message.metadata or {}).get("combined_from")
        if isinstance(joined, list) and key_of(message) not in self._last:
            seen = self._last | self._made | self._places.keys()
            return any(part in seen for part in joined)
        return compacted and key_of(message) not in self._answers and self._is_changed(message)

    def _is_changed(self, message: "ChatMessage") -> bool:
        """Whether a message that came with a compaction is an earlier one, changed by it."""
        if message.role == "tool":
            return message.tool_call_id in self._answered or message.text == _marks()["removed"]
        if message.role == "system":
            return any(self._drafts[key][0].role == "system" for key in self._order)
        if message.role == "assistant":
            return key_of(message) not in self._last or self._says_again(message)
        return False

    def _says_again(self, message: "ChatMessageAssistant") -> bool:
        """Whether an answer is one of the history, but for its thinking."""
        calls = {call.id for call in message.tool_calls or []}
        return any(
            draft.role == "assistant"
            and {call.id for call in draft.calls} == calls
            and (bool(calls) or draft.text == message.text)
            for key in self._order
            for draft in self._drafts[key]
        )

    def _compaction(self, event: "CompactionEvent", call: Call | None) -> Compaction:
        given = [] if call is None else [m for m in call.event.input if m.role != "system"]
        summaries = [_summary(message.text) for message in given if self._is_summary(message)]
        kind: _Kind = "clear"
        if event.type == "summary":
            kind = "summary" if summaries else "opaque"
        trigger = (event.metadata or {}).get("trigger")
        return Compaction(
            after=self._before(call),
            kind=kind,
            trigger=label(trigger) if trigger else "",
            summary=summaries[-1] if summaries and kind == "summary" else None,
            tokens_before=event.tokens_before,
            tokens_after=event.tokens_after,
            state=None if call is None else [d for m in given for d in self._state_of(m)],
        )

    def _state_of(self, message: "ChatMessage") -> list[Draft]:
        known = self._drafts.get(key_of(message))
        if known is not None:
            return known
        made = drafts_of(message, Line("", ""))
        return [draft for draft in made if draft.content or draft.calls or draft.role == "tool"]

    def _before(self, call: Call | None) -> Draft | None:
        """Return the last message before a compaction."""
        end = len(self._order) if call is None else self._places[key_of(call.answer)]
        return self._drafts[self._order[end - 1]][-1] if end else None

    def _is_summary(self, message: "ChatMessage") -> bool:
        """Whether a message carries the summary of a compaction."""
        if message.role != "user" or not self._thread.compactions:
            return False
        if (message.metadata or {}).get("summary"):
            return True
        return message.text.lstrip().startswith(_summary_starts())


def _summary(text: str) -> str:
    """Return a summary without the message that it was joined to, as some providers demand."""
    places = [place for start in _summary_starts() if (place := text.find(start)) >= 0]
    return text[min(places, default=0) :]


def _summary_starts() -> tuple[str, ...]:
    return tuple(_marks()["summary_starts"])


@cache
def _marks() -> dict[str, Any]:
    text = files(__package__).joinpath("inspect_marks.yaml").read_text(encoding="utf-8")
    marks: dict[str, Any] = yaml.safe_load(text)
    return marks
