"""Output of OpenHands of version 0: a run per line, or the events of one run.

Events have ids or not; their fields are flat in old files and nested in newer ones. The oldest
files hold pairs of an action and its observation.
"""

from typing import Any, ClassVar

from compression_eval.conversations.drafts import (
    REPLACED_BYTES,
    Content,
    Conversation,
    Draft,
    Line,
    image_at,
)
from compression_eval.conversations.fields import Json, as_text, label, origin
from compression_eval.conversations.readers.base import (
    Place,
    Table,
    command_text,
    marked,
    marks_of,
    thread_format,
    without_thinking,
)
from compression_eval.conversations.readers.openai import content_of
from compression_eval.conversations.readers.openhands_events import OpenHandsReader
from compression_eval.conversations.sources import SourceFile, Value

_MARKS = marks_of("openhands")
_LOOKED_UP = ("recall", "workspace_context", "microagent")
_CLICKS = ("start", "pause", "resume", "stop", "loop_recovery")
_CLICK = "a click of the user, without words"
_STATE = "state of the program, not of the conversation"

_BY_PLACE = "calls that have no id in the file are named after the place of their event"
_BY_ORDER = "results that name no call were given to the call before them"
_BY_FORM = "who wrote a message is not in the file and was told from its form"


class _Run(OpenHandsReader):
    """A run that is being read, fed with its record or with its events one by one."""

    format = "openhands-output"
    unknown = "expected an action or an observation of a known kind"
    expected = (
        "expected runs with a history of actions and observations, or such events, found none"
    )

    def __init__(self) -> None:
        super().__init__("OpenHands run (V0)")
        self._offered: dict[str, tuple[Line, set[str]]] = {}
        """Of each model reply: its first event, and the ids of its calls without an event."""
        self._call_of: dict[str, str] = {}
        self._by_user: set[str] = set()
        self._waiting = ""
        """The last call of a file without ids, until it is answered."""

    def kind_of(self, entry: Json) -> str:
        """Return what an event is, as ``action:run``."""
        sides = ((side, entry.text(side)) for side in ("action", "observation"))
        return next((f"{side}:{name}" for side, name in sides if name), "")

    def name_of(self, entry: Json) -> str:
        side, _, name = self.kind_of(entry).partition(":")
        return f"{side}:{label(name)}" if side else "event"

    def feed(self, value: Value) -> None:
        """Take a record with a run's history, a list of events, or one event."""
        history = value.value if isinstance(value.value, list) else _history(value.value)
        if value.problem or history is None:
            super().feed(value)
            return
        start = f"{value.place}, " if value.place.startswith("line ") else ""
        if value.replaced:
            self.caveat(REPLACED_BYTES)
        pairs = (item if isinstance(item, list) else [item] for item in history)
        for number, event in enumerate((event for pair in pairs for event in pair), 1):
            super().feed(Value(f"{start}event {number}", event))
        if isinstance(value.value, dict):
            self._record(Json(value.value), start)

    def take(self, line: Line, entry: Json) -> None:
        super().take(line, entry)
        name = self.kind_of(entry).partition(":")[2]
        if name == "condensation_request":
            self.trigger = "requested"
        elif name in _LOOKED_UP and not line.unknown:
            self.see(entry, None)

    def finish(self) -> Conversation:
        for line, missing in self._offered.values():
            for _ in missing:
                line.leave_out("tool call", "no event says that it was carried out")
        return super().finish()

    def _record(self, record: Json, start: str) -> None:
        issue = "/".join(record.name("issue", key) for key in ("owner", "repo", "number"))
        self.session = record.name("instance_id") or issue.strip("/")
        self.model = origin(record.text("metadata", "llm_config", "model")) or self.model
        task = record.text("instruction")
        if not task:
            return
        line = self.ledger.enter(f"{start}instruction", "instruction")
        said = [draft for draft in self.drafts if draft.role == "user"]
        same = next((draft for draft in said if task.strip() in draft.text), None)
        if same is not None:
            line.merge(same)
        elif said:
            line.skip("the task as the evaluation noted it; the run has a message of its own")
        else:
            first = sum(draft.role == "system" for draft in self.drafts[:1])
            self.drafts.insert(first, line.became(Draft("user", [task])))

    def system_prompt(self, line: Line, event: Json) -> None:
        fields = _fields(event)
        draft = Draft("system", content_of(fields.at("content"), line))
        self.add_system(event, line, draft, fields.listed("tools"))

    def message(self, line: Line, event: Json) -> None:
        """Take a message, of the user or of the agent."""
        fields, source = _fields(event), event.text("source")
        if source not in ("user", "agent"):
            # Without a source: the agent's messages are those that wait for an answer.
            asks = fields.at("wait_for_response") is True and self.drafts
            source = "agent" if asks else "user"
            self.caveat(_BY_FORM)
        draft = Draft("user", content_of(fields.at("content"), line) + _images(fields))
        if source == "agent":
            draft.role, draft.content = "assistant", without_thinking(draft.content, line)
        self.add(event, line, draft)

    def call(self, line: Line, event: Json) -> None:
        note, message, reply = _reply(event)
        fields, name, event_id = _fields(event), event.text("action"), event.name("id")
        call_id = note.name("tool_call_id")
        given = {
            key: value
            for key, value in fields.items()
            if key not in _MARKS["not_arguments"] and value is not None
        }
        thought = {"thought": fields["thought"]} if fields.at("thought") else {}
        arguments = as_text(given or thought)
        if event.text("source") == "user" and not call_id:
            self._by_user.add(event_id)
            said = marked("user_action", name=name, text=arguments)
            if name == "run":
                said = command_text(fields.text("command"), "")
            self.add(event, line, Draft("user", [said]))
            return
        made = {call.name("id"): call.entry("function") for call in message.entries("tool_calls")}
        made.pop("", None)
        if call_id in made:
            name = made[call_id].text("name") or name
            arguments = made[call_id].json("arguments")
        if not call_id:
            call_id = f"event-{event_id or len(self.ledger.lines)}"
            self.caveat(_BY_PLACE)
        turn = self._turn(line, event, message, reply)
        turn.call(call_id, note.text("function_name") or name, arguments)
        if reply:
            self._offered.setdefault(reply, (line, set(made)))[1].discard(call_id)
        self._call_of[event_id] = self._waiting = call_id

    def _turn(self, line: Line, event: Json, message: Json, reply: str) -> Draft:
        if reply in self.turns:
            return self.add_to_turn(event, line, reply, [])
        text = as_text(message.at("content") or "")
        if not text and event.text("action") != "think":  # whose argument the thought is
            text = _fields(event).text("thought")
        if message.at("reasoning_content") or message.at("thinking_blocks"):
            line.leave_out_thinking()
        if reply:
            model = origin(event.text("tool_call_metadata", "model_response", "model"))
            self.model = self.model or model
        return self.add_to_turn(event, line, reply, without_thinking([text], line))

    def end(self, line: Line, event: Json) -> None:
        """Take the words that end a run; the agent itself shows them to the model as text."""
        note, message, reply = _reply(event)
        if reply in self._offered:
            self._offered[reply][1].discard(note.name("tool_call_id"))
        fields, text = _fields(event), message.json("content")
        words: Content = without_thinking([text], line) if text.strip() else []
        if reply in self.turns:
            words = []  # it stands with the calls of the same reply
        words += [fields.text("thought"), fields.text("final_thought")]
        words += [fields.text("outputs", key) for key in ("content", "reason")]
        said = [word for word in dict.fromkeys(words) if isinstance(word, str) and word.strip()]
        if said:
            by_user = event.text("source") == "user"
            self.add(event, line, Draft("user" if by_user else "assistant", [*said]))
        else:
            line.skip("the end of the run, without words")

    def result(self, line: Line, event: Json) -> None:
        """Take an observation: the result of a call, or what the program told the model."""
        content, cause = _shown(event, line), event.name("cause")
        call_id = event.name("tool_call_metadata", "tool_call_id")
        if not call_id and cause and cause not in self._by_user:
            call_id = self._call_of.get(cause, f"event-{cause}")
        if not call_id and not cause and not event.name("id") and self._waiting:
            call_id = self._waiting
            self.caveat(_BY_ORDER)
        if call_id:
            self._waiting = ""
            self.add(event, line, Draft("tool", content, call_id=call_id))
        else:
            self.add(event, line, Draft("user", content))

    def condensation(self, line: Line, event: Json) -> None:
        """Take a compaction; what it forgot is listed, or given as a span of ids."""
        fields = _fields(event)
        forgotten = {str(name) for name in fields.listed("forgotten_event_ids")}
        start = fields.count("forgotten_events_start_id")
        end = fields.count("forgotten_events_end_id")
        if start is not None and end is not None:
            numbers = (item.event for item in self.view if item.event.isdecimal())
            forgotten |= {number for number in numbers if start <= int(number) <= end}
        self.condense(line, fields, forgotten)

    kinds: ClassVar[Table] = {
        "action:system": system_prompt,
        "action:message": message,
        "action:condensation": condensation,
        **dict.fromkeys((f"action:{name}" for name in _MARKS["calls"]), call),
        **dict.fromkeys(("action:finish", "action:reject"), end),
        **dict.fromkeys((f"observation:{name}" for name in _MARKS["results"]), result),
        "action:null": "nothing was done",
        **dict.fromkeys(("action:change_agent_state", "observation:agent_state_changed"), _STATE),
        **dict.fromkeys((f"action:{name}" for name in _CLICKS), _CLICK),
        "action:recall": "a look-up by the program, not by the model",
        "action:condensation_request": "asks for the condensation that follows",
        "observation:null": "nothing was observed",
        "observation:recall": "what the program looked up; the words shown to the model are not "
        "here",
        **dict.fromkeys(
            ("observation:workspace_context", "observation:microagent"),
            "what the program looked up; not in the model's words",
        ),
        "observation:condense": "the summary that its condensation has already",
    }


