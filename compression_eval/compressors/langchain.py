"""LangChain's ``SummarizationMiddleware``, unmodified, with the compressor model behind it.

The package is not a dependency; it is imported when the strategy is first used. The prompt is
LangChain's own, unless it is replaced.
"""

import inspect
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, cast

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import PositiveInt

from compression_eval.compressors.budget import split_system
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.strategy import Strategy, Text, strategy
from compression_eval.compressors.summarising import completion
from compression_eval.errors import lacking

_KEY = "compression_eval_langchain"


def _default_prompt(_: object) -> str:
    """Return the prompt that the middleware has if none is given."""
    from langchain.agents.middleware import SummarizationMiddleware

    return str(inspect.signature(SummarizationMiddleware).parameters["summary_prompt"].default)


@strategy
class LangChainCompaction(Strategy):
    """Have LangChain's middleware compress a conversation.

    Raises:
        ValueError: LangChain is not installed.
    """

    summary = "LangChain's SummarizationMiddleware, which reads 4,000 tokens by default"
    borrowed: ClassVar[Any] = staticmethod(_default_prompt)

    keep: tuple[Literal["messages", "tokens"], PositiveInt] = ("messages", 20)
    """What is kept at the end: a number of messages, or of tokens as LangChain estimates them."""
    trim_tokens_to_summarize: PositiveInt | None = 4_000
    """Tokens that the model is shown of what is removed, the newest; null for all. The default
    hides most of a long conversation from the model, and all of it where the last user message lies
    further back: then LangChain calls no model and puts a fixed sentence."""
    prompt: Text | None = None
    """Text that replaces LangChain's prompt; the messages follow it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if find_spec("langchain") is None:
            raise lacking("compressor: langchain", "langchain")

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return system messages, summary, last messages; and the message with the summary.

        Raises:
            CompressionError: The middleware did nothing or called no model, or the model failed.
        """
        from langchain.agents.middleware import SummarizationMiddleware
        from langgraph.runtime import Runtime
        from langsmith import tracing_context

        # LangChain's agents keep the system prompt outside of their messages.
        system, rest = split_system(messages)
        by_id = {str(index): message for index, message in enumerate(rest)}
        chat = _chat_model(model)
        replaced: dict[str, Any] = {}
        if self.prompt:
            # In LangChain's template braces are text, and the messages follow.
            template = self.prompt.replace("{", "{{").replace("}", "}}")
            replaced["summary_prompt"] = f"{template}\n\n{{messages}}"
        middleware: Any = SummarizationMiddleware(
            chat,
            trigger=("messages", 1),
            keep=cast(Any, self.keep),
            trim_tokens_to_summarize=self.trim_tokens_to_summarize,
            **replaced,
        )
        state = {"messages": [_converted(message, key) for key, message in by_id.items()]}
        try:
            # A user's environment may let LangSmith record LangChain's work: never our
            # conversations.
            with tracing_context(enabled=False):
                update = await middleware.abefore_model(state, Runtime())
        except Exception:
            if chat.failure:
                raise chat.failure from chat.failure.__cause__
            raise
        if update is None:
            raise CompressionError(
                "not_applied", f"LangChain keeps everything: keep is {self.keep[0]} {self.keep[1]}"
            )
        _, summary, *kept = update["messages"]
        if chat.calls == 0:
            raise CompressionError(
                "fallback",
                f"LangChain called no model and put a fixed sentence ({summary.text[-80:]!r}): "
                f"there is no user message in the last {self.trim_tokens_to_summarize} tokens of "
                "what is removed",
            )
        carrier = ChatMessageUser(content=str(summary.text), metadata={_KEY: True})
        return [*system, carrier, *(by_id[message.id] for message in kept)], carrier


def _chat_model(model: Model) -> Any:
    """Return an Inspect model as LangChain calls it; it counts calls and keeps a failure."""
    from langchain_core.exceptions import ModelError
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class InspectModel(BaseChatModel):
        calls: int = 0
        failure: Any = None

        @property
        def _llm_type(self) -> str:
            return "inspect"

        def _generate(self, *_: Any, **__: Any) -> ChatResult:
            raise NotImplementedError("an Inspect model is called asynchronously only")

        async def _agenerate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
            self.calls += 1
            request: list[ChatMessage] = [
                ChatMessageUser(content=str(message.text)) for message in messages
            ]
            try:
                text = completion(await model.generate(request))
            except Exception as error:
                self.failure = error
                # LangChain would retry most other errors.
                raise ModelError(str(error)) from error
            return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])

    return InspectModel()


def _converted(message: ChatMessage, key: str) -> Any:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

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
