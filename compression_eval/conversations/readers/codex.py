"""Codex rollouts: ``rollout-*.jsonl``, also compressed as ``.jsonl.zst``.

Lines contain items of the Responses API, which the model saw or said, and events for the screen,
most of which repeat an item. A message of the user may be in either, or in both.
"""

from collections import defaultdict
from itertools import takewhile
from typing import Any, ClassVar

from compression_eval.conversations.drafts import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    Compaction,
    Conversation,
    Draft,
    Line,
    image_at,
)
from compression_eval.conversations.fields import Json, entries, origin
from compression_eval.conversations.readers.base import (
    Table,
    line_format,
    marks_of,
    with_originals,
)
from compression_eval.conversations.readers.content import content_of
from compression_eval.conversations.readers.responses import (
    COMPACTIONS,
    ItemReader,
    item_name,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.metadata import USAGE

_LINES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_NOT_TYPED = ("user_instructions", "environment_context")
_KEPT_TOKENS = 20_000
"""How much of the user's messages Codex keeps where it summarises by itself."""
_BYTES_PER_TOKEN = 4
"""By which Codex estimates them."""


class _Rollout(ItemReader):
    format = "codex"
    subtype = ("payload", "type")

    def __init__(self) -> None:
        super().__init__("Codex")
        self._search = Json()
        """The event of a search whose item has yet to come."""
        self._shown: dict[str, list[Line]] = defaultdict(list)
        """Events with an answer of the model that no item has been seen of, by its text."""
        self._said: str | None = None
        """The text of the last answer, until an event has shown it."""
        self._seen_head = self._has_prompt = False
        self._user: set[Draft] = set()
        """Messages that begin a turn: the user's, and those of other agents."""
        self._confirmed: set[Draft] = set()
        """User messages whose item and event have both been seen."""
        self._early: set[Draft] = set()
        """User messages only the event has been seen."""
        self._summary: str | None = None
        """The summary that the model gave when asked for one; empty while it is awaited."""
        self._inline: Compaction | None = None
        """A compaction that only an item told of so far."""
        self._tokens: int | None = None
        self._fresh: list[Compaction] = []
        """Compactions that no count of tokens has followed yet."""

    def name_of(self, entry: Json) -> str:
        if entry.text("type") == "response_item":
            return f"response_item:{item_name(entry.entry('payload'))}"
        return super().name_of(entry)

    def take(self, line: Line, entry: Json) -> None:
        handler, payload = self.kinds.get(entry.text("type")), entry.at("payload")
        if handler is None or isinstance(handler, str):
            super().take(line, entry)
        elif isinstance(payload, dict):
            self.recognised = True
            handler(self, line, Json(payload))
        else:
            line.is_unknown("expected an object as payload")

    def head(self, line: Line, payload: Json) -> None:
        """Take the head of this session; a fork's file contains the head of its origin as well."""
        if self._seen_head:
            line.skip("the head of the session that this one was forked from")
            return
        self._seen_head = True
        self.session = payload.text("id")
        self.origin = origin("Codex", payload.text("cli_version"))
        if "subagent" in (*payload.entry("source"), payload.text("thread_source")):
            self.name_subagent()
        if payload.text("forked_from_id"):
            self.caveat(
                "a fork: the thread begins with a copy of the session that it was forked from"
            )
        self.take_tools(payload.listed("dynamic_tools"))
        system = payload.text("base_instructions") or payload.text("base_instructions", "text")
        self._has_prompt = bool(system.strip())
        if self._has_prompt:
            self.drafts.insert(0, line.became(Draft("system", [system])))

    def turn(self, _: Line, payload: Json) -> None:
        self.models[payload.text("model")] += 1

    def item(self, line: Line, item: Json) -> None:
        kind, role = item.text("type"), item.text("role")
        answer = kind == "message" and role == "assistant"
        text = Draft("assistant", content_of(item.at("content"), Line())).text if answer else ""
        if kind == "message" and role == "user":
            self._user_item(line, item)
            return
        if answer and self._summary == "":
            self._summary = text
            line.skip("the summary that a compaction asked for")
            return
        if kind == "web_search_call":
            item, self._search = _searched(item, self._search), Json()
        draft = self.read_item(line, item)
        if answer:
            self._shown.pop(text, None)
            self._said = text
        elif kind == "agent_message" and draft is not None:
            self._user.add(draft)
        elif kind in COMPACTIONS:
            self._inline = self.compactions[-1]
            self._new_compaction(self._inline)

    def from_agent(self, line: Line, payload: Json) -> None:
        self.item(line, Json(type="agent_message", content=payload.at("content")))

    def event(self, line: Line, payload: Json) -> None:
        length = payload.count("model_context_window")
        length = length or payload.count("info", "model_context_window")
        self.context_length = length or self.context_length
        kind, text = payload.text("type"), payload.text("message")
        if kind == "user_message":
            self._user_event(line, payload)
        elif kind == "thread_rolled_back":
            self._roll_back(line, payload)
        elif kind == "agent_message" and self._said == text:
            self._said = None
        elif kind == "agent_message":  # what the user was shown comes before the answer, or after
            self._shown[text].append(line)
        elif kind == "web_search_end":
            self._search = payload
        elif kind not in marks_of("codex")["call_events"]:
            reasons = marks_of("codex")["screen_events"].items()
            why = next((why for why, kinds in reasons if kind in kinds), "")
            if why:
                line.skip(why)
            else:
                line.is_unknown("unknown kind of event")
        tokens = payload.count("info", "last_token_usage", "total_tokens")
        if kind == "token_count" and tokens is not None:
            # The first count after a compaction is its outcome.
            for compaction in self._fresh:
                if compaction.tokens_before is None or tokens < compaction.tokens_before:
                    compaction.tokens_after = tokens
            self._fresh.clear()
            self._tokens = tokens
            answer = self.last
            if answer and answer.role == "assistant" and answer.usage is None:
                usage = payload.entry("info").entry("last_token_usage")
                answer.usage = {name: usage.count(name) for name in USAGE}

    def compacted(self, line: Line, payload: Json) -> None:
        summary, state = payload.text("message") or self._summary, None
        history = payload.at("replacement_history")
        sealed = announced = self._inline is not None and self._inline.after is self.last
        if isinstance(history, list):
            sealed |= any(item.text("type") in COMPACTIONS for item in entries(history))
            replayed = _replayed(history, line)
            start = marks_of("codex")["summary_start"]
            handed = (draft.text for draft in replayed if _begins(draft, start))
            summary = summary or next(handed, "")
            state = with_originals(replayed, self.drafts)
            if not summary:
                self.caveat(
                    "the summary of a compaction is encrypted; only what was kept is known"
                    if sealed
                    else "the file contains no summary of a compaction, only the messages that "
                    "Codex continued with; anything else that it kept is missing"
                )
        elif summary:
            state = self._rebuilt(summary)
            self.caveat(
                "what was kept at a compaction is not in the file; it was worked out by the rule "
                f"that Codex follows: the user's last {_KEPT_TOKENS:,} tokens and the summary"
            )
        if announced and self._inline is not None:
            self.compactions.remove(self._inline)
            self._fresh.remove(self._inline)
        self._summary = self._inline = None
        self.close_turn()
        compaction = self.compact(
            summary, kind="summary" if summary or (state and not sealed) else "opaque"
        )
        compaction.state = state
        self._new_compaction(compaction)

    kinds: ClassVar[Table] = {
        "session_meta": head,
        "turn_context": turn,
        "response_item": item,
        "event_msg": event,
        "compacted": compacted,
        "inter_agent_communication": from_agent,
        "world_state": "a snapshot of the surroundings; what the model saw of it is a message",
        "token_usage_record": "an account of tokens",
        "inter_agent_communication_metadata": "how a message of another agent was handled",
        "rollout_reference": "refers to another rollout",
    }

    def finish(self) -> Conversation:
        for line in (line for lines in self._shown.values() for line in lines):
            line.skip("shown to the user; no message of the model has this text")
        self.name_injected("Codex (instructions of the project, surroundings, notices)")
        self.models.pop("", None)
        self.model = list(self.models or [""])[-1]
        if len(self.models) > 1:
            self.caveat("the model was changed along the way; the last one is named")
        if not self._has_prompt:  # what is in the items of the role system is not all of it
            self.caveat(NO_SYSTEM_PROMPT)
        if not self.tools:
            self.caveat(NO_TOOLS)
        return self

    def _user_item(self, line: Line, item: Json) -> None:
        draft = Draft("user", content_of(item.at("content"), Line()))
        if _begins(draft, marks_of("codex")["summary_request"]):
            self._summary = ""
            self.close_turn()
            line.skip("the request for a summary, which Codex made for a compaction")
            return
        self._summary = None
        early = (waiting for waiting in self._latest() if waiting in self._early)
        same = next((waiting for waiting in early if _same(draft, waiting)), None)
        if same is not None:
            same.content = content_of(item.at("content"), line)
            self._early.discard(same)
            self._confirmed.add(same)
        elif (read := self.read_item(line, item)) is not None:
            read.injected = _is_injected(read)
            if not read.injected:
                self._user.add(read)

    def _user_event(self, line: Line, payload: Json) -> None:
        """Take what the user typed: as a rule it repeats the item next to it."""
        if payload.text("kind") in _NOT_TYPED:
            line.skip("repeats what Codex put in the user's name")
            return
        images = [image_at(url) for url in payload.listed("images") if isinstance(url, str)]
        typed = Draft("user", [payload.text("message"), *images])
        if not typed.text.strip() and not images:
            line.skip("a message of the user without text; its images are with the item")
            return
        near = (draft for draft in self._latest() if draft not in self._early)
        same = next((draft for draft in near if _same(draft, typed)), None)
        self._user.add(same or typed)
        if same is None:
            self._early.add(self.add(line, typed))
        else:
            self._confirmed.add(same)
            same.injected = False

    def _latest(self) -> list[Draft]:
        """Return the input messages since the model last spoke that wait for their other half."""
        behind = takewhile(lambda draft: draft.role in ("user", "system"), reversed(self.drafts))
        return [each for each in behind if each.role == "user" and each not in self._confirmed]

    def _roll_back(self, line: Line, payload: Json) -> None:
        """Drop the last turns: the user undid them."""
        turns, drafts = payload.count("num_turns"), self.drafts
        if turns is None:
            line.is_unknown("turns were undone, but not how many")
            return
        starts = [index for index, draft in enumerate(drafts) if draft in self._user]
        if not turns or not starts:
            return
        cut = starts[-min(turns, len(starts))]
        # What Codex put before the undone message belongs to it, but for the session's beginning.
        while cut > starts[0] and (drafts[cut - 1].injected or drafts[cut - 1].role == "system"):
            cut -= 1
        before = len(self.compactions)
        self.undo(cut)
        self._fresh = [item for item in self._fresh if item in self.compactions]
        self._inline = None
        if len(self.compactions) < before:
            self.caveat("a compaction in turns that were undone was left out")
        self.close_turn()

    def _new_compaction(self, compaction: Compaction) -> None:
        compaction.tokens_before = self._tokens
        self._fresh.append(compaction)

    def _rebuilt(self, summary: str) -> list[Draft]:
        """Return what Codex keeps: the user's messages, newest first, and the summary."""
        room, kept = _KEPT_TOKENS, list[Draft]()
        for draft in reversed([draft for draft in self.drafts if draft in self._user]):
            size = -(-len(draft.text.encode(errors="replace")) // _BYTES_PER_TOKEN)
            if size > room:
                if room:
                    kept.append(Draft("user", [_shortened(draft.text, room)]))
                break
            kept.append(draft)
            room -= size
        return [*reversed(kept), Draft("user", [summary])]


def _is_injected(draft: Draft) -> bool:
    """Return whether every text of a user message begins as those that Codex writes."""
    texts = [part for part in draft.content if isinstance(part, str) and part.strip()]
    starts = marks_of("codex")["injected"]
    return bool(texts) and all(text.lstrip().startswith(starts) for text in texts)


def _begins(draft: Draft, start: str) -> bool:
    return draft.text.lstrip().startswith(start)


def _same(item: Draft, event: Draft) -> bool:
    """Return whether an item contains what an event says was typed."""
    held, typed = " ".join(item.text.split()), " ".join(event.text.split())
    return held == typed or (bool(typed) and typed in held and not _is_injected(item))


def _searched(item: Json, event: Json) -> Json:
    """Return a search with what the event before it tells beyond the item: id and query."""
    query = {"type": "search", "query": event.text("query")} if event.text("query") else None
    extra = {"id": event.text("call_id"), "action": event.entry("action") or query}
    missing = {key: value for key, value in extra.items() if value and not item.get(key)}
    return Json({**item, **missing})


def _replayed(history: list[Any], line: Line) -> list[Draft]:
    scratch = ItemReader()
    for item in history:
        entry = Line()
        scratch.read_item(entry, Json.of(item))
        if entry.unknown:
            line.leave_out("item of the kept history", entry.reason or "")
        line.parts += entry.parts
    return [draft for draft in scratch.drafts if draft.calls or draft.text or draft.content]


def _shortened(text: str, tokens: int) -> str:
    data = text.encode(errors="replace")
    half = tokens * _BYTES_PER_TOKEN // 2
    gone = (len(data) - 2 * half) // _BYTES_PER_TOKEN
    head, tail = data[:half].decode(errors="ignore"), data[-half:].decode(errors="ignore")
    mark: str = marks_of("codex")["shortened"]
    return head + mark.replace("{tokens}", str(gone)) + tail


def _recognise(source: SourceFile) -> str | None:
    head = entries(source.head)
    wrapped = {value.text("type") for value in head if isinstance(value.at("payload"), dict)}
    seen = [kind for kind in _LINES if kind in wrapped]
    return f"lines with type and payload: {', '.join(seen)}" if seen else None


FORMAT = line_format(_Rollout, _recognise, f"lines of a Codex rollout ({', '.join(_LINES)})")