def _fields(event: Json) -> Json:
    """Return the fields of an action or an observation, wherever they stand."""
    return event.entry("args") or event.entry("extras") or event


def _images(fields: Json) -> Content:
    addresses = fields.listed("image_urls") or fields.listed("images_urls")
    return [image_at(as_text(address)) for address in addresses if address]


def _shown(event: Json, line: Line) -> Content:
    """Return what an observation showed, with the exit code if it has one."""
    fields, kind = _fields(event), event.text("observation")
    content = content_of(event.at("content"), line) + _images(fields)
    code = fields.get("exit_code", fields.at("metadata", "exit_code"))
    if kind == "run" and isinstance(code, int) and code != -1:
        content.append(marked("exit_code", code=str(code)))
    if fields.at("screenshot"):
        line.leave_out("screenshot", "a picture beside the text of the page")
    if kind == "user_rejected":
        return [marked("rejected", text=event.json("content"))]
    return content


def _reply(event: Json) -> tuple[Json, Json, str]:
    """Return the note on the tool call, the model's message with it, and the reply's id."""
    note = event.entry("tool_call_metadata")
    choices = note.entries("model_response", "choices")
    message = choices[0].entry("message") if choices else Json()
    return note, message, note.name("model_response", "id")


def _is_event(value: Any) -> bool:
    """Tell whether a value is an event: an action or an observation of a known kind."""
    event = Json.of(value)
    if "role" in event or ("action" in event) == ("observation" in event):
        return False
    kinds = (f"{side}:{event.text(side)}" for side in ("action", "observation"))
    return any(kind in _Run.kinds or kind == "action:summarize" for kind in kinds)


def _history(value: Any) -> list[Any] | None:
    """Return the events of a record of a run; None if it is no such record."""
    lists = (Json.of(value).listed(key) for key in ("history", "trajectory"))
    return next((events for events in lists if _holds_events(events)), None)


def _holds_events(values: Any) -> bool:
    """Tell whether a list is a history: of events, or of pairs of them."""
    pairs = values[:20] if isinstance(values, list) else []
    items = (item for pair in pairs for item in (pair if isinstance(pair, list) else [pair]))
    return any(map(_is_event, items))


def _place(value: Any, run: _Run | None) -> Place:
    if _history(value) is not None or _holds_events(value):
        return "opens"
    if _is_event(value):
        return "opens" if run is None else "belongs"
    return "foreign"


def _recognise(source: SourceFile) -> str | None:
    for value in source.head or [source.document]:
        if _history(value) is not None:
            return "objects whose history is a list of events with an action or an observation"
        if _holds_events(value):
            return "a list of events with an action or an observation"
        if _is_event(value):
            return "events with an action or an observation"
    return None


FORMAT = thread_format(_Run, "OpenHands runs and event lists (V0)", _recognise, _place)
