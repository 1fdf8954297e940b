"""What a Codex rollout says about itself: version, model, system prompt, tools, context length."""

from typing import Any

from compression_eval.conversations.drafts import Conversation, Draft
from compression_eval.conversations.fields import count_of, list_of, mapping_of, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.tool_schemas import tool_definitions
from compression_eval.conversations.readers.values import NO_SYSTEM_PROMPT, NO_TOOLS, origin


class Head:
    """Takes the lines that describe a session and its turns."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._seen = False
        self._models: list[str] = []
        self._system = False

    def session(self, line: Line, payload: dict[str, Any]) -> None:
        """Take the head of this session; a fork's file holds the head of its origin as well."""
        conversation = self._conversation
        if self._seen:
            line.skip("the head of the session that this one was forked from")
            return
        self._seen = True
        conversation.session = text_of(payload, "id")
        conversation.origin = origin("Codex", text_of(payload, "cli_version"))
        self._lineage(payload)
        conversation.tools, without = tool_definitions(list_of(payload, "dynamic_tools"))
        if without:
            conversation.caveats.append(f"{without} tools are named without a schema")
        instructions = payload.get("base_instructions")
        system = instructions if isinstance(instructions, str) else text_of(instructions, "text")
        if system.strip():
            self._system = True
            conversation.drafts.insert(0, line.became(Draft("system", [system])))
        else:
            line.skip("the head of the session; it holds no system prompt")

    def turn(self, line: Line, payload: dict[str, Any]) -> None:
        """Take the settings of a turn."""
        line.skip("settings of a turn; what the model saw of them is a message")
        model = text_of(payload, "model")
        if model and model not in self._models:
            self._models.append(model)

    def event(self, payload: dict[str, Any]) -> None:
        """Take what an event tells about the model."""
        length = count_of(payload, "model_context_window") or count_of(
            mapping_of(payload, "info"), "model_context_window"
        )
        if length:
            self._conversation.context_length = length

    def finish(self) -> None:
        """Enter what was found, and what is missing."""
        conversation = self._conversation
        if self._models:
            conversation.model = self._models[-1]
        if len(self._models) > 1:
            conversation.caveats.append(
                "the model was changed along the way; the last one is named"
            )
        if not self._system:
            conversation.caveats.append(NO_SYSTEM_PROMPT)
        if not conversation.tools:
            conversation.caveats.append(NO_TOOLS)

    def _lineage(self, payload: dict[str, Any]) -> None:
        conversation = self._conversation
        source = mapping_of(payload, "source")
        if "subagent" in source or text_of(payload, "thread_source") == "subagent":
            conversation.part = "subagent"
            conversation.caveats.append("a sub-agent's thread: its user is another agent")
        if text_of(payload, "forked_from_id"):
            conversation.caveats.append(
                "a fork: the thread begins with a copy of the session that it was forked from"
            )
