"""Hermes' context compressor as a strategy: its published code, unmodified.

Source: ``agent/context_compressor.py`` of the ``hermes-agent`` package (Nous Research, MIT). The
package pins libraries that conflict with ours, so it runs in a process of its own and exchanges
lines of JSON with us.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, ClassVar, cast

from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    Model,
    messages_from_openai,
    messages_to_openai,
)
from inspect_ai.tool import ToolInfo
from pydantic import AfterValidator, Field, JsonValue, PositiveFloat, PositiveInt

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.hermes.answering import MODEL_NAME, Answerer
from compression_eval.compressors.hermes.exchange import WorkerReply, run_worker
from compression_eval.compressors.hermes.interpreter import (
    DEFAULT_VERSION,
    VERSION_PATTERN,
    find_interpreter,
)
from compression_eval.compressors.strategy import Strategy, Text, strategy
from compression_eval.errors import DataError

_EXTRAS = "hermes_extras"
"""Metadata key of Hermes' own fields of a message, which it gets back."""
_COMPRESSIONS = "hermes_compressions"
"""Metadata key of rewritten messages: the number of compressions so far."""

_CHAT_FORM = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "refusal"})

_OURS = frozenset(
    {
        *("model", "base_url", "api_key", "provider", "api_mode", "config_context_length"),
        *("summary_model_override", "quiet_mode"),
    }
)
"""Constructor arguments that this strategy sets itself."""

_OF_OTHER_VERSIONS = frozenset(
    {
        *("abort_on_summary_failure", "max_tokens", "model_thresholds", "threshold_tokens_cap"),
        *("min_tail_user_messages", "tail_mode"),
    }
)
"""Constructor arguments that only some versions take; left out for the others."""


