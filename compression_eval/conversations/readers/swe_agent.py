"""Trajectories of SWE-agent and mini-swe-agent: messages of OpenAI's chat API in one document.

Commands in fenced blocks stay text, as the model wrote and saw them: a call made of one would
need an id that nobody gave, and would turn the results, which are user messages, into something
else. Models that call tools have calls and ids of their own, which are kept.

A trajectory of SWE-agent holds the history that the model was shown, and beside it a trajectory
that repeats every step in another form. Where several agents worked in turn, each has its own
conversation. A trajectory of mini-swe-agent is a bare list of messages, or, later, an object that
holds one.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    Conversation,
    Draft,
    DraftCall,
)
from compression_eval.conversations.fields import (
    as_text,
    from_json,
    identifier,
    label,
    list_of,
    mapping_of,
    origin,
    text_of,
    value_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.base import (
    TEXT_ACTIONS,
    Entry,
    document_of,
    leave_out_thinking,
    with_replaced,
    without_thinking,
)
from compression_eval.conversations.readers.openai import content_of
from compression_eval.conversations.sources import SourceFile

_DEMONSTRATION = "messages of a demonstration, of another task, stand before the conversation"
_FENCES = ("```mswea_bash_command", "```bash")
_RESULTS = ("<returncode>", "Observation:")


def _drafts(message: Entry, line: Line) -> list[Draft]:
    """Return the messages of a chat message; several for the results of several calls."""
    content = content_of(message.get("content"), line)
    if message.get("thinking_blocks") or message.get("reasoning_content"):
        leave_out_thinking(line)
    match text_of(message, "role"):
        case "system":
            return [Draft("system", content)]
        case "user":
            return [Draft("user", content)]
        case "assistant":
            calls = list(_calls(message, line))
            return [Draft("assistant", without_thinking(content, line), calls)]
        case "tool":
            names = [str(name) for name in list_of(message, "tool_call_ids")]
            names = names or [identifier(message, "tool_call_id")]
            return [Draft("tool", list(content), call_id=name) for name in names]
    return []


def _calls(message: Entry, line: Line) -> Iterator[DraftCall]:
    for call in list_of(message, "tool_calls"):
        function = mapping_of(call, "function")
        if function:
            arguments = as_text(function.get("arguments"))
            yield DraftCall(identifier(call, "id"), text_of(function, "name"), arguments)
        else:
            line.leave_out("tool call", "expected a call of a function")


def _of_swe_agent(messages: list[tuple[int, Any]], settings: Entry) -> Conversation:
    """Return the conversation of one agent.

    Args:
        messages: Each with its number in the history.
        settings: What the file tells of the run.
    """
    conversation = Conversation(
        "swe-agent",
        "SWE-agent trajectory",
        identifier(settings, "problem_statement", "id"),
        model=origin(text_of(settings, "agent", "model", "name")),
        caveats=[NO_TOOLS],
    )
    seen: Counter[str] = Counter()
    for number, message in messages:
        kind = text_of(message, "message_type") or text_of(message, "role")
        line = conversation.ledger.enter(f"history {number}", label(kind))
        if not isinstance(message, dict):
            line.is_unknown("expected an object with role and content")
            continue
        drafts = _drafts(message, line)
        if not drafts:
            line.is_unknown("expected a message of role system, user, assistant or tool")
        conversation.say(line, *drafts)
        seen["demonstration"] += bool(message.get("is_demo"))
        seen["call"] += any(draft.calls for draft in drafts)
        seen["action"] += bool(text_of(message, "action").strip())
    if conversation.system is None:
        conversation.caveats.append(NO_SYSTEM_PROMPT)
    if seen["action"] and not seen["call"]:
        conversation.caveats.append(TEXT_ACTIONS)
    if seen["demonstration"]:
        conversation.caveats.append(f"{seen['demonstration']} {_DEMONSTRATION}")
    return conversation


def _is_trajectory(document: Any) -> bool:
    return isinstance(value_of(document, "trajectory"), list) and any(
        text_of(message, "role") and "content" in message
        for message in list_of(document, "history")[:20]
    )


def _recognise(source: SourceFile) -> str | None:
    if _is_trajectory(source.document):
        return "a JSON object with a trajectory and a history of messages with roles"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    expected = "a SWE-agent trajectory: an object with trajectory and history"
    document = document_of(source, expected, _is_trajectory)
    agents: dict[str, list[tuple[int, Any]]] = {}
    for number, message in enumerate(document["history"], 1):
        agent = text_of(message, "agent") or next(iter(agents), "")
        agents.setdefault(agent, []).append((number, message))
    settings = document.get("replay_config")
    settings = mapping_of(from_json(settings) if isinstance(settings, str) else settings)
    for position, (agent, messages) in enumerate(agents.items()):
        conversation = _of_swe_agent(messages, settings)
        if position == 0:
            line = conversation.ledger.enter("trajectory", "trajectory")
            line.skip("repeats the history; what follows its end was shown to no model")
        else:
            conversation.part = f"agent-{agent}"
        yield with_replaced(conversation, source)


FORMAT = Format("swe-agent", "SWE-agent trajectories (.traj)", _recognise, _read)


def _of_mini_agent(message: Entry, line: Line) -> list[Draft]:
    """Return the messages of an entry, which may be in the form of the Responses API."""
    if text_of(message, "object") == "response":
        return [_response(message, line)]
    if text_of(message, "type") == "function_call_output":
        content = content_of(message.get("output"), line)
        return [Draft("tool", content, call_id=identifier(message, "call_id"))]
    drafts = _drafts(message, line)
    if text_of(message, "role") == "exit":
        line.skip("the end of the run, which the model does not see")
    elif not drafts:
        line.is_unknown("expected a message of role system, user, assistant, tool or exit")
    return drafts


def _response(message: Entry, line: Line) -> Draft:
    turn = Draft("assistant")
    for item in list_of(message, "output"):
        match text_of(item, "type"):
            case "message":
                turn.content.extend(content_of(item.get("content"), line))
            case "function_call":
                name, arguments = text_of(item, "name"), as_text(item.get("arguments"))
                turn.calls.append(DraftCall(identifier(item, "call_id"), name, arguments))
            case "reasoning":
                leave_out_thinking(line)
            case kind:
                line.leave_out(f"item {label(kind)}", "unknown kind of content")
    return turn


def _mini_messages(document: Any) -> list[Any]:
    return document if isinstance(document, list) else list_of(document, "messages")


def _is_mini(document: Any) -> bool:
    """Tell whether an object says of itself that it is a trajectory of mini-swe-agent."""
    named = text_of(document, "trajectory_format").startswith("mini-swe-agent")
    return named or bool(text_of(document, "info", "mini_version"))


def _has_fences(messages: list[Any]) -> bool:
    said = [text_of(m, "content") for m in messages if text_of(m, "role") == "assistant"]
    return any(fence in text for text in said for fence in _FENCES)


def _is_readable(document: Any) -> bool:
    messages = _mini_messages(document)
    roles = {text_of(message, "role") for message in messages}
    known = _is_mini(document) or _has_fences(messages)
    return known and bool(roles & {"system", "user", "assistant"})


def _recognise_mini(source: SourceFile) -> str | None:
    document = source.document
    if _is_mini(document) and list_of(document, "messages"):
        return "a JSON object of mini-swe-agent with messages"
    users = [m for m in list_of(document) if text_of(m, "role") == "user"]
    results = any(text_of(message, "content").startswith(_RESULTS) for message in users)
    if results and _has_fences(document):
        return "a list of messages with commands in fenced blocks and their return codes"
    return None


def _read_mini(source: SourceFile) -> Iterator[Conversation]:
    expected = (
        "a mini-swe-agent trajectory: a list of messages, or an object with messages and info"
    )
    document = document_of(source, expected, _is_readable)
    messages = _mini_messages(document)
    conversation = Conversation(
        MINI_FORMAT.name,
        origin("mini-swe-agent", text_of(document, "info", "mini_version")),
        identifier(document, "instance_id"),
        model=origin(text_of(document, "info", "config", "model", "model_name")),
        caveats=[NO_TOOLS],
    )
    for number, message in enumerate(messages, 1):
        kind = text_of(message, "role") or text_of(message, "type") or text_of(message, "object")
        line = conversation.ledger.enter(f"message {number}", label(kind))
        if isinstance(message, dict):
            conversation.say(line, *_of_mini_agent(message, line))
        else:
            line.is_unknown("expected an object with role and content")
    if conversation.system is None:
        conversation.caveats.append(NO_SYSTEM_PROMPT)
    if _has_fences(messages) and not any(draft.calls for draft in conversation.drafts):
        conversation.caveats.append(TEXT_ACTIONS)
    yield with_replaced(conversation, source)


MINI_FORMAT = Format(
    "mini-swe-agent", "mini-swe-agent trajectories (.traj.json)", _recognise_mini, _read_mini
)
