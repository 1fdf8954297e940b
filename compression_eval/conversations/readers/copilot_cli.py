"""Sessions of GitHub Copilot CLI: ``events.jsonl``, one event to a line.

Events of sub-agents are among those of the session; each agent is a thread of its own. After a
compaction the session continues with the summary and what came since the compaction was begun.
"""

from collections.abc import Iterator
from typing import ClassVar

from compression_eval.conversations.drafts import (
    NO_THINKING,
    NO_TOOLS,
    Content,
    Conversation,
    Draft,
    Image,
    Line,
    inline_image,
)
from compression_eval.conversations.fields import Json, entries, label, origin
from compression_eval.conversations.readers.base import (
    Format,
    Reader,
    Table,
    feed_threads,
    marked,
    marks_of,
    summary_draft,
)
from compression_eval.conversations.readers.content import content_of
from compression_eval.conversations.sources import SourceFile, Value

_SPOKEN = ("user.message", "assistant.message", "tool.execution_start", "tool.execution_complete")

_STATE = (
    "a recorded state contains the summary and what came after it was begun; Copilot also puts "
    "back the user's messages, the plan and the tasks in a form that the file does not contain"
)


class _Thread(Reader):
    """One agent's events."""

    format = "copilot-cli"
    lacks = (NO_TOOLS,)

    def __init__(self, head: Json, part: str) -> None:
        product = origin("Copilot CLI", head.text("copilotVersion"))
        super().__init__(product, head.text("sessionId"), part)
        self._callers: set[str] = set()
        """Ids of the calls that the model made."""
        self._by_user: dict[str, Json] = {}
        """Calls that the user made, by their ids."""
        self._places: dict[str, int] = {}
        """How many messages there were at an event, by the event's id."""
        self._begun: tuple[int, Json] | None = None
        """How many messages there were when a compaction was begun, and what it said then."""

    def take(self, line: Line, entry: Json) -> None:
        kind, data = entry.text("type"), entry.entry("data")
        if model := data.first("model", "newModel", "selectedModel"):
            self.models[origin(model)] += kind == "assistant.message"
        self.context_length = data.count("tokenLimit") or self.context_length
        if not isinstance(self.kinds.get(kind), str) and not isinstance(entry.at("data"), dict):
            line.is_unknown("unknown kind")
        else:
            super().take(line, entry)
        if name := entry.text("id"):
            self._places[name] = len(self.drafts)

    def finish(self) -> Conversation:
        super().finish()
        self.name_missing(tools=False)
        self.name_injected("Copilot (skills, notices)")
        if any(item.state for item in self.compactions):
            self.caveat(_STATE)
        return self

    def user(self, line: Line, event: Json) -> None:
        """Take what the user said, or what the client said in the user's name."""
        data = event.entry("data")
        text = data.at("content")
        if not isinstance(text, str):
            line.is_unknown("expected the field content as text")
            return
        if data.text("transformedContent") not in ("", text):
            line.leave_out("transformedContent", "what the client put round the message")
        content: Content = [text]
        for item in data.entries("attachments"):
            kind, media_type = item.text("type"), item.text("mimeType")
            if kind == "blob" and media_type.startswith("image/"):
                content.append(inline_image(media_type, item.text("data")))
            elif kind == "selection":
                content.append(item.text("text"))
            else:
                line.leave_out(f"attachment {label(kind)}", "only its name is there")
        injected = data.text("source") not in ("", "user")
        self.say(line, Draft("user", content, injected=injected))

    def notification(self, line: Line, event: Json) -> None:
        self.say(line, Draft("user", [event.text("data", "content")], injected=True))

    def system_prompt(self, line: Line, event: Json) -> None:
        if text := event.text("data", "content"):
            self.say_system(line, Draft("system", [text]))
        else:
            line.is_unknown("expected the field content as text")

    def assistant(self, line: Line, event: Json) -> None:
        data = event.entry("data")
        if data.first("reasoningText", "reasoningOpaque", "encryptedContent"):
            line.leave_out_thinking()
        draft = Draft("assistant", [data.text("content")])
        for request in line.objects(data.listed("toolRequests"), "tool request"):
            self._call(draft, request, "name")
        self.say(line, draft)

    def _call(self, draft: Draft, data: Json, name: str) -> None:
        call_id = data.text("toolCallId")
        draft.call(call_id, data.text(name), data.at("arguments"))
        self._callers.add(call_id)

    def requested(self, _: Line, event: Json) -> None:
        self._by_user[event.text("data", "toolCallId")] = event.entry("data")

    def started(self, line: Line, event: Json) -> None:
        """Take the start of a call, which as a rule the answer before it contains."""
        data, last = event.entry("data"), self.last
        if data.text("toolCallId") in self._callers | self._by_user.keys():
            return
        if last is None or last.role != "assistant":
            last = Draft("assistant")
            self.say(line, last)
        self._call(last, data, "toolName")

    def completed(self, line: Line, event: Json) -> None:
        data, result = event.entry("data"), event.entry("data", "result")
        call_id = data.text("toolCallId")
        text = result.text("content") or data.text("error", "message")
        shown = content_of(result.listed("contents"), Line())
        images = [part for part in shown if isinstance(part, Image)]
        if result.text("detailedContent") not in ("", text):
            line.leave_out("detailedContent", "what the screen showed of a result")
        if call_id in self._by_user:
            request = self._by_user.pop(call_id)
            said = f"{request.json('arguments')}\n{text}"
            action = marked("user_action", name=request.text("toolName"), text=said)
            self.say(line, Draft("user", [action, *images]))
        elif result or data.entry("error"):
            self.say(line, Draft("tool", [text, *images], call_id=call_id))
        else:
            line.skip("a call was carried out; the file does not contain its result")

    def compacting(self, _: Line, event: Json) -> None:
        self._begun = len(self.drafts), event.entry("data")

    def compacted(self, line: Line, event: Json) -> None:
        data = event.entry("data")
        start, before = self._begun or (len(self.drafts), Json())
        self._begun = None
        if data.at("success") is False:
            line.skip("a compaction that failed")
            return
        summary, tokens = data.text("summaryContent"), data.count("preCompactionTokens")
        self.compact(
            summary,
            [summary_draft(summary), *self.drafts[start:]],
            trigger=data.text("trigger") or before.text("trigger"),
            tokens_before=before.count("currentTokens") if tokens is None else tokens,
            tokens_after=data.count("postCompactionTokens"),
        )

    def rewound(self, line: Line, event: Json) -> None:
        place = self._places.get(event.text("data", "upToEventId"))
        if place is None:
            line.is_unknown("a rewind to an event that is not in the file")
        else:
            self.undo(place)

    kinds: ClassVar[Table] = {
        **dict.fromkeys(
            marks_of("copilot_cli")["unseen_events"],
            "how the client went on; the model did not see it",
        ),
        "user.message": user,
        "assistant.message": assistant,
        "system.message": system_prompt,
        "system.notification": notification,
        "tool.user_requested": requested,
        "tool.execution_start": started,
        "tool.execution_complete": completed,
        "session.compaction_start": compacting,
        "session.compaction_complete": compacted,
        "session.snapshot_rewind": rewound,
        "session.context_cleared": "the context was cleared; another conversation follows",
        "assistant.turn_start": "a mark of a turn's course",
        "assistant.turn_end": "a mark of a turn's course",
        "assistant.reasoning": NO_THINKING,
        "session.truncation": "what one request left out; the session itself kept it",
        "skill.invoked": "a skill was loaded; what the model saw of it is a message",
        "abort": "a mark that the turn was interrupted",
    }