def _no_wiring(constructor: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if taken := sorted(_OURS & set(constructor)):
        raise ValueError(f"{', '.join(taken)}: set by the strategy itself")
    return constructor


def _version_used(given: Any) -> str:
    """Return the version of Hermes: an interpreter of the user's own may hold another one."""
    return find_interpreter(given.version, given.python)[1].version


@strategy
class HermesCompaction(Strategy):
    """Compress with Hermes' ``ContextCompressor``.

    Raises:
        ValueError: No interpreter has that version (the text says how to get one), or its
            compressor has no such constructor argument.
    """

    summary = "Hermes' own ContextCompressor, in an interpreter of its own"
    borrowed: ClassVar[Any] = staticmethod(_version_used)

    version: Annotated[str, Field(pattern=VERSION_PATTERN)] = DEFAULT_VERSION
    """Version of ``hermes-agent``; each has to be installed once."""
    python: Text | None = None
    """An interpreter of yours that can import Hermes, in place of an installed version."""
    focus_topic: Text | None = None
    """A topic that deserves the most room; without one, Hermes may derive its own."""
    context_length: PositiveInt = 200_000
    """The context window in tokens that Hermes' own budgets are shares of."""
    constructor: Annotated[dict[str, JsonValue], AfterValidator(_no_wiring)] = Field(
        default_factory=dict
    )
    """More arguments of ``ContextCompressor``, such as ``protect_last_n``."""
    timeout: PositiveFloat = 300
    """Seconds that Hermes may take; the model calls do not count."""
    today: date = date(2026, 9, 1)
    """The date that newer versions put into their prompt: fixed, so that a prompt is the same
    tomorrow."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.interpreter, description = find_interpreter(self.version, self.python)
        known = _OF_OTHER_VERSIONS | set(description.constructor)
        if unknown := sorted(set(self.constructor) - known):
            taken = ", ".join(name for name in description.constructor if name not in _OURS)
            raise DataError(
                f"hermes: constructor: {', '.join(unknown)}: no such argument of Hermes "
                f"{description.version}, which takes {taken}"
            )

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return Hermes' result, and None: its summary may be part of another message.

        Raises:
            CompressionError: Hermes failed, or says itself that it did not compress.
            LimitExceededError: A limit of the sample was hit.
        """
        sent = await _to_hermes(messages)
        earlier = max((int((m.metadata or {}).get(_COMPRESSIONS, 0)) for m in messages), default=0)
        request = {
            "action": "compress",
            "messages": sent,
            "earlier": earlier,
            "today": self.today.isoformat(),
            "constructor": {
                **self.constructor,
                "model": MODEL_NAME,
                # Otherwise Hermes may look for another model and window in its configuration.
                "summary_model_override": MODEL_NAME,
                "config_context_length": self.context_length,
                "provider": "custom",
                "api_mode": "chat_completions",
                "quiet_mode": True,
            },
            "compress": {"focus_topic": self.focus_topic},
        }
        answerer = Answerer(model)
        reply = await run_worker(self.interpreter, request, answerer.answer, self.timeout)
        report = reply.model_dump(mode="json", exclude={"messages"})
        transcript().info({**report, "messages": len(reply.messages)}, source="hermes")
        _check_outcome(reply, answerer)
        return await _from_hermes(reply.messages, sent, messages, earlier + 1), None


def _check_outcome(reply: WorkerReply, answerer: Answerer) -> None:
    """Raise if a call of Hermes' compressor did not compress.

    It may have given up, used a substitute for a summary, or found nothing to compress; or its
    summary is a refusal. Not every version has every flag; a missing one means nothing.
    """
    flags = reply.flags
    cause = answerer.error or str(flags.get("_last_summary_error") or "no reason given")
    if flags.get("_last_compress_aborted"):
        raise CompressionError("aborted", f"Hermes gave up and kept the conversation: {cause}")
    if flags.get("_last_summary_fallback_used"):
        dropped = flags.get("_last_summary_dropped_count")
        raise CompressionError(
            "fallback",
            f"Hermes dropped {dropped} messages for a fixed text instead of a summary: {cause}",
        )
    if flags.get("_last_compression_made_progress") is False or reply.compressions == 0:
        tail = reply.budgets.get("tail_token_budget")
        raise CompressionError(
            "not_applied",
            f"Hermes found nothing to summarise (its own budget for the tail: {tail} tokens)",
        )
    if answerer.refused:
        raise CompressionError("aborted", "the summarising model refused")


async def _to_hermes(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return messages as OpenAI chat dicts, one for one."""
    plain = [cast(dict[str, Any], dict(item)) for item in await messages_to_openai(list(messages))]
    for source, item in zip(messages, plain, strict=True):
        for call in item.get("tool_calls") or []:
            # Escapes such as \u30a8 would reach the summarising model unchanged.
            arguments = json.loads(call["function"]["arguments"])
            call["function"]["arguments"] = json.dumps(arguments, ensure_ascii=False)
        item.update((source.metadata or {}).get(_EXTRAS, {}))
    return plain


async def _from_hermes(
    returned: Sequence[Mapping[str, Any]],
    sent: Sequence[Mapping[str, Any]],
    originals: Sequence[ChatMessage],
    compressions: int,
) -> list[ChatMessage]:
    """Return Hermes' messages in our form; unchanged ones are the original objects."""
    result: list[ChatMessage] = []
    position = 0
    for item in returned:
        same = next((i for i in range(position, len(sent)) if sent[i] == item), None)
        if same is not None:
            result.append(originals[same])
            position = same + 1
            continue
        (message,) = await messages_from_openai(
            cast(Any, [{key: value for key, value in item.items() if key in _CHAT_FORM}])
        )
        extras = {key: value for key, value in item.items() if key not in _CHAT_FORM}
        metadata: dict[str, Any] = {_COMPRESSIONS: compressions}
        if extras:
            metadata[_EXTRAS] = extras
        update: dict[str, Any] = {"source": None, "metadata": metadata}
        if message.role == "system" and not result and originals[0].role == "system":
            # The system prompt with a note at its end is still the system prompt.
            update["id"] = originals[0].id
        result.append(message.model_copy(update=update))
    return result
