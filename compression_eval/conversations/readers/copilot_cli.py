"""Sessions of GitHub Copilot CLI: ``events.jsonl``, one event to a line.

Events of sub-agents stand among those of the session; each agent is a thread of its own. After a
compaction the session goes on with the summary and what came since the compaction was begun.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft, DraftCall, Image
from compression_eval.conversations.fields import (
    as_text,
    count_of,
    label,
    list_of,
    mapping_of,
    text_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.pi_messages import content_of, summary_draft
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    entered,
    give_task,
    leave_out_thinking,
    marked,
    origin,
    say_injected,
)
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError

_SPOKEN = ("user.message", "assistant.message", "tool.execution_start", "tool.execution_complete")

_SKIPPED = {
    "assistant.turn_start": "a mark of a turn's course",
    "assistant.turn_end": "a mark of a turn's course",
    "assistant.reasoning": "thinking is left out",
    "session.truncation": "what one request left out; the session itself kept it",
    "skill.invoked": "a skill was loaded; what the model saw of it is a message",
    "abort": "a mark that the turn was interrupted",
}
_UNSEEN = frozenset(
    f"{room}.{name}"
    for room, names in {
        "session": "start resume remote_steerable_changed error idle title_changed info warning "
        "model_change mode_changed permissions_changed plan_changed todos_changed shutdown handoff "
        "workspace_file_changed usage_checkpoint usage_info context_changed task_complete "
        "schedule_created schedule_cancelled auto_mode_resolved limits_changed tools_updated "
        "background_tasks_changed skills_loaded custom_agents_updated mcp_servers_loaded "
        "mcp_server_status_changed extensions_loaded custom_notification binary_asset",
        "assistant": "intent message_start message_delta reasoning_delta streaming_delta usage "
        "tool_call_delta idle",
        "tool": "execution_partial_result execution_progress",
        "subagent": "started configured completed failed selected deselected",
        "hook": "start end progress",
        "permission": "requested completed",
        "user_input": "requested completed",
        "elicitation": "requested completed",
        "external_tool": "requested completed",
        "exit_plan_mode": "requested completed",
        "command": "queued execute completed",
        "model": "call_failure call_finished",
        "pending_messages": "modified",
    }.items()
    for name in names.split()
)
"""Events that only tell how the client went on; what came of them is a message or a result."""

_THOUGHTS = ("reasoningText", "reasoningOpaque", "encryptedContent")

_STATE = (
    "a recorded state holds the summary and what came after it was begun; Copilot also puts back "
    "the user's messages, the plan and the tasks in a form that the file does not hold"
)


class _Thread:
    """One agent's events."""

    def __init__(self, head: dict[str, Any], part: str) -> None:
        self.conversation = Conversation(
            "copilot-cli",
            origin("Copilot CLI", text_of(head, "copilotVersion")),
            text_of(head, "sessionId"),
            Ledger(),
            part=part,
            caveats=[NO_TOOLS],
        )
        self._models: Counter[str] = Counter()
        self._callers: dict[str, Draft] = {}
        self._by_user: dict[str, dict[str, Any]] = {}
        """Calls that the user made himself, by their ids."""
        self._places: dict[str, int] = {}
        """How many messages there were at an event, by the event's id."""
        self._begun: tuple[int, dict[str, Any]] | None = None
        """How many messages there were when a compaction was begun, and what it said then."""
        self._takers: dict[str, Callable[[Line, dict[str, Any]], None]] = {
            "user.message": self._user,
            "assistant.message": self._assistant,
            "system.message": self._system,
            "system.notification": self._notification,
            "tool.user_requested": self._requested,
            "tool.execution_start": self._started,
            "tool.execution_complete": self._completed,
            "session.compaction_start": self._compacting,
            "session.compaction_complete": self._compacted,
            "session.snapshot_rewind": self._rewound,
        }

    def take(self, line: Line, event: dict[str, Any]) -> None:
        """Settle the line of an event."""
        kind, data = text_of(event, "type"), mapping_of(event, "data")
        model = (
            text_of(data, "model") or text_of(data, "newModel") or text_of(data, "selectedModel")
        )
        if kind in (*_SPOKEN, "session.start", "session.model_change") and model:
            self._models[origin(model)] += kind == "assistant.message"
        limit = count_of(data, "tokenLimit")
        if kind.startswith("session.") and limit:
            self.conversation.context_length = limit
        if kind in self._takers and isinstance(event.get("data"), dict):
            self._takers[kind](line, data)
        elif kind in _SKIPPED:
            line.skip(_SKIPPED[kind])
        elif kind in _UNSEEN:
            line.skip("how the client went on; the model did not see it")
        else:
            line.is_unknown("a kind of event that Copilot CLI is not known to write")
        if name := text_of(event, "id"):
            self._places[name] = len(self.conversation.drafts)

    def finish(self) -> Conversation:
        """Return the conversation."""
        conversation = self.conversation
        conversation.model = self._models.most_common(1)[0][0] if self._models else ""
        if not any(draft.role == "system" for draft in conversation.drafts):
            conversation.caveats.append(NO_SYSTEM_PROMPT)
        say_injected(conversation, "Copilot (skills, notices)")
        if any(item.state for item in conversation.compactions):
            conversation.caveats.append(_STATE)
        return conversation

    def _say(self, line: Line, draft: Draft) -> None:
        self.conversation.drafts.append(line.became(draft))

    def _user(self, line: Line, data: dict[str, Any]) -> None:
        text = data.get("content")
        if not isinstance(text, str):
            line.is_unknown("expected the field content as text")
            return
        if text_of(data, "transformedContent") not in ("", text):
            line.leave_out("transformedContent", "what the client put round the message")
        content: list[str | Image] = [text]
        for item in list_of(data, "attachments"):
            media_type, blob = text_of(item, "mimeType"), text_of(item, "data")
            if text_of(item, "type") == "blob" and media_type.startswith("image/"):
                content.append(Image(media_type, f"data:{media_type};base64,{blob}"))
            elif text_of(item, "type") == "selection":
                content.append(text_of(item, "text"))
            else:
                line.leave_out(
                    f"attachment {label(text_of(item, 'type'))}", "only its name is there"
                )
        injected = text_of(data, "source") not in ("", "user")
        line.kind += ":injected" if injected else ""
        self._say(line, Draft("user", content, injected=injected))

    def _notification(self, line: Line, data: dict[str, Any]) -> None:
        if not text_of(data, "content"):
            line.skip("a notice without text")
            return
        self._say(line, Draft("user", [text_of(data, "content")], injected=True))

    def _system(self, line: Line, data: dict[str, Any]) -> None:
        first = next((item for item in self.conversation.drafts if item.role == "system"), None)
        text = text_of(data, "content")
        if not text:
            line.is_unknown("expected the field content as text")
        elif first is None:
            self.conversation.drafts.insert(0, line.became(Draft("system", [text])))
        elif first.text == text:
            line.merge(first)
        else:
            line.skip("its system prompt took the place of an earlier one")

    def _assistant(self, line: Line, data: dict[str, Any]) -> None:
        if any(text_of(data, key) for key in _THOUGHTS):
            leave_out_thinking(line)
        draft = Draft("assistant", [text_of(data, "content")])
        for request in list_of(data, "toolRequests"):
            if isinstance(request, dict):
                self._call(draft, request, text_of(request, "name"))
            else:
                line.leave_out("tool request", "expected an object")
        self._say(line, draft)

    def _call(self, draft: Draft, data: dict[str, Any], name: str) -> None:
        identifier = text_of(data, "toolCallId")
        draft.calls.append(DraftCall(identifier, name, as_text(data.get("arguments"))))
        self._callers[identifier] = draft

    def _requested(self, line: Line, data: dict[str, Any]) -> None:
        self._by_user[text_of(data, "toolCallId")] = data
        line.skip("a tool that the user ran; it is a message once it is done")

    def _started(self, line: Line, data: dict[str, Any]) -> None:
        identifier = text_of(data, "toolCallId")
        if identifier in self._callers:
            line.merge(self._callers[identifier])
        elif identifier in self._by_user:
            line.skip("a tool that the user ran; it is a message once it is done")
        else:
            last = self.conversation.drafts[-1] if self.conversation.drafts else None
            draft = last if last is not None and last.role == "assistant" else Draft("assistant")
            self._call(draft, data, text_of(data, "toolName"))
            if draft is last:
                line.merge(draft)
            else:
                self._say(line, draft)

    def _completed(self, line: Line, data: dict[str, Any]) -> None:
        identifier, result = text_of(data, "toolCallId"), mapping_of(data, "result")
        text = text_of(result, "content") or text_of(mapping_of(data, "error"), "message")
        content = [part for part in content_of(list_of(result, "contents"), Line("", ""))
                   if isinstance(part, Image)]  # fmt: skip
        if text_of(result, "detailedContent") not in ("", text):
            line.leave_out("detailedContent", "what the screen showed of a result")
        if identifier in self._by_user:
            request = self._by_user.pop(identifier)
            said = f"{as_text(request.get('arguments'))}\n{text}"
            name = text_of(request, "toolName")
            self._say(line, Draft("user", [marked("user_action", name=name, text=said), *content]))
        elif not (result or mapping_of(data, "error")):
            line.skip("a call was carried out; the file does not hold its result")
        else:
            self._say(line, Draft("tool", [text, *content], call_id=identifier))

    def _compacting(self, line: Line, data: dict[str, Any]) -> None:
        self._begun = len(self.conversation.drafts), data
        line.skip("the start of a compaction")

    def _compacted(self, line: Line, data: dict[str, Any]) -> None:
        drafts = self.conversation.drafts
        start, before = self._begun or (len(drafts), {})
        self._begun = None
        if data.get("success") is False:
            line.skip("a compaction that failed")
            return
        summary = text_of(data, "summaryContent")
        tokens = count_of(data, "preCompactionTokens")
        self.conversation.compactions.append(
            Compaction(
                after=drafts[-1] if drafts else None,
                kind="summary" if summary else "opaque",
                trigger=text_of(data, "trigger") or text_of(before, "trigger"),
                summary=summary or None,
                tokens_before=count_of(before, "currentTokens") if tokens is None else tokens,
                tokens_after=count_of(data, "postCompactionTokens"),
                state=[summary_draft(summary, "conversation_summary"), *drafts[start:]]
                if summary
                else None,
            )
        )
        line.skip("a compaction, recorded beside the messages")

    def _rewound(self, line: Line, data: dict[str, Any]) -> None:
        """Drop what the user took back."""
        place = self._places.get(text_of(data, "upToEventId"))
        if place is None:
            line.is_unknown("a rewind to an event that is not in the file")
            return
        drafts = self.conversation.drafts
        for draft in drafts[place:]:
            self.conversation.ledger.dropped[draft] = "undone by the user"
        del drafts[place:]
        kept = set(drafts)
        self.conversation.compactions = [
            item for item in self.conversation.compactions if item.after in kept
        ]
        line.skip("a mark that the user went back; what came since is left out")


