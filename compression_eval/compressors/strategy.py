"""Base classes of our own strategies: checked keyword arguments."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal, TypeVar, dataclass_transform

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo
from pydantic import ConfigDict, Field, NonNegativeInt, PositiveInt
from pydantic.dataclasses import dataclass

from compression_eval.fixtures.cuts import TAIL_TOKENS

Text = Annotated[str, Field(min_length=1)]
"""A text that must not be empty."""

_Kind = TypeVar("_Kind")


@dataclass_transform(kw_only_default=True, field_specifiers=(Field,))
def strategy(kind: type[_Kind]) -> type[_Kind]:
    """Make the fields of a class its keyword arguments, checked on construction.

    ``compression-eval compressors list`` shows the text below a field.
    """
    config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    decorated: Any = dataclass(kind, kw_only=True, eq=False, config=config)
    return decorated  # type: ignore[no-any-return]


@strategy
class Strategy(CompactionStrategy):
    """Base of our strategies; Inspect's agents accept them like Inspect's own.

    They never warn the model of a compression (``memory``): agents have different tools, so results
    are only comparable without a warning. Their ``compact`` returns the new messages, and the one
    that an agent adds to its history, if there is one; it raises `CompressionError` where there is
    nothing to compress and where a model's reply cannot be used.
    """

    kind: ClassVar[Literal["summary", "edit", "trim"]] = "summary"

    summary: ClassVar[str]
    """What it does, in one line, for those that have a name."""
    calls_model: ClassVar[bool] = True
    exempt: ClassVar[bool] = False
    readable: ClassVar[bool] = True
    check_model: ClassVar[Any] = None
    unsupported: ClassVar[Any] = None
    borrowed: ClassVar[Any] = None
    """These six are explained by `spec.Compressor`."""

    threshold: int | float = 0.9
    """When an agent that uses this strategy compresses; see Inspect."""

    def __post_init__(self) -> None:
        super().__init__(type=self.kind, threshold=self.threshold, memory=False)

    def _repr_params_(self) -> dict[str, Any]:
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        return super()._repr_params_() | kept


@strategy
class WindowStrategy(Strategy):
    """A strategy that keeps the start and the end of a conversation verbatim."""

    head_tokens: NonNegativeInt = 0
    """Tokens kept at the start, beyond the system prompt."""
    tail_tokens: NonNegativeInt = TAIL_TOKENS
    """Tokens kept at the end; with a budget above 0 at least the last turn is kept."""
    target_tokens: PositiveInt | None = None
    """Wanted tokens of the whole state, system prompt included; it is filled as far as it goes.
    With it, ``tail_tokens`` (and ``summary_tokens``, where there is a summary) are no longer
    budgets: only their proportion counts, by which the target is divided. ``tail`` gives all of it
    to the tail."""


def carried(messages: Sequence[ChatMessage], key: str) -> tuple[Any, list[ChatMessage]]:
    """Return what an earlier compression left for the next one, and the messages without that.

    Args:
        messages: A conversation.
        key: Metadata key of the messages that an earlier compression wrote.

    Returns:
        The newest value of the key, or None; and the messages that do not have it.
    """
    values = [(message.metadata or {}).get(key) for message in messages]
    newest = next((value for value in reversed(values) if value is not None), None)
    return newest, [m for m in messages if key not in (m.metadata or {})]


class WrappedStrategy(CompactionStrategy):
    """A strategy around another; subclasses change the result in ``compact_outcome``.

    Args:
        inner: The strategy that compresses.
    """

    def __init__(self, inner: CompactionStrategy) -> None:
        super().__init__(type=inner.type, threshold=inner.threshold, memory=inner.memory)
        self.inner = inner

    @property
    def preserve_prefix(self) -> bool:
        """The inner strategy's own value."""
        return self.inner.preserve_prefix

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation; see ``compact_outcome``."""
        result = await self.compact_outcome(model, messages, tools)
        return result.input, result.message
