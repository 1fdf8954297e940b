"""Items of OpenAI's Responses API, which Codex writes too, turned into messages one by one."""

from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import label, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.openai_content import content_of
from compression_eval.conversations.readers.responses_calls import (
    CALLS,
    HOSTED,
    RESULTS,
    call_of,
    own_result,
    result_of,
)

COMPACTIONS = frozenset({"compaction", "compaction_summary", "context_compaction"})

_ROLES = {"user": "user", "system": "system", "developer": "system", "assistant": "assistant"}

_PASSED_OVER = {
    "reasoning": "thinking is left out",
    "ghost_snapshot": "a snapshot of the files for undoing, not part of the conversation",
    "additional_tools": "tools that became available; schemas are read from the head only",
    "mcp_list_tools": "the tools that a server offers",
    "mcp_approval_request": "a question to the user whether a tool may run",
    "mcp_approval_response": "the user's permission to run a tool",
    "compaction_trigger": "a request to compact, not part of the conversation",
}

KINDS = frozenset({"message", "agent_message", *CALLS, *RESULTS, *COMPACTIONS, *_PASSED_OVER})
"""Types of items that are known."""

CLEAR_MARKS = KINDS - {"message", "agent_message", "compaction"}
"""Types that no other format uses for its lines or blocks."""


def is_item(value: Any) -> bool:
    """Return whether a value is an item: of a known type, or a message that leaves it out."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if kind is None:
        return text_of(value, "role") in _ROLES and "content" in value
    return isinstance(kind, str) and (kind in KINDS or kind == "item_reference")


def item_kind(item: Any) -> str:
    """Return what to call an item in an account."""
    kind = text_of(item, "type") or ("message" if text_of(item, "role") else "")
    if kind == "message":
        return f"message:{label(text_of(item, 'role'))}"
    return label(kind)


class ItemReader:
    """Adds items to a conversation.

    Everything that the model said between two inputs is one turn, as providers see it: its text
    and its calls, parallel ones included.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.callers: dict[str, Draft] = {}
        """The assistant turn that made a call, by the call's id."""
        self.results: dict[str, Draft] = {}
        """The result of a call, by the call's id."""
        self._conversation = conversation
        self._turn: Draft | None = None
        self._only_hosted = False
        self._calls = 0

    def close_turn(self) -> None:
        """End the running assistant turn: what comes next is no part of it."""
        self._turn = None

    def read(self, line: Line, item: Any) -> Draft | None:
        """Add an item, and settle its line.

        Returns:
            The message that it became or was merged into; None if it became none.
        """
        kind = text_of(item, "type") or ("message" if text_of(item, "role") else "")
        if kind == "message":
            return self._message(line, item)
        if kind == "agent_message":
            return self._from_agent(line, item)
        if kind in CALLS:
            return self._call(line, item, kind)
        if kind in RESULTS:
            return self._result(line, item, kind)
        if kind in COMPACTIONS:
            self._compaction(line)
        elif kind == "item_reference":
            self._conversation.caveats.append("an item is only referred to, it is not in the file")
            line.skip("refers to an item that is not in the file")
        elif kind in _PASSED_OVER:
            line.skip(_PASSED_OVER[kind])
        else:
            line.is_unknown("a kind of item that this reader does not know")
        return None

    def add(self, line: Line, draft: Draft) -> Draft:
        """Add a message that is no part of an assistant turn."""
        self.close_turn()
        self._conversation.drafts.append(draft)
        return line.became(draft)

    def _message(self, line: Line, item: Any) -> Draft | None:
        role = _ROLES.get(text_of(item, "role"))
        if role is None:
            line.is_unknown("a message whose role is none of user, assistant, system, developer")
            return None
        if not isinstance(item.get("content"), str | list | None):
            line.is_unknown("a message whose content is neither a text nor a list")
            return None
        content = content_of(item.get("content"), line)
        if role == "user":
            return self.add(line, Draft("user", content))
        if role == "system":
            return self.add(line, Draft("system", content))
        if self._turn is not None and self._turn.calls and self._only_hosted:
            # What a hosted call found is known only in the text that follows it.
            self.close_turn()
        draft = self._assistant(line)
        draft.content.extend(content)
        return draft

    def _from_agent(self, line: Line, item: Any) -> Draft:
        caveat = "messages that other agents sent to this one are given as user messages"
        self._conversation.caveats.append(caveat)
        return self.add(line, Draft("user", content_of(item.get("content"), line)))

    def _assistant(self, line: Line) -> Draft:
        """Return the running assistant turn, opened if there is none."""
        if self._turn is None:
            self._turn = Draft("assistant")
            self._only_hosted = True
            self._conversation.drafts.append(self._turn)
            return line.became(self._turn)
        line.merge(self._turn)
        return self._turn

    def _call(self, line: Line, item: Any, kind: str) -> Draft:
        draft = self._assistant(line)
        self._calls += 1
        call = call_of(item, kind, self._calls)
        draft.calls.append(call)
        self.callers[call.id] = draft
        if kind not in HOSTED:
            self._only_hosted = False
            return draft
        result = own_result(item, kind, call.id)
        if result is not None:
            self._conversation.drafts.append(line.became(result))
            self.results[call.id] = result
        return draft

    def _result(self, line: Line, item: Any, kind: str) -> Draft:
        draft = self.add(line, result_of(item, kind, line))
        self.results[draft.call_id or ""] = draft
        return draft

    def _compaction(self, line: Line) -> None:
        drafts = self._conversation.drafts
        self.close_turn()
        self._conversation.compactions.append(
            Compaction(after=drafts[-1] if drafts else None, kind="opaque")
        )
        line.leave_out("encrypted content", "it cannot be read")
        line.skip("a compaction, kept as a cut; its summary is encrypted")