class _Session:
    """Sorts events to the agents that they belong to."""

    def __init__(self) -> None:
        self.recognised = False
        self._head = Json()
        self._threads: dict[str, _Thread] = {}
        self._names: dict[str, str] = {}
        """The sub-agent that a call started, by the call's id."""
        self._cleared = 0

    def thread_of(self, value: Value) -> _Thread:
        """Return the thread that an event belongs to."""
        event = Json.of(value.value)
        kind, agent = event.text("type"), event.text("agentId")
        caller = event.text("data", "parentToolCallId")
        self.recognised = self.recognised or kind in ("session.start", *_SPOKEN)
        if kind == "session.start":
            self._head = self._head or event.entry("data")
        if kind.startswith("subagent."):  # what is told of a sub-agent, not by it
            if kind == "subagent.started" and agent:
                self._names[event.text("data", "toolCallId")] = agent
            agent = ""
        elif not agent and caller:
            agent = self._names.get(caller, caller)
        if agent:
            return self._thread(f"agent-{agent}")
        thread = self._thread(f"after-clear-{self._cleared}" if self._cleared else "")
        if kind == "session.context_cleared":
            self._cleared += 1
            if first := event.text("data", "initialMessage"):
                message = {"type": "user.message", "data": {"content": first}}
                self._thread(f"after-clear-{self._cleared}").feed(Value(value.place, message))
        return thread

    def _thread(self, part: str) -> _Thread:
        if part not in self._threads:
            self._threads[part] = _Thread(self._head, part)
        return self._threads[part]

    def finish(self) -> Iterator[Conversation]:
        """Yield the conversations, each sub-agent's with the task that it was given."""
        done = {key: thread.finish() for key, thread in self._threads.items()}
        callers = {agent: call for call, agent in self._names.items()}
        drafts = (draft for thread in done.values() for draft in thread.drafts)
        tasks = {call.id: call.arguments for draft in drafts for call in draft.calls}
        for key, conversation in done.items():
            if key.startswith("agent-"):
                agent = key.removeprefix("agent-")
                conversation.take_task(tasks.get(callers.get(agent, agent), ""))
            yield conversation


def _recognise(source: SourceFile) -> str | None:
    for value in entries(source.head):
        kind = value.text("type")
        if kind == "session.start" and value.text("data", "sessionId"):
            return "an event session.start with data.sessionId"
        whole = isinstance(value.at("data"), dict)
        if whole and kind in _SPOKEN and {"id", "timestamp", "parentId"} <= value.keys():
            return f"events such as {kind} with id, parentId and data"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    session = _Session()
    feed_threads(source.values(), session.thread_of)
    if session.recognised:
        yield from session.finish()


FORMAT = Format("copilot-cli", _recognise, _read, "events of Copilot CLI such as session.start")
