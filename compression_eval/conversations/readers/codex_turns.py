"""The course of a Codex session: who really spoke, what was undone, where it was compacted."""

from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft, Image
from compression_eval.conversations.fields import count_of, list_of, mapping_of, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.codex_compaction import compaction_of
from compression_eval.conversations.readers.codex_events import Display
from compression_eval.conversations.readers.codex_marks import begins, is_injected, marks
from compression_eval.conversations.readers.openai_content import content_of, image_of
from compression_eval.conversations.readers.responses_items import COMPACTIONS, ItemReader

_NOT_TYPED = ("user_instructions", "environment_context")


class Turns:
    """Adds items and events to a conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._items = ItemReader(conversation)
        self._display = Display(self._items)
        self._user: set[Draft] = set()
        """Messages that begin a turn: the user's, and those of other agents."""
        self._injected: set[Draft] = set()
        self._confirmed: set[Draft] = set()
        """User messages whose item and event have both been seen."""
        self._early: set[Draft] = set()
        """User messages of which only the event has been seen."""
        self._summary: str | None = None
        """The summary that the model gave when asked for one; empty while it is awaited."""
        self._inline: Compaction | None = None
        self._tokens: int | None = None
        self._fresh: list[Compaction] = []

    def item(self, line: Line, item: dict[str, Any]) -> None:
        """Take an item of the model's input or output."""
        role = text_of(item, "role")
        kind = text_of(item, "type")
        if kind == "message" and role == "user":
            self._user_item(line, item)
        elif kind == "message" and role == "assistant" and self._summary == "":
            self._summary = Draft("assistant", content_of(item.get("content"), line)).text
            line.skip("the summary that a compaction asked for")
        elif kind == "web_search_call":
            self._display.answered(self._items.read(line, self._display.searched(item)))
        else:
            draft = self._items.read(line, item)
            if kind == "message" and role == "assistant" and draft is not None:
                said = Draft("assistant", content_of(item.get("content"), Line("", "")))
                self._display.said(draft, said.text)
            elif kind == "agent_message" and draft is not None:
                self._user.add(draft)
            elif kind in COMPACTIONS:
                self._inline = self._conversation.compactions[-1]
                self._new_compaction(self._inline)

    def from_agent(self, line: Line, payload: dict[str, Any]) -> None:
        """Take a message of another agent."""
        content = payload.get("content")
        if not isinstance(content, str | list):
            line.is_unknown("a message of another agent without a text")
            return
        draft = self._items.read(line, {"type": "agent_message", "content": content})
        if draft is not None:
            self._user.add(draft)

    def event(self, line: Line, payload: dict[str, Any]) -> None:
        """Take an event."""
        kind = text_of(payload, "type")
        if kind == "user_message":
            self._user_event(line, payload)
        elif kind == "thread_rolled_back":
            self._roll_back(line, payload)
        elif not self._display.take(line, kind, payload):
            line.is_unknown("a kind of event that this reader does not know")
        if kind == "token_count":
            self._count(payload)

    def compacted(self, line: Line, payload: dict[str, Any]) -> None:
        """Take the mark of a compaction."""
        compaction = compaction_of(
            payload,
            self._conversation,
            user=self._user,
            summary=self._summary or "",
            line=line,
        )
        self._summary = None
        self._items.close_turn()
        compactions = self._conversation.compactions
        if self._inline is not None and self._inline.after is compaction.after:
            compactions.remove(self._inline)
            self._fresh.remove(self._inline)
        self._inline = None
        compactions.append(compaction)
        self._new_compaction(compaction)
        readable = compaction.kind == "summary"
        line.skip("a compaction, kept as a cut" + ("" if readable else " without its summary"))

    def finish(self) -> None:
        """Settle what waited for later lines."""
        self._display.finish()
        drafts = self._conversation.drafts
        count = sum(draft in self._injected for draft in drafts)
        if count:
            self._conversation.caveats.append(
                f"{count} messages in the user's name were written by Codex (instructions of the "
                "project, surroundings, notices), not by the user"
            )

    def _user_item(self, line: Line, item: dict[str, Any]) -> None:
        draft = Draft("user", content_of(item.get("content"), Line("", "")))
        if begins(draft, marks().summary_request):
            self._summary = ""
            self._items.close_turn()
            line.skip("the request for a summary, which Codex made for a compaction")
            return
        self._summary = None
        early = [waiting for waiting in self._latest() if waiting in self._early]
        same = next((waiting for waiting in early if _same(draft, waiting)), None)
        if same is not None:
            same.content = content_of(item.get("content"), line)
            self._early.discard(same)
            self._confirmed.add(same)
            line.merge(same)
            return
        read = self._items.read(line, item)
        if read is None:
            return
        if is_injected(read):
            line.kind += ":injected"
            read.injected = True
            self._injected.add(read)
        else:
            self._user.add(read)

    def _user_event(self, line: Line, payload: dict[str, Any]) -> None:
        """Take what the user typed: as a rule it repeats the item beside it."""
        if text_of(payload, "kind") in _NOT_TYPED:
            line.skip("repeats what Codex put in the user's name")
            return
        images = [image_of(url) for url in list_of(payload, "images") if isinstance(url, str)]
        said: list[str | Image] = [text_of(payload, "message"), *images]
        typed = Draft("user", said)
        if not typed.text.strip() and not images:
            line.skip("a message of the user without text; its images are with the item")
            return
        near = [draft for draft in self._latest() if draft not in self._early]
        same = next((draft for draft in near if _same(draft, typed)), None)
        if same is None:
            self._early.add(self._items.add(line, typed))
            self._user.add(typed)
            return
        self._confirmed.add(same)
        self._injected.discard(same)
        same.injected = False
        self._user.add(same)
        line.merge(same)

    def _latest(self) -> list[Draft]:
        """Return the input messages since the model last spoke that wait for their other half."""
        found = []
        for draft in reversed(self._conversation.drafts):
            if draft.role not in ("user", "system"):
                break
            if draft.role == "user" and draft not in self._confirmed:
                found.append(draft)
        return found

    def _roll_back(self, line: Line, payload: dict[str, Any]) -> None:
        """Drop the last turns: the user undid them."""
        turns = count_of(payload, "num_turns")
        if turns is None:
            line.is_unknown("turns were undone, but not how many")
            return
        line.skip("a mark that the user undid turns; they are left out")
        conversation = self._conversation
        drafts = conversation.drafts
        starts = [index for index, draft in enumerate(drafts) if draft in self._user]
        if not turns or not starts:
            return
        cut = starts[-min(turns, len(starts))]
        # What Codex put before the undone message belongs to it, but for the session's beginning.
        while cut > starts[0] and (
            drafts[cut - 1] in self._injected or drafts[cut - 1].role == "system"
        ):
            cut -= 1
        for draft in drafts[cut:]:
            conversation.ledger.dropped[draft] = "undone by the user"
        del drafts[cut:]
        kept = set(drafts)
        before = len(conversation.compactions)
        conversation.compactions = [
            item for item in conversation.compactions if item.after is None or item.after in kept
        ]
        self._fresh = [item for item in self._fresh if item in conversation.compactions]
        self._inline = None
        if len(conversation.compactions) < before:
            conversation.caveats.append("a compaction in turns that were undone was left out")
        self._items.close_turn()

    def _new_compaction(self, compaction: Compaction) -> None:
        compaction.tokens_before = self._tokens
        self._fresh.append(compaction)

    def _count(self, payload: dict[str, Any]) -> None:
        """Take how full the context is; the first count after a compaction is its outcome."""
        last = mapping_of(mapping_of(payload, "info"), "last_token_usage")
        tokens = count_of(last, "total_tokens")
        if tokens is None:
            return
        for compaction in self._fresh:
            if compaction.tokens_before is None or tokens < compaction.tokens_before:
                compaction.tokens_after = tokens
        self._fresh.clear()
        self._tokens = tokens


def _same(item: Draft, event: Draft) -> bool:
    """Return whether an item holds what an event says was typed."""
    held, typed = " ".join(item.text.split()), " ".join(event.text.split())
    return held == typed or (bool(typed) and typed in held and not is_injected(item))
