"""LangChain's ``SummarizationMiddleware``, unmodified, with the compressor model behind it.

The package is not a dependency; it is imported when the strategy is first used. The prompt is
LangChain's own, unless it is replaced.
"""

from importlib.util import find_spec
from typing import Any, ClassVar, Literal

from inspect_ai.model import ChatMessage, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo
from pydantic import PositiveInt

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.strategy import Strategy, Text, strategy
from compression_eval.errors import lacking

_EXTRA = ("compressor: langchain", "langchain")


def _default_prompt(_: object) -> str:
    try:
        from compression_eval.compressors.langchain_bridge import default_prompt
    except ImportError:
        return ""  # the compression says so
    return default_prompt()


@strategy
class LangChainCompaction(Strategy):
    """Have LangChain's middleware compress a conversation.

    Raises:
        ValueError: LangChain is not installed.
    """

    summary = (
        "LangChain's SummarizationMiddleware as it is; by default it reads the last 4,000 "
        "tokens only"
    )
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
            raise lacking(*_EXTRA)

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return system messages, summary, last messages; and the message with the summary."""
        try:
            from compression_eval.compressors.langchain_bridge import middleware_result
        except ImportError as error:
            raise CompressionError(
                "unsupported", f"langchain cannot be imported ({error}); {lacking(*_EXTRA)}"
            ) from error
        return await middleware_result(
            model, messages, self.keep, self.trim_tokens_to_summarize, self.prompt
        )
