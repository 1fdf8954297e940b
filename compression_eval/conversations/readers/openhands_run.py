"""One run of an OpenHands agent of version 0: its events, with or without ids."""

from collections.abc import Callable
from typing import Any

from compression_eval.conversations.drafts import Conversation, Draft, DraftCall
from compression_eval.conversations.fields import (
    as_text,
    count_of,
    label,
    list_of,
    mapping_of,
    text_of,
)
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.openai_content import content_of
from compression_eval.conversations.readers.openhands_actions import (
    CALLS,
    ENDS,
    RESULTS,
    SKIPPED,
    arguments_of,
    event_kind,
    fields_of,
    images_of,
    is_event,
    reply_of,
    result_of,
    words_of,
)
from compression_eval.conversations.readers.openhands_view import View
from compression_eval.conversations.readers.tool_schemas import tool_definitions
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
    entered,
    identifier,
    leave_out_thinking,
    marked,
    origin,
    without_thinking,
)
from compression_eval.conversations.sources import Value

_BY_PLACE = "calls that have no id in the file are named after the place of their event"
_BY_ORDER = "results that name no call were given to the call before them"
_BY_FORM = "who wrote a message is not in the file and was told from its form"


class Run:
    """A run that is being read, fed with its record or with its events one by one."""

    def __init__(self) -> None:
        self._conversation = Conversation(
            "openhands-output", "OpenHands run (V0)", "", Ledger(), caveats=[]
        )
        self._view = View()
        self._turns: dict[str, Draft] = {}
        self._offered: dict[str, tuple[Line, set[str]]] = {}
        """Of each model reply: its first event, and the ids of its calls without an event."""
        self._call_of: dict[str, str] = {}
        self._by_user: set[str] = set()
        self._waiting = ""
        """The last call of a file without ids, until it is answered."""

    def feed(self, value: Value) -> None:
        """Take a record with a run's history, a list of events, or one event."""
        if value.problem:
            entered(self._conversation.ledger, value, "")
            return
        history = value.value if isinstance(value.value, list) else history_of(value.value)
        if history is None:
            self._event(value)
            return
        start = f"{value.place}, " if value.place.startswith("line ") else ""
        if value.replaced:
            self._conversation.caveats.append(REPLACED_BYTES)
        number = 0
        for item in history:
            # The oldest files have pairs of an action and its observation.
            for event in item if isinstance(item, list) else [item]:
                number += 1
                self._event(Value(f"{start}event {number}", event))
        if isinstance(value.value, dict):
            self._record(value.value, start)

    def finish(self) -> Conversation:
        """Return the conversation."""
        for line, missing in self._offered.values():
            for _ in missing:
                line.leave_out("tool call", "no event says that it was carried out")
        conversation = self._conversation
        if not any(draft.role == "system" for draft in conversation.drafts):
            conversation.caveats.append(NO_SYSTEM_PROMPT)
        if not conversation.tools:
            conversation.caveats.append(NO_TOOLS)
        conversation.caveats[:] = dict.fromkeys(conversation.caveats)
        return conversation

    def _record(self, record: dict[str, Any], start: str) -> None:
        """Take what a record says beside its history."""
        conversation = self._conversation
        issue = mapping_of(record, "issue")
        issue_name = "/".join(identifier(issue, key) for key in ("owner", "repo", "number"))
        conversation.session = identifier(record, "instance_id") or issue_name.strip("/")
        settings = mapping_of(mapping_of(record, "metadata"), "llm_config")
        conversation.model = origin(text_of(settings, "model")) or conversation.model
        task = text_of(record, "instruction")
        if not task:
            return
        line = conversation.ledger.enter(f"{start}instruction", "instruction")
        said = [draft for draft in conversation.drafts if draft.role == "user"]
        same = next((draft for draft in said if task.strip() in draft.text), None)
        if same is not None:
            line.merge(same)
        elif said:
            line.skip("the task as the evaluation noted it; the run has a message of its own")
        else:
            first = sum(draft.role == "system" for draft in conversation.drafts[:1])
            conversation.drafts.insert(first, line.became(Draft("user", [task])))

    def _event(self, value: Value) -> None:
        event, kind = value.value, event_kind(value.value)
        side, _, name = kind.partition(":")
        line = entered(
            self._conversation.ledger, value, f"{side}:{label(name)}" if kind else "event"
        )
        take = _TAKERS.get(kind)
        if take is not None:
            take(self, event, line)
        elif kind in SKIPPED:
            line.skip(SKIPPED[kind])
            if name == "condensation_request":
                self._view.trigger = "requested"
            if name in ("recall", "workspace_context", "microagent"):
                self._view.add(identifier(event, "id"), None)
        else:
            line.is_unknown("expected an action or an observation of a known kind")

    def _add(self, event: dict[str, Any], line: Line, draft: Draft) -> None:
        self._conversation.drafts.append(line.became(draft))
        self._view.add(identifier(event, "id"), draft)

    def system(self, event: dict[str, Any], line: Line) -> None:
        """Take the system prompt, and the tools."""
        fields = fields_of(event)
        draft = Draft("system", content_of(fields.get("content"), line))
        first = next((known for known in self._conversation.drafts if known.role == "system"), None)
        if first is None:
            self._add(event, line, draft)
            self._conversation.tools, without = tool_definitions(list_of(fields, "tools"))
            if without:
                self._conversation.caveats.append(f"{without} tools are named without a schema")
        elif first.content == draft.content:
            line.merge(first)
        else:
            line.skip("another system prompt: the first one stands")
            self._conversation.caveats.append("the system prompt changed; the first one stands")

    def message(self, event: dict[str, Any], line: Line) -> None:
        """Take a message, of the user or of the agent."""
        fields = fields_of(event)
        source = text_of(event, "source")
        if source not in ("user", "agent"):
            # Without a source: the agent's messages are those that wait for an answer.
            asks = fields.get("wait_for_response") is True and bool(self._conversation.drafts)
            source = "agent" if asks else "user"
            self._conversation.caveats.append(_BY_FORM)
        content = content_of(fields.get("content"), line) + images_of(event)
        if source == "agent":
            content = [
                without_thinking(part, line) if isinstance(part, str) else part for part in content
            ]
        self._add(event, line, Draft("user" if source == "user" else "assistant", content))

    def call(self, event: dict[str, Any], line: Line) -> None:
        """Take a call; those of one model reply make one turn."""
        note, message, reply = reply_of(event)
        name, event_id = text_of(event, "action"), identifier(event, "id")
        call_id = identifier(note, "tool_call_id")
        if text_of(event, "source") == "user" and not call_id:
            self._by_user.add(event_id)
            fields = fields_of(event)
            said = marked("user_command", command=text_of(fields, "command"), text="")
            if name != "run":
                said = marked("user_action", name=name, text=as_text(arguments_of(event)))
            self._add(event, line, Draft("user", [said]))
            return
        arguments = as_text(arguments_of(event))
        made = [call for call in list_of(message, "tool_calls") if identifier(call, "id")]
        for made_call in made:
            if identifier(made_call, "id") == call_id:
                function = mapping_of(made_call, "function")
                name = text_of(function, "name") or name
                arguments = as_text(function.get("arguments"))
        if not call_id:
            call_id = f"event-{event_id or len(self._conversation.ledger.lines)}"
            self._conversation.caveats.append(_BY_PLACE)
        turn = self._turn(event, line, message, reply)
        turn.calls.append(DraftCall(call_id, text_of(note, "function_name") or name, arguments))
        if reply and reply not in self._offered:
            self._offered[reply] = line, {identifier(call, "id") for call in made}
        if reply:
            self._offered[reply][1].discard(call_id)
        self._call_of[event_id] = self._waiting = call_id

    def _turn(
        self, event: dict[str, Any], line: Line, message: dict[str, Any], reply: str
    ) -> Draft:
        if reply in self._turns:
            line.merge(self._turns[reply])
            self._view.add(identifier(event, "id"), self._turns[reply])
            return self._turns[reply]
        thought = text_of(fields_of(event), "thought")
        if text_of(event, "action") == "think":
            thought = ""  # it is the call's argument
        text = as_text(message.get("content")) if message.get("content") else thought
        if message.get("reasoning_content") or message.get("thinking_blocks"):
            leave_out_thinking(line)
        turn = Draft("assistant", [without_thinking(text, line)])
        self._add(event, line, turn)
        if reply:
            self._turns[reply] = turn
            model = text_of(mapping_of(reply_of(event)[0], "model_response"), "model")
            self._conversation.model = self._conversation.model or origin(model)
        return turn

    def end(self, event: dict[str, Any], line: Line) -> None:
        """Take the words that end a run."""
        note, message, reply = reply_of(event)
        if reply in self._offered:
            self._offered[reply][1].discard(identifier(note, "tool_call_id"))
        words = words_of(event)
        text = as_text(message.get("content"))
        said = [without_thinking(text, line)] if text.strip() else []
        if reply in self._turns:
            said = []  # it stands with the calls of the same reply
        words = [*said, *(word for word in words if word not in said)]
        role = "user" if text_of(event, "source") == "user" else "assistant"
        if words:
            self._add(event, line, Draft("user" if role == "user" else "assistant", [*words]))
        else:
            line.skip("the end of the run, without words")

    def result(self, event: dict[str, Any], line: Line) -> None:
        """Take an observation: the result of a call, or what the program told the model."""
        content = result_of(event, line)
        if text_of(event, "observation") == "user_rejected":
            content = [marked("rejected", text=as_text(event.get("content")))]
        cause = identifier(event, "cause")
        call_id = identifier(mapping_of(event, "tool_call_metadata"), "tool_call_id")
        if not call_id and cause and cause not in self._by_user:
            call_id = self._call_of.get(cause, f"event-{cause}")
        if not call_id and not cause and not identifier(event, "id") and self._waiting:
            call_id = self._waiting
            self._conversation.caveats.append(_BY_ORDER)
        if not call_id:
            self._add(event, line, Draft("user", content))
            return
        self._waiting = ""
        self._add(event, line, Draft("tool", content, call_id=call_id))

    def condensation(self, event: dict[str, Any], line: Line) -> None:
        """Take a compaction; what it forgot is listed, or given as a span of ids."""
        fields = fields_of(event)
        forgotten = {str(name) for name in list_of(fields, "forgotten_event_ids")}
        start = count_of(fields, "forgotten_events_start_id")
        end = count_of(fields, "forgotten_events_end_id")
        if start is not None and end is not None:
            numbers = (item.event for item in self._view.items if item.event.isdecimal())
            forgotten |= {number for number in numbers if start <= int(number) <= end}
        summary = text_of(fields, "summary") or None
        self._conversation.compactions.append(
            self._view.condense(forgotten, summary, count_of(fields, "summary_offset"))
        )
        line.skip("a condensation, recorded beside the messages")


_TAKERS: dict[str, Callable[[Run, dict[str, Any], Line], None]] = {
    "action:system": Run.system,
    "action:message": Run.message,
    "action:condensation": Run.condensation,
    **{f"action:{name}": Run.call for name in CALLS},
    **{f"action:{name}": Run.end for name in ENDS},
    **{f"observation:{name}": Run.result for name in RESULTS},
}


def history_of(value: Any) -> list[Any] | None:
    """Return the events of a record of a run; None if it is no such record."""
    for key in ("history", "trajectory"):
        events = list_of(value, key)
        if holds_events(events):
            return events
    return None


def holds_events(values: list[Any]) -> bool:
    """Tell whether a list is a history: of events, or of pairs of them."""
    return any(
        is_event(item) or (isinstance(item, list) and any(map(is_event, item)))
        for item in values[:20]
    )
