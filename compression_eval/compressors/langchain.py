"""LangChain's ``SummarizationMiddleware``, unmodified, with the compressor model behind it.

The package is not a dependency; it is imported when the strategy is first used. The prompt is
LangChain's own, unless it is replaced.
"""

from importlib.util import find_spec
from typing import Literal

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo
from pydantic import Field, PositiveInt

from compression_eval.compressors.arguments import Arguments
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.spec import Compressor
from compression_eval.fixtures.errors import DataError

_INSTALL = "pip install 'compression_eval[langchain]'"


class LangChainArguments(Arguments):
    """The middleware's parameters, with its defaults."""

    keep: tuple[Literal["messages", "tokens"], PositiveInt] = ("messages", 20)
    """What is kept at the end: a number of messages, or of tokens as LangChain estimates them."""
    trim_tokens_to_summarize: int | None = Field(default=4_000, gt=0)
    """Tokens that the model is shown of what is removed, the newest; null for all.

    The default hides most of a long conversation from the model, and all of it where the last user
    message lies further back: then LangChain calls no model and puts a fixed sentence.
    """
    prompt: str | None = Field(default=None, min_length=1)
    """Text that replaces LangChain's prompt; the messages follow it."""


class LangChain(CompactionStrategy):
    """Have LangChain's middleware compress a conversation.

    Args:
        arguments: The middleware's parameters.
        threshold: When an agent that uses this strategy compresses; see Inspect.

    Raises:
        DataError: LangChain is not installed.
    """

    def __init__(self, arguments: LangChainArguments, *, threshold: int | float = 0.9) -> None:
        if find_spec("langchain") is None:
            raise DataError(f"compressor: langchain is not installed; {_INSTALL}")
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.arguments = arguments

    async def compact(
        self,
        model: Model,
        messages: list[ChatMessage],
        tools: list[ToolInfo],  # noqa: ARG002
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation with one model call.

        Args:
            model: Writes the summary.
            messages: The conversation, perhaps with the summary of an earlier compression.
            tools: Not used.

        Returns:
            System messages, summary, last messages; and the message with the summary.

        Raises:
            CompressionError: LangChain is not installed, did nothing, called no model, or got no
                usable reply.
        """
        try:
            from compression_eval.compressors.langchain_bridge import middleware_result
        except ImportError as error:
            raise CompressionError(
                "unsupported", f"langchain cannot be imported ({error}); {_INSTALL}"
            ) from error
        return await middleware_result(
            model,
            messages,
            self.arguments.keep,
            self.arguments.trim_tokens_to_summarize,
            self.arguments.prompt,
        )


COMPRESSOR = Compressor(
    "langchain",
    "LangChain's SummarizationMiddleware as it is; by default it reads the last 4,000 tokens only",
    LangChainArguments,
    LangChain,
    calls_model=True,
)
