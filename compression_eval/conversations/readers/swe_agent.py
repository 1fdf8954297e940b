"""SWE-agent trajectories: one JSON document with the history that the model was shown.

Beside the history stands a trajectory that repeats every step in another form. Where several
agents worked in turn, each has its own conversation.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Conversation, Draft, DraftCall
from compression_eval.conversations.fields import as_text, label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.openai_content import content_of
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
    TEXT_ACTIONS,
    identifier,
    json_document,
    leave_out_thinking,
    origin,
    without_thinking,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.errors import DataError

_EXPECTED = "a SWE-agent trajectory: an object with trajectory and history"
_DEMONSTRATION = "messages of a demonstration, of another task, stand before the conversation"


def _drafts(message: dict[str, Any], line: Line) -> list[Draft]:
    """Return the messages of an entry of the history; several for the results of several calls."""
    role = text_of(message, "role")
    content = content_of(message.get("content"), line)
    if message.get("thinking_blocks") or message.get("reasoning_content"):
        leave_out_thinking(line)
    if role == "system":
        return [Draft("system", content)]
    if role == "user":
        return [Draft("user", content)]
    if role == "assistant":
        content = [
            without_thinking(part, line) if isinstance(part, str) else part for part in content
        ]
        return [Draft("assistant", content, list(_calls(message, line)))]
    if role == "tool":
        names = [str(name) for name in list_of(message, "tool_call_ids")]
        names = names or [identifier(message, "tool_call_id")]
        return [Draft("tool", list(content), call_id=name) for name in names]
    line.is_unknown("expected a message of role system, user, assistant or tool")
    return []


def _calls(message: dict[str, Any], line: Line) -> Iterator[DraftCall]:
    for call in list_of(message, "tool_calls"):
        function = mapping_of(call, "function")
        if function:
            arguments = as_text(function.get("arguments"))
            yield DraftCall(identifier(call, "id"), text_of(function, "name"), arguments)
        else:
            line.leave_out("tool call", "expected a call of a function")


def _conversation(messages: list[tuple[int, Any]], settings: dict[str, Any]) -> Conversation:
    """Return the conversation of one agent.

    Args:
        messages: Each with its number in the history.
        settings: What the file tells of the run.
    """
    agent = mapping_of(settings, "agent")
    conversation = Conversation(
        "swe-agent",
        "SWE-agent trajectory",
        identifier(mapping_of(settings, "problem_statement"), "id"),
        Ledger(),
        model=origin(text_of(mapping_of(agent, "model"), "name")),
        caveats=[NO_TOOLS],
    )
    seen: Counter[str] = Counter()
    for number, message in messages:
        line = conversation.ledger.enter(
            f"history {number}", label(text_of(message, "message_type") or text_of(message, "role"))
        )
        if not isinstance(message, dict):
            line.is_unknown("expected an object with role and content")
            continue
        drafts = _drafts(message, line)
        conversation.drafts.extend(line.became(draft) for draft in drafts)
        seen["demonstration"] += bool(message.get("is_demo"))
        seen["call"] += any(draft.calls for draft in drafts)
        seen["action"] += bool(text_of(message, "action").strip())
    if not any(draft.role == "system" for draft in conversation.drafts):
        conversation.caveats.append(NO_SYSTEM_PROMPT)
    if seen["action"] and not seen["call"]:
        conversation.caveats.append(TEXT_ACTIONS)
    if seen["demonstration"]:
        conversation.caveats.append(f"{seen['demonstration']} {_DEMONSTRATION}")
    return conversation


def _settings(document: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the run, an object or one as text."""
    settings = document.get("replay_config")
    if isinstance(settings, str):
        try:
            settings = json.loads(settings)
        except (ValueError, RecursionError):
            settings = None
    return settings if isinstance(settings, dict) else {}


def _is_trajectory(document: Any) -> bool:
    messages = list_of(document, "history")
    return (
        isinstance(document, dict)
        and isinstance(document.get("trajectory"), list)
        and any(text_of(message, "role") and "content" in message for message in messages[:20])
    )


def _recognise(source: SourceFile) -> str | None:
    if _is_trajectory(source.document):
        return "a JSON object with a trajectory and a history of messages with roles"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    document = json_document(source, _EXPECTED)
    if not _is_trajectory(document):
        raise DataError(f"{source.path}: expected {_EXPECTED}, found none")
    agents: dict[str, list[tuple[int, Any]]] = {}
    for number, message in enumerate(document["history"], 1):
        agent = text_of(message, "agent") or next(iter(agents), "")
        agents.setdefault(agent, []).append((number, message))
    settings = _settings(document)
    for position, (agent, messages) in enumerate(agents.items()):
        conversation = _conversation(messages, settings)
        if position == 0:
            line = conversation.ledger.enter("trajectory", "trajectory")
            line.skip("repeats the history; what follows its end was shown to no model")
        else:
            conversation.part = f"agent-{agent}"
        if source.document_replaced:
            conversation.caveats.append(REPLACED_BYTES)
        yield conversation


FORMAT = Format(
    name="swe-agent",
    title="SWE-agent trajectories (.traj)",
    recognise=_recognise,
    read=_read,
)
