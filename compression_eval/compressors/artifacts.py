"""A wrapper for any strategy that keeps an index of the session's files beside its summary.

Every published method is weakest at saying which files were created, modified and read. The tool
calls say it exactly, so code can keep it, without a model and without loss from cycle to cycle.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    CompactionResult,
    CompactionStrategy,
    ContentText,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import Field, ValidationError, create_model

from compression_eval.compressors.arguments import Arguments
from compression_eval.compressors.artifact_index import ArtifactIndex
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.spec import Compressor, CompressorSpec
from compression_eval.compressors.tokens import is_opaque, message_text, token_counter
from compression_eval.compressors.validity import structural_problem
from compression_eval.compressors.vendors.anthropic_messages import BLOCK
from compression_eval.compressors.window import groups
from compression_eval.fixtures.models import Fixture

SUFFIX = "+artifacts"
"""What is written after a strategy's name to wrap it."""

_KEY = "compression_eval_artifacts"
_DEFAULT_TOKENS = 800
_BUDGET = "index_tokens"
_TARGET = "target_tokens"
_FRAME = 5
"""Tokens that the index takes beside its text: a blank line, or a message of its own."""


class ArtifactIndexCompaction(CompactionStrategy):
    """Run another strategy, then add the index to what it left.

    The index is read from every tool call that the strategy was given, merged by code with that of
    the compression before, and kept in the metadata of the message that shows it. The inner
    strategy never sees it: what an earlier compression added is taken off first.

    Args:
        inner: The strategy that compresses.
        index_tokens: Budget of the index in tokens.
        always: Whether to add the index even if the inner strategy changed nothing or left nothing
            but the system prompt, as controls may.
        leaving_room: Makes the inner strategy anew, with so many tokens less in its target; given
            where the state as a whole has one.
    """

    def __init__(
        self,
        inner: CompactionStrategy,
        index_tokens: int = _DEFAULT_TOKENS,
        *,
        always: bool = False,
        leaving_room: Callable[[int], CompactionStrategy] | None = None,
    ) -> None:
        super().__init__(type=inner.type, threshold=inner.threshold, memory=inner.memory)
        self.inner = inner
        self.index_tokens = index_tokens
        self.always = always
        self.leaving_room = leaving_room

    @property
    def preserve_prefix(self) -> bool:
        """The inner strategy's own rule."""
        return self.inner.preserve_prefix

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation; see `compact_outcome`."""
        result = await self.compact_outcome(model, messages, tools)
        return result.input, result.message

    async def compact_outcome(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> CompactionResult:
        """Compress a conversation with the inner strategy and add the index.

        Args:
            model: For the inner strategy.
            messages: The conversation, perhaps with the index of an earlier compression.
            tools: For the inner strategy.

        Returns:
            The inner result with the index in its summary message, or in a message of its own
            after what was rewritten. A result that is unchanged, empty or broken in structure is
            passed on as it is, so that the validity gate still sees it.
        """
        plain = [message for message in map(_without_index, messages) if message is not None]
        index = _index_of(messages).merged(plain)
        count = token_counter().count
        text = index.render(self.index_tokens, count)
        inner = self.leaving_room(count(text) + _FRAME) if self.leaving_room else self.inner
        result = await inner.compact_outcome(model, list(plain), tools)
        if not self.always and _is_no_state(plain, result.input):
            return result
        return _with_index(plain, result, index, text)


def with_artifacts(compressor: Compressor[Any]) -> Compressor[Any]:
    """Return the entry ``NAME+artifacts`` for a strategy: its arguments and ``index_tokens``."""
    inner_type = compressor.arguments
    arguments = create_model(
        f"{inner_type.__name__}WithArtifacts",
        __base__=inner_type,
        index_tokens=(
            int,
            Field(
                default=_DEFAULT_TOKENS,
                gt=0,
                description="Most tokens of the artifact index: on top of the other budgets, "
                "within target_tokens.",
            ),
        ),
    )

    def inner(
        given: Arguments, less: int = 0, fixture: Fixture | None = None
    ) -> CompactionStrategy:
        names = given.model_fields_set - {_BUDGET}
        own = {name: getattr(given, name) for name in names}
        if less:
            own[_TARGET] -= less
        try:
            return CompressorSpec(compressor, inner_type.model_validate(own)).build(fixture)
        except ValidationError as error:
            raise CompressionError(
                "error", f"{_TARGET} is too small: the artifact index alone takes {less}"
            ) from error

    def build(given: Arguments, fixture: Fixture | None = None) -> CompactionStrategy:
        has_target = getattr(given, _TARGET, None) is not None
        return ArtifactIndexCompaction(
            inner(given, fixture=fixture),
            getattr(given, _BUDGET),
            always=compressor.exempt,
            leaving_room=(lambda less: inner(given, less, fixture)) if has_target else None,
        )

    per_fixture = compressor.per_fixture

    return replace(
        compressor,
        name=compressor.name + SUFFIX,
        summary=f"{compressor.summary}; with an index of the files, read from the tool calls",
        arguments=arguments,
        build=build,
        per_fixture=replace(per_fixture, build=build) if per_fixture else None,
    )


def _index_of(messages: list[ChatMessage]) -> ArtifactIndex:
    """Return the index that an earlier compression left; an empty one if there was none."""
    for message in reversed(messages):
        kept = (message.metadata or {}).get(_KEY)
        if kept is not None:
            return ArtifactIndex.model_validate(kept["index"])
    return ArtifactIndex()


def _without_index(message: ChatMessage) -> ChatMessage | None:
    """Return a message as it was before an index was added; None for one that is index alone."""
    kept = (message.metadata or {}).get(_KEY)
    if kept is None or not isinstance(message, ChatMessageUser):
        return message
    if kept["alone"]:
        return None
    content = message.content
    if isinstance(content, str):
        plain: Any = content.removesuffix(_section(kept["text"]))
    else:
        plain = content[:-1]
    metadata = {key: value for key, value in (message.metadata or {}).items() if key != _KEY}
    return message.model_copy(update={"content": plain, "metadata": metadata or None})


def _section(text: str) -> str:
    return f"\n\n{text}"


def _is_no_state(before: list[ChatMessage], after: list[ChatMessage]) -> bool:
    """Return whether a result is empty, unchanged or broken, which an index must not hide."""
    if all(message.role == "system" for message in after):
        return True
    if [message_text(m) for m in before] == [message_text(m) for m in after]:
        return True
    return structural_problem(after, before) is not None


def _with_index(
    before: list[ChatMessage], result: CompactionResult, index: ArtifactIndex, text: str
) -> CompactionResult:
    kept = {"index": index.model_dump(mode="json"), "text": text}
    messages = list(result.input)
    carrier = _carrier(before, messages)
    if carrier is None:
        alone = ChatMessageUser(content=text, metadata={_KEY: {**kept, "alone": True}})
        messages.insert(_place(before, messages), alone)
        return result._replace(input=messages, message=result.message or alone)
    old = messages[carrier]
    content = old.content
    extended: Any = (
        content + _section(text) if isinstance(content, str) else [*content, ContentText(text=text)]
    )
    metadata = {**(old.metadata or {}), _KEY: {**kept, "alone": False}}
    new = old.model_copy(update={"content": extended, "metadata": metadata})
    messages[carrier] = new
    # The message that goes into an agent's history has to be the one in the state.
    same = result.message is not None and result.message.id == old.id
    message = new if same and isinstance(new, ChatMessageUser) else result.message
    return result._replace(input=messages, message=message)


def _rewritten(before: list[ChatMessage], after: list[ChatMessage]) -> list[int]:
    """Return the positions of messages that the inner strategy wrote or changed."""
    texts = {message.id: message_text(message) for message in before}
    return [
        position
        for position, message in enumerate(after)
        if message.role != "system" and texts.get(message.id) != message_text(message)
    ]


def _carrier(before: list[ChatMessage], after: list[ChatMessage]) -> int | None:
    """Return the position of the user message that the inner strategy wrote last, if any."""
    known = {message.id for message in before}
    for position in reversed(_rewritten(before, after)):
        message = after[position]
        if message.role == "user" and message.id not in known:
            return None if _is_vendors(message) else position
    return None


def _is_vendors(message: ChatMessage) -> bool:
    """Return whether a message stands for a vendor's item, which must go back as it came."""
    if is_opaque(message) or BLOCK in (message.metadata or {}):
        return True
    parts = [] if isinstance(message.content, str) else message.content
    return not all(isinstance(part, ContentText) for part in parts)


def _place(before: list[ChatMessage], after: list[ChatMessage]) -> int:
    """Return where a message of its own goes: after what was rewritten, else after the head.

    It never parts a call from its result.
    """
    rewritten = _rewritten(before, after)
    if rewritten:
        least = rewritten[-1] + 1
    else:
        least = 0
        while least < min(len(before), len(after)) and after[least].id == before[least].id:
            least += 1
    position = 0
    for group in groups(after):
        if position >= least:
            break
        position += len(group)
    return position
