"""Convert between Inspect's and LangChain's messages and models; imported only when used."""

import inspect
from collections.abc import Sequence
from typing import Any, Literal, cast

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    Model,
)
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.exceptions import ModelError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.runtime import Runtime
from langsmith import tracing_context

from compression_eval.compressors.budget import split_system
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.summarising import completion

_KEY = "compression_eval_langchain"


class _ModelFailedError(ModelError):
    """Carries a failure through LangChain, which would retry most other errors."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _InspectModel(BaseChatModel):
    """An Inspect model as LangChain calls it."""

    inspect_model: Any
    calls: int = 0

    @property
    def _llm_type(self) -> str:
        return "inspect"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError("an Inspect model is called asynchronously only")

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.calls += 1
        request: list[ChatMessage] = [
            ChatMessageUser(content=str(message.text)) for message in messages
        ]
        try:
            text = completion(await self.inspect_model.generate(request))
        except Exception as error:
            raise _ModelFailedError(error) from error
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])


def default_prompt() -> str:
    """Return the prompt that the middleware has if none is given."""
    return str(inspect.signature(SummarizationMiddleware).parameters["summary_prompt"].default)


async def middleware_result(
    model: Model,
    messages: Sequence[ChatMessage],
    keep: tuple[Literal["messages", "tokens"], int],
    trim_tokens: int | None,
    prompt: str | None,
) -> tuple[list[ChatMessage], ChatMessageUser]:
    """Return the conversation after the middleware, and the message with the summary.

    Raises:
        CompressionError: The middleware did nothing or called no model, or the model failed.
    """
    # LangChain's agents keep the system prompt outside of their messages.
    system, rest = split_system(messages)
    by_id = {str(index): message for index, message in enumerate(rest)}
    chat = _InspectModel(inspect_model=model)
    # In LangChain's template braces are text, and the messages follow.
    template = prompt and prompt.replace("{", "{{").replace("}", "}}") + "\n\n{messages}"
    replaced: dict[str, Any] = {"summary_prompt": template} if template else {}
    middleware: Any = SummarizationMiddleware(
        chat,
        trigger=("messages", 1),
        keep=cast(Any, keep),
        trim_tokens_to_summarize=trim_tokens,
        **replaced,
    )
    state = {"messages": [_converted(message, key) for key, message in by_id.items()]}
    try:
        # A user's environment may let LangSmith record LangChain's work: never our conversations.
        with tracing_context(enabled=False):
            update = await middleware.abefore_model(state, Runtime())
    except _ModelFailedError as failed:
        raise failed.reason from failed
    if update is None:
        raise CompressionError(
            "not_applied", f"LangChain keeps everything: keep is {keep[0]} {keep[1]}"
        )
    _, summary, *kept = update["messages"]
    if chat.calls == 0:
        raise CompressionError(
            "fallback",
            f"LangChain called no model and put a fixed sentence ({summary.text[-80:]!r}): there "
            f"is no user message in the last {trim_tokens} tokens of what is removed",
        )
    carrier = ChatMessageUser(content=str(summary.text), metadata={_KEY: True})
    return [*system, carrier, *(by_id[message.id] for message in kept)], carrier


def _converted(message: ChatMessage, key: str) -> BaseMessage:
    if isinstance(message, ChatMessageAssistant):
        calls = [
            {"name": call.function, "args": call.arguments, "id": call.id}
            for call in message.tool_calls or []
        ]
        return AIMessage(content=message.text, tool_calls=calls, id=key)
    if isinstance(message, ChatMessageTool):
        return ToolMessage(content=message.text, tool_call_id=message.tool_call_id or "", id=key)
    extra = {"lc_source": "summarization"} if _KEY in (message.metadata or {}) else {}
    return HumanMessage(content=message.text, additional_kwargs=extra, id=key)
