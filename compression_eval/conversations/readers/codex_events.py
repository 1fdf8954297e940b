"""What Codex writes for its screen: most repeats what the conversation holds."""

from collections import defaultdict
from typing import Any

from compression_eval.conversations.drafts import Draft
from compression_eval.conversations.fields import text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.responses_items import ItemReader

_TURN = "a mark of a turn's course"
_SCREEN = "a notice for the screen"
_RUN = "how a tool call was shown; the conversation holds no such call"

MARKS = {
    "task_started": _TURN,
    "turn_started": _TURN,
    "task_complete": _TURN,
    "turn_complete": _TURN,
    "turn_aborted": "a mark that the turn was interrupted",
    "token_count": "an account of tokens",
    "context_compacted": "a notice of a compaction",
    "agent_reasoning": "thinking is left out",
    "agent_reasoning_raw_content": "thinking is left out",
    "agent_reasoning_section_break": "thinking is left out",
    "agent_message_delta": "a piece of a message that follows whole",
    "entered_review_mode": "a mark of a review, which is a thread of its own",
    "exited_review_mode": "a mark of a review, which is a thread of its own",
    "thread_goal_updated": "a goal's state; the model got it as a message of its own",
    "thread_name_updated": "a title",
    "thread_settings_applied": "settings",
    "item_started": "how an item was shown",
    "item_completed": "how an item was shown",
    "sub_agent_activity": "what a sub-agent did, which is a thread of its own",
    "plan_update": "how a plan was shown",
    "turn_diff": "the changed files, as shown",
    "background_event": _SCREEN,
    "error": _SCREEN,
    "warning": _SCREEN,
    "guardian_warning": _SCREEN,
    "guardian_assessment": _SCREEN,
    "stream_error": _SCREEN,
    "deprecation_notice": _SCREEN,
    "model_reroute": _SCREEN,
    "model_verification": _SCREEN,
    "session_configured": "settings",
    "shutdown_complete": _SCREEN,
    "undo_started": "a mark that files were put back",
    "undo_completed": "a mark that files were put back",
}
"""Events that hold nothing of the conversation, with the reason."""

_OF_CALLS = frozenset(
    {
        "exec_command_begin",
        "exec_command_end",
        "exec_command_output_delta",
        "exec_approval_request",
        "apply_patch_approval_request",
        "patch_apply_begin",
        "patch_apply_end",
        "patch_apply_updated",
        "mcp_tool_call_begin",
        "mcp_tool_call_end",
        "web_search_begin",
        "web_search_end",
        "view_image_tool_call",
        "image_generation_begin",
        "image_generation_end",
        "dynamic_tool_call_request",
        "dynamic_tool_call_response",
        "terminal_interaction",
        "request_user_input",
        "elicitation_request",
        "collab_agent_spawn_begin",
        "collab_agent_spawn_end",
        "collab_agent_interaction_begin",
        "collab_agent_interaction_end",
        "collab_waiting_begin",
        "collab_waiting_end",
        "collab_close_begin",
        "collab_close_end",
        "collab_resume_begin",
        "collab_resume_end",
    }
)
"""Events that show the run of a tool call."""


class Display:
    """Ties events to the messages that they repeat, whichever comes first in the file."""

    def __init__(self, items: ItemReader) -> None:
        self._items = items
        self._of_calls: list[tuple[Line, str]] = []
        self._searches: list[tuple[Line, dict[str, Any]]] = []
        self._shown: dict[str, list[Line]] = defaultdict(list)
        self._said: tuple[Draft, str] | None = None

    def take(self, line: Line, kind: str, payload: dict[str, Any]) -> bool:
        """Take an event that is for the screen only; return whether it is one that is known."""
        if kind == "agent_message":
            self._message(line, text_of(payload, "message"))
        elif kind == "web_search_end":
            self._searches.append((line, payload))
        elif kind in _OF_CALLS:
            self._of_calls.append((line, text_of(payload, "call_id")))
        elif kind in MARKS:
            line.skip(MARKS[kind])
        else:
            return False
        return True

    def said(self, draft: Draft, text: str) -> None:
        """Say that the model said a text."""
        for line in self._shown.pop(text, ()):
            line.merge(draft)
        self._said = draft, text

    def searched(self, item: dict[str, Any]) -> dict[str, Any]:
        """Return a search with what the event before it tells beyond the item: id and query."""
        if not self._searches:
            return item
        _, event = self._searches[-1]
        extra = {"id": text_of(event, "call_id"), "action": event.get("action")}
        query = text_of(event, "query")
        if not isinstance(extra["action"], dict) and query:
            extra["action"] = {"type": "search", "query": query}
        missing = {key: value for key, value in extra.items() if value and not item.get(key)}
        return {**item, **missing}

    def answered(self, draft: Draft | None) -> None:
        """Say that the search of the event before was read."""
        for line, _ in self._searches:
            if draft is None:
                line.skip(_RUN)
            else:
                line.merge(draft)
        self._searches.clear()

    def finish(self) -> None:
        """Settle what waited for a message that may come later."""
        for line, call_id in self._of_calls:
            draft = self._items.results.get(call_id) or self._items.callers.get(call_id)
            if draft is None:
                line.skip(_RUN)
            else:
                line.merge(draft)
        for lines in self._shown.values():
            for line in lines:
                line.skip("shown to the user; no message of the model has this text")
        self.answered(None)

    def _message(self, line: Line, text: str) -> None:
        if self._said is not None and self._said[1] == text:
            line.merge(self._said[0])
            self._said = None
        else:
            self._shown[text].append(line)
