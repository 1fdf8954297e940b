"""Trajectories of SWE-agent and mini-swe-agent: messages of OpenAI's chat API in one document.

Commands in fenced blocks stay text, as the model wrote and saw them: a call made of one would
need an id that nobody gave, and would turn the results, which are user messages, into something
else. Models that call tools have calls and ids of their own, which are kept.

A trajectory of SWE-agent holds the history that the model was shown, and beside it a trajectory
that repeats every step in another form. Where several agents worked in turn, each has its own
conversation. A trajectory of mini-swe-agent is a bare list of messages, or, later, an object that
holds one.
"""

from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import (
    NO_TOOLS,
    Conversation,
    Draft,
    Line,
)
from compression_eval.conversations.fields import Json, entries, from_json, label, origin
from compression_eval.conversations.readers.base import (
    TEXT_ACTIONS,
    Format,
    Reader,
    document_of,
    sign,
    with_replaced,
    without_thinking,
)
from compression_eval.conversations.readers.openai import content_of
from compression_eval.conversations.sources import SourceFile, Value

_FENCES = ("```mswea_bash_command", "```bash")
_RESULTS = ("<returncode>", "Observation:")


class _Run(Reader):
    """The messages of one agent of SWE-agent."""

    format = "swe-agent"
    lacks = (NO_TOOLS,)
    acts = False
    """Whether the agent acted by text."""
    demonstrated = 0

    def name_of(self, entry: Json) -> str:
        return label(entry.first("message_type", "role"))

    def take(self, line: Line, entry: Json) -> None:
        content = content_of(entry.at("content"), line)
        if entry.at("thinking_blocks") or entry.at("reasoning_content"):
            line.leave_out_thinking()
        match entry.text("role"):
            case "system" | "user" as role:
                self.say(line, Draft("user" if role == "user" else "system", content))
            case "assistant":
                draft = Draft("assistant")
                for call in entry.entries("tool_calls"):
                    if function := call.entry("function"):
                        draft.call(call.name("id"), function.text("name"), function.at("arguments"))
                    else:
                        line.leave_out("tool call", "expected a call of a function")
                draft.content = without_thinking(content, line)
                self.say(line, draft)
            case "tool":  # one message may answer several calls
                names = [str(name) for name in entry.listed("tool_call_ids")]
                for name in names or [entry.name("tool_call_id")]:
                    self.say(line, Draft("tool", list(content), call_id=name))
            case _:
                line.is_unknown("unknown role")
        self.demonstrated += bool(entry.at("is_demo"))
        self.acts = self.acts or bool(entry.text("action").strip())

    def finish(self) -> Conversation:
        self.name_missing(tools=False)
        if self.acts and not self.called:
            self.caveat(TEXT_ACTIONS)
        if self.demonstrated:
            self.caveat(
                f"{self.demonstrated} messages of a demonstration, of another task, stand before "
                "the conversation"
            )
        return self


def _is_trajectory(document: Json) -> bool:
    return isinstance(document.at("trajectory"), list) and any(
        message.text("role") and "content" in message
        for message in document.entries("history")[:20]
    )


def _recognise(source: SourceFile) -> str | None:
    seen = "a JSON object with a trajectory and a history of messages with roles"
    return sign([source.document], _is_trajectory, seen)


def _read(source: SourceFile) -> Iterator[Conversation]:
    expected = "a SWE-agent trajectory: an object with trajectory and history"
    document = Json(document_of(source, expected, lambda it: _is_trajectory(Json.of(it))))
    settings = document.at("replay_config")
    settings = Json.of(from_json(settings) if isinstance(settings, str) else settings)
    runs: dict[str, _Run] = {}
    for number, message in enumerate(document["history"], 1):
        agent = Json.of(message).text("agent") or next(iter(runs), "")
        if agent not in runs:
            session = settings.name("problem_statement", "id")
            part = f"agent-{agent}" if runs else ""
            runs[agent] = _Run("SWE-agent trajectory", session, part)
        runs[agent].feed(Value(f"history {number}", message))
    for run in runs.values():
        run.model = origin(settings.text("agent", "model", "name"))
        yield with_replaced(run.finish(), source)


FORMAT = Format("swe-agent", _recognise, _read)


class _MiniRun(_Run):
    """A trajectory of mini-swe-agent; messages may be in the form of the Responses API."""

    format = "mini-swe-agent"

    def name_of(self, entry: Json) -> str:
        return label(entry.first("role", "type", "object"))

    def take(self, line: Line, entry: Json) -> None:
        if entry.text("object") == "response":
            self.say(line, _response(entry, line))
        elif entry.text("type") == "function_call_output":
            content = content_of(entry.at("output"), line)
            self.say(line, Draft("tool", content, call_id=entry.name("call_id")))
        elif entry.text("role") == "exit":
            line.skip("the end of the run, which the model does not see")
        else:
            super().take(line, entry)


def _response(message: Json, line: Line) -> Draft:
    turn = Draft("assistant")
    for item in message.entries("output"):
        match item.text("type"):
            case "message":
                turn.content.extend(content_of(item.at("content"), line))
            case "function_call":
                turn.call(item.name("call_id"), item.text("name"), item.at("arguments"))
            case "reasoning":
                line.leave_out_thinking()
            case kind:
                line.leave_out(f"item {label(kind)}", "unknown kind of content")
    return turn


def _mini_messages(document: Any) -> list[Any]:
    return document if isinstance(document, list) else Json.of(document).listed("messages")


def _is_mini(document: Any) -> bool:
    """Tell whether an object says of itself that it is a trajectory of mini-swe-agent."""
    named = Json.of(document).text("trajectory_format").startswith("mini-swe-agent")
    return named or bool(Json.of(document).text("info", "mini_version"))


def _has_fences(messages: list[Any]) -> bool:
    said = [m.text("content") for m in entries(messages) if m.text("role") == "assistant"]
    return any(fence in text for text in said for fence in _FENCES)


def _is_readable(document: Any) -> bool:
    messages = _mini_messages(document)
    roles = {message.text("role") for message in entries(messages)}
    known = _is_mini(document) or _has_fences(messages)
    return known and bool(roles & {"system", "user", "assistant"})


def _recognise_mini(source: SourceFile) -> str | None:
    document = source.document
    if _is_mini(document) and _mini_messages(document):
        return "a JSON object of mini-swe-agent with messages"
    users = [message for message in entries(document) if message.text("role") == "user"]
    results = any(message.text("content").startswith(_RESULTS) for message in users)
    if results and _has_fences(document):
        return "a list of messages with commands in fenced blocks and their return codes"
    return None


def _read_mini(source: SourceFile) -> Iterator[Conversation]:
    expected = (
        "a mini-swe-agent trajectory: a list of messages, or an object with messages and info"
    )
    document = document_of(source, expected, _is_readable)
    head, messages = Json.of(document), _mini_messages(document)
    product = origin("mini-swe-agent", head.text("info", "mini_version"))
    run = _MiniRun(product, head.name("instance_id"))
    run.model = origin(head.text("info", "config", "model", "model_name"))
    run.feed_all("message", messages, 1)
    run.acts, run.demonstrated = _has_fences(messages), 0
    yield with_replaced(run.finish(), source)


MINI_FORMAT = Format("mini-swe-agent", _recognise_mini, _read_mini)
