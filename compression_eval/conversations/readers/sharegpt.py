"""Conversations as lists of turns with ``from`` and ``value``, as training data holds them.

Calls and results stand in the texts, between tags; they are taken out of them.
"""

import re
from typing import Any

from compression_eval.conversations.drafts import Conversation, Draft, DraftCall, Line, Role
from compression_eval.conversations.fields import Json, from_json, label, tool_definitions
from compression_eval.conversations.readers.base import without_tags

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
    for number, turn in enumerate(map(Json.of, turns)):
        line = conversation.ledger.enter(f"{where} {number}", f"turn:{label(turn.at('from'))}")
        reader.add(line, turn)
    conversation.caveat(_LOSSY)
    conversation.name_missing()


class _Turns:
    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._waiting: list[tuple[Draft, int]] = []
        """Calls without a result so far: their message and their position in it."""
        self._count = 0

    def add(self, line: Line, turn: Json) -> None:
        name, text = turn.text("from"), turn.at("value")
        role = _ROLES.get(name)
        if role is None or not isinstance(text, str):
            line.is_unknown(f"expected a text value, and from one of {', '.join(_ROLES)}")
        elif role == "tool":
            for result in _RESULT.findall(text) or [text]:
                self._add_result(line, result)
        elif role == "assistant":
            self._add_answer(line, text, is_call=name == "function_call")
        else:
            found = _TOOLS.search(text) if role == "system" else None
            if found and (tools := tool_definitions(from_json(found[1]) or [])[0]):
                self._conversation.tools = tools
            self._conversation.say(line, Draft(role, [text]))

    def _add_answer(self, line: Line, text: str, *, is_call: bool) -> None:
        draft = Draft("assistant")

        def take(text: str, otherwise: str) -> str:
            """Add the call that a text is, and return what is left of it."""
            value = Json.of(from_json(text))
            if not value.text("name"):
                return otherwise
            self._count += 1
            draft.call(f"call-{self._count}", value.text("name"), value.at("arguments"))
            return ""

        text = without_tags(text, line)
        text = take(text, text) if is_call else _CALL.sub(lambda it: take(it[1], it[0]), text)
        draft.content.append(text.rstrip() if draft.calls else text)
        self._waiting = [(draft, index) for index in range(len(draft.calls))]
        self._conversation.say(line, draft)

    def _add_result(self, line: Line, result: str) -> None:
        value = Json.of(from_json(result))
        call_id = value.text("tool_call_id")
        if self._waiting:
            # The call that it answers gets the id of the result.
            draft, index = self._waiting.pop(0)
            call = draft.calls[index]
            call_id = call_id or call.id
            draft.calls[index] = DraftCall(call_id, call.name, call.arguments)
        content = value.json("content") if "content" in value else result
        self._conversation.say(line, Draft("tool", [content], call_id=call_id))
