"""Conversations as lists of turns with ``from`` and ``value``, as training data holds them.

Calls and results stand in the texts, between tags; they are taken out of them.
"""

import re
from collections import deque
from typing import Any

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import Conversation, Draft, DraftCall, Role
from compression_eval.conversations.fields import (
    as_text,
    from_json,
    label,
    list_of,
    text_of,
    value_of,
)
from compression_eval.conversations.readers.base import tool_definitions, without_tags

_LOSSY = (
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
        name = label(value_of(turn, "from"))
        reader.add(conversation.ledger.enter(f"{where} {number}", f"turn:{name}"), turn)
    conversation.caveats.append(_LOSSY)
    conversation.name_missing()


class _Turns:
    """Reads the turns of one conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._waiting: deque[tuple[Draft, int]] = deque()
        """Calls without a result so far: their message and their position in it."""
        self._count = 0

    def add(self, line: Line, turn: Any) -> None:
        """Add a turn and settle its line."""
        name, text = text_of(turn, "from"), value_of(turn, "value")
        role = _ROLES.get(name)
        if role is None or not isinstance(text, str):
            line.is_unknown(f"expected a text value, and from one of {', '.join(_ROLES)}")
        elif role == "tool":
            self._add_results(line, text)
        elif role == "assistant":
            self._add_answer(line, text, is_call=name == "function_call")
        else:
            found = _TOOLS.search(text) if role == "system" else None
            if found and (tools := tool_definitions(list_of(from_json(found[1])))[0]):
                self._conversation.tools = tools
            self._conversation.say(line, Draft(role, [text]))

    def _add_answer(self, line: Line, text: str, *, is_call: bool) -> None:
        draft = Draft("assistant")
        text = without_tags(text, line)
        if is_call:
            text = "" if self._is_call(draft, text) else text
        else:
            text = _CALL.sub(lambda it: "" if self._is_call(draft, it[1]) else it[0], text)
        draft.content.append(text.rstrip() if draft.calls else text)
        self._waiting = deque((draft, index) for index in range(len(draft.calls)))
        self._conversation.say(line, draft)

    def _is_call(self, draft: Draft, text: str) -> bool:
        """Add the call that a text is; whether it is one."""
        value = from_json(text)
        name = text_of(value, "name")
        if name:
            self._count += 1
            arguments = as_text(value.get("arguments"))
            draft.calls.append(DraftCall(f"call-{self._count}", name, arguments))
        return bool(name)

    def _add_results(self, line: Line, text: str) -> None:
        for result in _RESULT.findall(text) or [text]:
            value = from_json(result)
            tagged = isinstance(value, dict) and "content" in value
            content = as_text(value["content"]) if tagged else result
            call_id = text_of(value, "tool_call_id")
            if self._waiting:
                # The call that it answers gets the id of the result.
                draft, index = self._waiting.popleft()
                call = draft.calls[index]
                call_id = call_id or call.id
                draft.calls[index] = DraftCall(call_id, call.name, call.arguments)
            self._conversation.say(line, Draft("tool", [content], call_id=call_id))
