"""Anchored iterative summarising: a persistent memory in sections, updated by code.

Source: "Evaluating Context Compression for AI Agents" (Factory, 2025) describes the idea: fixed
sections, and only the newly dropped span is summarised. A model proposes operations on the
memory, and code applies them; see `memory`.
"""

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import ValidationError

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.memory import Memory, Operations, operations_schema
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.strategy import strategy
from compression_eval.compressors.summarising import SummarisingCompaction, completion
from compression_eval.compressors.tokens import token_counter


@strategy
class AnchoredCompaction(SummarisingCompaction):
    """Replace the middle of a conversation by a memory that is carried from cycle to cycle.

    The memory lives in the metadata of the message that carries it, not in this object, so that
    one object can serve many conversations at once.
    """

    summary = "persistent sectioned memory; only the dropped span is summarised, code merges"
    key = "compression_eval_memory"
    instructions = "anchored"

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return head, memory and tail; and the message that carries the memory."""
        plan = self.plan(messages)
        memory = Memory.model_validate(plan.earlier or {})
        request = self.request(plan, {"current_summary": memory.for_model()})
        memory = memory.merged(await self._operations(model, request))
        memory = memory.fitted(plan.tokens, token_counter().count)
        if not any(memory.sections.values()):
            raise CompressionError("empty", "the memory holds no entry")
        message = self.carrier(memory.render(), memory.model_dump(mode="json"))
        return self.state(plan, message), message

    async def _operations(self, model: Model, request: list[ChatMessage]) -> Operations:
        """Return the operations that a model proposes; it may repair its reply once."""
        config = GenerateConfig(response_schema=operations_schema())
        reason = ""
        for _ in range(2):
            reply = completion(await model.generate(request, config=config))
            try:
                return Operations.parsed(reply)
            except ValidationError as error:
                detail = error.errors(include_url=False, include_input=False)[0]
                where = ".".join(str(part) for part in detail["loc"])
                reason = f"{where}: {detail['msg']}" if where else detail["msg"]
            repair = ChatMessageUser(content=f"{prompt('repair')}\n\n{reason}")
            request = [*request, ChatMessageAssistant(content=reply), repair]
        reason = f"the summarising model's operations are unusable: {reason}"
        raise CompressionError("error", reason)
