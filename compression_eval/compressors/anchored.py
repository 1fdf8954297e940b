"""Anchored iterative summarising: a persistent, sectioned memory that code merges into.

Source: "Evaluating Context Compression for AI Agents" (Factory, 2025) describes the idea: fixed
sections, and only the newly dropped span is summarised. The typed operations, the merge by code
and the eviction rule are ours.
"""

import re
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    CompactionStrategy,
    GenerateConfig,
    Model,
    ResponseSchema,
)
from inspect_ai.tool import ToolInfo
from inspect_ai.util import JSONSchema
from pydantic import ValidationError

from compression_eval.compressors.arguments import SummaryArguments
from compression_eval.compressors.budget import plan_summary
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.material import data_block
from compression_eval.compressors.memory import SECTIONS, Memory, Operations
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.summarising import carrier, completion, request
from compression_eval.compressors.tokens import token_counter

_KEY = "compression_eval_memory"
_REPAIRS = 1


def _schema() -> ResponseSchema:
    """Return the form of `Operations`, for providers that can hold a model to one.

    It is written out because a schema derived from the models loses what an operation is, and
    because strict modes want every field named as required.
    """
    text = JSONSchema(type="string")
    fields: dict[str, dict[str, JSONSchema]] = {
        "add": {"section": JSONSchema(type="string", enum=list(SECTIONS)), "text": text},
        "supersede": {"id": text, "text": text},
        "close": {"id": text, "text": text},
    }
    operations = [
        JSONSchema(
            type="object",
            properties={"op": JSONSchema(type="string", enum=[op]), **properties},
            required=["op", *properties],
            additionalProperties=False,
        )
        for op, properties in fields.items()
    ]
    return ResponseSchema(
        name="anchored_operations",
        json_schema=JSONSchema(
            type="object",
            properties={"operations": JSONSchema(type="array", items=JSONSchema(anyOf=operations))},
            required=["operations"],
            additionalProperties=False,
        ),
        strict=True,
    )


class AnchoredCompaction(CompactionStrategy):
    """Replace the middle of a conversation by a memory that survives from cycle to cycle.

    The memory lives in the metadata of the message that carries it, not in this object, so that
    one object can serve many conversations at once.

    Args:
        arguments: Budgets, prompt and focus topic.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(self, arguments: SummaryArguments, *, threshold: int | float = 0.9) -> None:
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.arguments = arguments

    async def compact(
        self,
        model: Model,
        messages: list[ChatMessage],
        tools: list[ToolInfo],  # noqa: ARG002
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation.

        Args:
            model: Writes the operations; one call, and one more if its reply cannot be read.
            messages: The conversation, perhaps with the memory of an earlier compression.
            tools: Not used.

        Returns:
            Head, memory and tail; and the message that carries the memory.

        Raises:
            CompressionError: Nothing to summarise, or no usable reply.
        """
        counter = token_counter()
        arguments = self.arguments
        plan = plan_summary(messages, _KEY, arguments, counter)
        memory = _memory_of(plan.span.previous)
        header: dict[str, Any] = {"current_summary": memory.for_model()}
        header["budget_tokens"] = plan.summary_tokens
        if arguments.focus_topic:
            header["focus_topic"] = arguments.focus_topic
        operations = await _operations(
            model,
            request(
                arguments.prompt or prompt("anchored"),
                "anchored_protocol",
                data_block(header, plan.span.dropped),
            ),
        )
        memory = memory.merged(operations).fitted(plan.summary_tokens, counter.count)
        if not any(memory.sections.values()):
            raise CompressionError("empty", "the memory holds no entry")
        message = carrier(memory.render(), {_KEY: memory.model_dump(mode="json")})
        return plan.state(message), message


def _memory_of(message: ChatMessageUser | None) -> Memory:
    return Memory.model_validate((message.metadata or {})[_KEY]) if message else Memory()


async def _operations(model: Model, messages: list[ChatMessage]) -> Operations:
    config = GenerateConfig(response_schema=_schema())
    reason = ""
    for _ in range(1 + _REPAIRS):
        text = completion(await model.generate(messages, config=config))
        try:
            return Operations.model_validate_json(_json_part(text))
        except ValidationError as error:
            detail = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in detail["loc"])
            reason = f"{where}: {detail['msg']}" if where else detail["msg"]
        messages = [
            *messages,
            ChatMessageAssistant(content=text),
            ChatMessageUser(content=f"{prompt('repair')}\n\n{reason}"),
        ]
    raise CompressionError("error", f"the summarising model's operations are unusable: {reason}")


def _json_part(text: str) -> str:
    """Return the JSON object in a reply that may have a code fence or prose around it."""
    found = re.search(r"\{.*\}", text, re.DOTALL)
    return found.group() if found else text
