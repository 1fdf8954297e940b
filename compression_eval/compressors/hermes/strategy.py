"""Hermes' context compressor as a strategy: its own code, called as it is published.

Source: ``agent/context_compressor.py`` of the ``hermes-agent`` package (Nous Research, MIT). The
package pins libraries that ours cannot live with, so it runs in a process of its own and talks to
us over JSON and a loopback endpoint.
"""

from datetime import date
from typing import Any

import anyio
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo
from inspect_ai.util import LimitExceededError
from pydantic import Field, JsonValue, field_validator

from compression_eval.compressors.arguments import Arguments
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.hermes.child import WorkerReply, run_worker
from compression_eval.compressors.hermes.endpoint import Address, chat_endpoint
from compression_eval.compressors.hermes.forwarding import MODEL_NAME, Forwarder
from compression_eval.compressors.hermes.interpreter import DEFAULT_VERSION, find_interpreter
from compression_eval.compressors.hermes.messages import (
    earlier_compressions,
    from_hermes,
    to_hermes,
)
from compression_eval.compressors.hermes.outcome import check_outcome
from compression_eval.compressors.spec import Compressor
from compression_eval.fixtures.errors import DataError

VERSION_PATTERN = r"^\d+(\.\d+){0,3}((a|b|rc|\.post|\.dev)\d+)?$"
"""A release as package indexes write it; it becomes a folder name."""

_OURS = frozenset(
    {
        "model",
        "base_url",
        "api_key",
        "provider",
        "api_mode",
        "config_context_length",
        "summary_model_override",
        "quiet_mode",
    }
)
_OF_OTHER_VERSIONS = frozenset(
    {
        "abort_on_summary_failure",
        "max_tokens",
        "model_thresholds",
        "threshold_tokens_cap",
        "min_tail_user_messages",
        "tail_mode",
    }
)
"""Constructor arguments that some versions take; where they are not taken, they are left out."""


class HermesArguments(Arguments):
    """What Hermes' compressor is told."""

    version: str = Field(default=DEFAULT_VERSION, pattern=VERSION_PATTERN)
    """Version of ``hermes-agent``; each has to be installed once."""
    python: str | None = Field(default=None, min_length=1)
    """An interpreter of yours that can import Hermes, in place of an installed version."""
    focus_topic: str | None = Field(default=None, min_length=1)
    """A topic that deserves the most room; without one, Hermes may derive its own."""
    context_length: int = Field(default=200_000, gt=0)
    """The context window in tokens that Hermes' own budgets are shares of."""
    constructor: dict[str, JsonValue] = Field(default_factory=dict)
    """More arguments of ``ContextCompressor``, such as ``protect_last_n``."""
    timeout: float = Field(default=300, gt=0)
    """Seconds that Hermes may take; the model calls do not count."""
    today: date = date(2026, 9, 1)
    """The date that newer versions put into their prompt: fixed, so that a prompt is the same
    tomorrow."""

    @field_validator("constructor")
    @classmethod
    def _no_wiring(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Refuse what this strategy has to set itself."""
        if taken := sorted(_OURS & set(value)):
            raise ValueError(f"{', '.join(taken)}: set by the strategy itself")
        return value


class HermesCompaction(CompactionStrategy):
    """Compress with Hermes' ``ContextCompressor``.

    Args:
        arguments: Version, focus and budgets.
        threshold: When an agent that uses this strategy compresses; see Inspect.

    Raises:
        DataError: No interpreter has that version (the text says how to get one), or its
            compressor has no such constructor argument.
    """

    def __init__(self, arguments: HermesArguments, *, threshold: int | float = 0.9) -> None:
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.arguments = arguments
        self.python, description = find_interpreter(arguments.version, arguments.python)
        known = _OF_OTHER_VERSIONS | set(description.constructor)
        if unknown := sorted(set(arguments.constructor) - known):
            taken = ", ".join(name for name in description.constructor if name not in _OURS)
            raise DataError(
                f"hermes: constructor: {', '.join(unknown)}: no such argument of Hermes "
                f"{description.version}, which takes {taken}"
            )

    async def compact(
        self,
        model: Model,
        messages: list[ChatMessage],
        tools: list[ToolInfo],  # noqa: ARG002
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation in Hermes' own process.

        Args:
            model: Answers the requests that Hermes makes.
            messages: The conversation, perhaps compressed by Hermes before.
            tools: Not used.

        Returns:
            What Hermes left, and None: its summary may be part of another message.

        Raises:
            CompressionError: Hermes failed, or says itself that it did not compress.
            LimitExceededError: A limit of the sample was hit.
        """
        sent = await to_hermes(messages)
        earlier = earlier_compressions(messages)
        limit = anyio.move_on_after(self.arguments.timeout)
        forwarder = Forwarder(model, limit)
        try:
            reply = await self._exchange(forwarder, limit, sent, earlier)
            transcript().info(_report(reply), source="hermes")
        except LimitExceededError:
            raise
        except Exception:
            # Whatever Hermes does when its model cannot be reached is no failure of Hermes.
            if forwarder.outage is None:
                raise
        if forwarder.outage:
            raise forwarder.outage
        check_outcome(reply, forwarder.error, forwarder.refused)
        return await from_hermes(reply.messages, sent, messages, earlier + 1), None

    async def _exchange(
        self,
        forwarder: Forwarder,
        limit: anyio.CancelScope,
        sent: list[dict[str, Any]],
        earlier: int,
    ) -> WorkerReply:
        """Run the worker, and answer its model calls in this very task's context."""
        with limit:
            try:
                async with chat_endpoint(forwarder.answer) as address:
                    request = self._request(sent, earlier, address)
                    return await run_worker(self.python, request)
            except BaseExceptionGroup as group:
                raise _the_one(group) from None
        raise CompressionError(
            "error", f"Hermes took longer than {self.arguments.timeout:g} seconds"
        )

    def _request(
        self, sent: list[dict[str, Any]], earlier: int, address: Address
    ) -> dict[str, Any]:
        arguments = self.arguments
        return {
            "action": "compress",
            "messages": sent,
            "earlier": earlier,
            "today": arguments.today.isoformat(),
            "constructor": {
                **arguments.constructor,
                "model": MODEL_NAME,
                # Otherwise Hermes may look for another model and window in its configuration.
                "summary_model_override": MODEL_NAME,
                "config_context_length": arguments.context_length,
                "provider": "custom",
                "base_url": address.base_url,
                "api_key": address.api_key,
                "api_mode": "chat_completions",
                "quiet_mode": True,
            },
            "compress": {"focus_topic": arguments.focus_topic},
        }


def _the_one(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that counts of those that tasks raised together.

    A limit of the sample comes first; then our own kind of failure; then whatever there is.
    """
    kinds: tuple[type[BaseException], ...] = (LimitExceededError, CompressionError, BaseException)
    for kind in kinds:
        found: Any = group.subgroup(kind)
        while isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        if found is not None:
            return found  # type: ignore[no-any-return]
    return group


def _report(reply: WorkerReply) -> dict[str, Any]:
    """Return what the transcript shows of a call, beside its messages."""
    shown = reply.model_dump(mode="json", exclude={"messages"})
    shown["messages"] = len(reply.messages)
    return shown


COMPRESSOR: Compressor[HermesArguments] = Compressor(
    "hermes",
    "Hermes' own ContextCompressor, in an interpreter of its own",
    HermesArguments,
    HermesCompaction,
    calls_model=True,
)
