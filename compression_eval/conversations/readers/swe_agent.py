"""Trajectories of SWE-agent and mini-swe-agent: messages of OpenAI's chat API in one document.

Commands in fenced blocks stay text, as the model wrote and saw them: a call made of one would
need an id that nobody gave, and would turn the results, which are user messages, into something
else. Models that call tools have calls and ids of their own, which are kept.

A trajectory of SWE-agent contains the history that the model was shown, and next to it a trajectory
that repeats every step in another form. Where several agents worked in turn, each has its own
conversation. A trajectory of mini-swe-agent is a bare list of messages, or, later, an object that
contains one.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from compression_eval.conversations.drafts import NO_TOOLS, Conversation, Draft, Line
from compression_eval.conversations.fields import Json, entries, from_json, label, origin
from compression_eval.conversations.readers.base import (
    TEXT_ACTIONS,
    Format,
    Reader,
    sign,
    without_thinking,
)
from compression_eval.conversations.readers.content import content_of
from compression_eval.conversations.readers.openai import chat_draft
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
        return label(entry.first("message_type", "role", "type", "object"))

    def take(self, line: Line, entry: Json) -> None:
        draft = chat_draft(entry, line)
        if draft is None:
            return
        if draft.role == "assistant":
            draft.content = without_thinking(draft.content, line)
        # One message may answer several calls.
        names = entry.listed("tool_call_ids") if draft.role == "tool" else []
        answers = [replace(draft, content=list(draft.content), call_id=str(n)) for n in names]
        self.say(line, *(answers or [draft]))
        self.demonstrated += bool(entry.at("is_demo"))
        self.acts = self.acts or bool(entry.text("action").strip())

    def finish(self) -> Conversation:
        self.name_missing(tools=False)
        if self.acts and not self.called:
            self.caveat(TEXT_ACTIONS)
        if self.demonstrated:
            self.caveat(
                f"{self.demonstrated} messages of a demonstration, of another task, are before "
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
    document = Json.of(source.document)
    settings = document.at("replay_config")
    settings = Json.of(from_json(settings) if isinstance(settings, str) else settings)
    runs: dict[str, _Run] = {}
    history = document["history"] if _is_trajectory(document) else []
    for number, message in enumerate(history, 1):
        agent = Json.of(message).text("agent") or next(iter(runs), "")
        if agent not in runs:
            session = settings.name("problem_statement", "id")
            part = f"agent-{agent}" if runs else ""
            runs[agent] = _Run("SWE-agent trajectory", session, part)
        runs[agent].feed(Value(f"history {number}", message))
    for run in runs.values():
        run.model = origin(settings.text("agent", "model", "name"))
        yield run.finish()


FORMAT = Format(
    "swe-agent", _recognise, _read, "a SWE-agent trajectory: an object with trajectory and history"
)


class _MiniRun(_Run):
    """A trajectory of mini-swe-agent; messages may be in the form of the Responses API."""

    format = "mini-swe-agent"

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


def _mini_sign(document: Any) -> str | None:
    """Return what was seen of mini-swe-agent: its name, or commands with their return codes."""
    head, messages = Json.of(document), entries(_mini_messages(document))
    named = head.text("trajectory_format").startswith("mini-swe-agent")
    if messages and (named or head.text("info", "mini_version")):
        return "a JSON object of mini-swe-agent with messages"
    results = sign(messages, lambda each: each.text("content").startswith(_RESULTS), "results")
    if isinstance(document, list) and results and _has_fences(messages):
        return "a list of messages with commands in fenced blocks and their return codes"
    return None


def _has_fences(messages: list[Json]) -> bool:
    said = [each.text("content") for each in messages if each.text("role") == "assistant"]
    return any(fence in text for text in said for fence in _FENCES)


def _read_mini(source: SourceFile) -> Iterator[Conversation]:
    head, messages = Json.of(source.document), _mini_messages(source.document)
    acts = _has_fences(entries(messages))
    if not acts and _mini_sign(source.document) is None:
        return
    product = origin("mini-swe-agent", head.text("info", "mini_version"))
    run = _MiniRun(product, head.name("instance_id"))
    run.model = origin(head.text("info", "config", "model", "model_name"))
    run.feed_all("message", messages, 1)
    run.acts, run.demonstrated = acts, 0
    yield run.finish()


MINI_FORMAT = Format(
    "mini-swe-agent",
    lambda source: _mini_sign(source.document),
    _read_mini,
    "a mini-swe-agent trajectory: a list of messages, or an object with messages and info",
)
