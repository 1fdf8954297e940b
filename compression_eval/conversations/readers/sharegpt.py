"""Conversations as lists of turns with ``from`` and ``value``, as training data holds them.

Calls and results stand in the texts, between tags; they are taken out of them.
"""

import json
import re
from collections import deque
from typing import Any

from compression_eval.conversations.drafts import Conversation, Draft, DraftCall, Role
from compression_eval.conversations.fields import as_text, label, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.tool_schemas import tool_definitions
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    without_thinking,
)

LOSSY = (
    "calls and results were taken out of texts, as training data holds them; images and what the "
    "agent's own system prompt said may be missing"
)

_ROLES: dict[str, Role] = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "chatgpt": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "function": "tool",
    "function_response": "tool",
    "observation": "tool",
}
_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_RESULT = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)
_TOOLS = re.compile(r"<tools>\s*(\[.*?\])\s*</tools>", re.DOTALL)


def is_turn(value: Any) -> bool:
    """Whether a value is a turn of this form."""
    return isinstance(value, dict) and "from" in value and "value" in value


def add_turns(conversation: Conversation, turns: list[Any], where: str) -> None:
    """Add turns to a conversation.

    Args:
        conversation: To add them to.
        turns: The list as the file holds it.
        where: Where the list stands.
    """
    reader = _Turns(conversation)
    for number, turn in enumerate(turns):
        line = conversation.ledger.enter(f"{where} {number}", f"turn:{label(_from(turn))}")
        reader.add(line, turn)
    conversation.caveats.append(LOSSY)
    if not any(draft.role == "system" for draft in conversation.drafts):
        conversation.caveats.append(NO_SYSTEM_PROMPT)
    if not conversation.tools:
        conversation.caveats.append(NO_TOOLS)


def _from(turn: Any) -> Any:
    return turn.get("from") if isinstance(turn, dict) else None


class _Turns:
    """Reads the turns of one conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._waiting: deque[tuple[Draft, int]] = deque()
        """Calls without a result so far: their message and their position in it."""
        self._count = 0

    def add(self, line: Line, turn: Any) -> None:
        """Add a turn and settle its line."""
        name = text_of(turn, "from")
        role = _ROLES.get(name)
        if role is None or not isinstance(turn.get("value"), str):
            line.is_unknown(f"expected a text value, and from one of {', '.join(_ROLES)}")
            return
        text: str = turn["value"]
        if role == "tool":
            self._add_results(line, text)
        elif role == "assistant":
            self._add_answer(line, text, is_call=name == "function_call")
        else:
            if role == "system":
                self._take_tools(text)
            self._say(line, Draft(role, [text]))

    def _say(self, line: Line, draft: Draft) -> None:
        self._conversation.drafts.append(line.became(draft))

    def _take_tools(self, text: str) -> None:
        found = _TOOLS.search(text)
        try:
            values = json.loads(found.group(1)) if found else []
        except (ValueError, RecursionError):
            return
        self._conversation.tools = tool_definitions(values)[0] or self._conversation.tools

    def _add_answer(self, line: Line, text: str, *, is_call: bool) -> None:
        draft = Draft("assistant")
        text = without_thinking(text, line)
        if is_call and self._is_call(draft, text):
            text = ""
        elif not is_call:
            text = _CALL.sub(
                lambda match: "" if self._is_call(draft, match.group(1)) else match.group(0), text
            )
        draft.content.append(text.rstrip() if draft.calls else text)
        self._waiting = deque((draft, index) for index in range(len(draft.calls)))
        self._say(line, draft)

    def _is_call(self, draft: Draft, text: str) -> bool:
        """Add the call that a text is; whether it is one."""
        value = _json(text)
        name = text_of(value, "name")
        if not name:
            return False
        self._count += 1
        arguments = as_text(value.get("arguments"))
        draft.calls.append(DraftCall(f"call-{self._count}", name, arguments))
        return True

    def _add_results(self, line: Line, text: str) -> None:
        for result in _RESULT.findall(text) or [text]:
            value = _json(result)
            tagged = isinstance(value, dict) and "content" in value
            content = as_text(value["content"]) if tagged else result
            self._say(line, Draft("tool", [content], call_id=self._answered(value)))

    def _answered(self, value: Any) -> str:
        """Return the id of the call that a result answers, and give the call the result's id."""
        given = text_of(value, "tool_call_id")
        if not self._waiting:
            return given
        draft, index = self._waiting.popleft()
        call = draft.calls[index]
        identifier = given or call.id
        draft.calls[index] = DraftCall(identifier, call.name, call.arguments)
        return identifier


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
