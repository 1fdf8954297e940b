"""LangChain's ``SummarizationMiddleware``, unmodified, with the compressor model behind it.

The package is not a dependency; it is imported when the strategy is first used. The prompt is
LangChain's own, unless it is replaced.
"""

from importlib.util import find_spec
from typing import Literal

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo
from pydantic import PositiveInt, validate_call

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.strategy import Text
from compression_eval.fixtures.errors import DataError

_INSTALL = "pip install 'compression_eval[langchain]'"


class LangChainCompaction(CompactionStrategy):
    """Have LangChain's middleware compress a conversation.

    Args:
        keep: What is kept at the end: a number of messages, or of tokens as LangChain estimates
            them.
        trim_tokens_to_summarize: Tokens that the model is shown of what is removed, the newest;
            null for all. The default hides most of a long conversation from the model, and all of
            it where the last user message lies further back: then LangChain calls no model and
            puts a fixed sentence.
        prompt: Text that replaces LangChain's prompt; the messages follow it.
        threshold: When an agent that uses this strategy compresses; see Inspect.

    Raises:
        DataError: LangChain is not installed.
    """

    @validate_call
    def __init__(
        self,
        *,
        keep: tuple[Literal["messages", "tokens"], PositiveInt] = ("messages", 20),
        trim_tokens_to_summarize: PositiveInt | None = 4_000,
        prompt: Text | None = None,
        threshold: int | float = 0.9,
    ) -> None:
        if find_spec("langchain") is None:
            raise DataError(f"compressor: langchain is not installed; {_INSTALL}")
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.keep = keep
        self.trim_tokens_to_summarize = trim_tokens_to_summarize
        self.prompt = prompt

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return system messages, summary, last messages; and the message with the summary.

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
            model, messages, self.keep, self.trim_tokens_to_summarize, self.prompt
        )