class _Session:
    """Sorts events to the agents that they belong to."""

    def __init__(self) -> None:
        self.recognised = False
        self._head: dict[str, Any] = {}
        self._threads: dict[str, _Thread] = {}
        self._names: dict[str, str] = {}
        """The sub-agent that a call started, by the call's id."""
        self._cleared = 0
        self._waiting: list[Value] = []
        """Unreadable lines before the first event, which says whose thread it is."""

    def feed(self, value: Value) -> None:
        """Enter an event and take what it holds."""
        event = value.value if isinstance(value.value, dict) else {}
        kind, data = text_of(event, "type"), mapping_of(event, "data")
        if kind == "session.start":
            self.recognised = True
            self._head = self._head or data
        agent = text_of(event, "agentId")
        caller = text_of(data, "parentToolCallId")
        if kind == "subagent.started" and agent:
            self._names[text_of(data, "toolCallId")] = agent
        elif not kind.startswith("subagent.") and not agent and caller:
            agent = self._names.get(caller, caller)
        if kind.startswith("subagent."):
            # What is told of a sub-agent, not by it.
            agent = ""
        main = f"after-clear-{self._cleared}" if self._cleared else ""
        key = f"agent-{agent}" if agent else main
        if value.problem and not self._threads:
            self._waiting.append(value)
            return
        if key not in self._threads:
            self._threads[key] = _Thread(self._head, key)
        thread = self._threads[key]
        while self._waiting:
            entered(thread.conversation.ledger, self._waiting.pop(0), "")
        line = entered(thread.conversation.ledger, value, label(kind))
        if value.problem:
            return
        if not event:
            line.is_unknown("expected a JSON object")
            return
        self.recognised = self.recognised or kind in _SPOKEN
        if kind == "session.context_cleared":
            self._cleared += 1
            line.skip("the user cleared the context: what follows is a conversation of its own")
            if text_of(data, "initialMessage"):
                key = f"after-clear-{self._cleared}"
                self._threads[key] = _Thread(self._head, key)
                first = self._threads[key].conversation.ledger.enter(value.place, label(kind))
                self._threads[key].take(
                    first,
                    {"type": "user.message", "data": {"content": data["initialMessage"]}},
                )
        else:
            thread.take(line, event)

    def finish(self) -> Iterator[Conversation]:
        """Yield the conversations, each sub-agent's with the task that it was given."""
        done = {key: thread.finish() for key, thread in self._threads.items()}
        callers = {agent: call for call, agent in self._names.items()}
        tasks = {
            call.id: call.arguments
            for conversation in done.values()
            for draft in conversation.drafts
            for call in draft.calls
        }
        for key, conversation in done.items():
            if key.startswith("agent-"):
                agent = key.removeprefix("agent-")
                give_task(conversation, tasks.get(callers.get(agent, agent), ""))
            yield conversation


def _recognise(source: SourceFile) -> str | None:
    for value in source.head:
        if not isinstance(value, dict) or not isinstance(value.get("data"), dict):
            continue
        data, kind = value["data"], text_of(value, "type")
        if kind == "session.start" and text_of(data, "sessionId"):
            return "an event session.start with data.sessionId"
        if kind in _SPOKEN and {"id", "timestamp", "parentId"} <= value.keys():
            return f"events such as {kind} with id, parentId and data"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    session = _Session()
    for value in source.values():
        session.feed(value)
    if not session.recognised:
        raise DataError(
            f"{source.path}: expected events of Copilot CLI such as session.start, found none"
        )
    yield from session.finish()


FORMAT = Format(
    name="copilot-cli",
    title="GitHub Copilot CLI (events.jsonl)",
    recognise=_recognise,
    read=_read,
)
