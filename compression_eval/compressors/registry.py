"""The registry of strategies, and checked specs from a name and arguments."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from compression_eval.compressors.anchored import AnchoredCompaction
from compression_eval.compressors.artifacts import with_artifacts
from compression_eval.compressors.claude_code import ClaudeCodeCompaction
from compression_eval.compressors.clear_tools import ClearToolsCompaction
from compression_eval.compressors.codex import CodexCompaction
from compression_eval.compressors.controls import FullContext, NoContext, TailOnly
from compression_eval.compressors.hermes.strategy import HermesCompaction
from compression_eval.compressors.inspect_own import INSPECTS_OWN
from compression_eval.compressors.langchain import LangChainCompaction
from compression_eval.compressors.masking import MaskingCompaction
from compression_eval.compressors.names import SUFFIX
from compression_eval.compressors.openhands import OpenHandsCompaction
from compression_eval.compressors.pi import PiCompaction
from compression_eval.compressors.recorded import RecordedState
from compression_eval.compressors.regenerative import RegenerativeCompaction
from compression_eval.compressors.spec import Compressor, CompressorSpec, compressor
from compression_eval.compressors.strategy import Strategy
from compression_eval.compressors.user_supplied.adapting import user_compressor
from compression_eval.compressors.user_supplied.command import CommandCompaction
from compression_eval.compressors.vendors.anthropic import (
    AnthropicClearToolsCompaction,
    AnthropicEditCompaction,
    AnthropicNativeCompaction,
    AnthropicTextCompaction,
)
from compression_eval.compressors.vendors.openai import OpenAICompaction
from compression_eval.errors import DataError, did_you_mean, shorten

_STRATEGIES: dict[str, type[Strategy] | Compressor] = {
    "full": FullContext,
    "none": NoContext,
    "tail": TailOnly,
    "anchored": AnchoredCompaction,
    "regenerative": RegenerativeCompaction,
    **INSPECTS_OWN,
    "masking": MaskingCompaction,
    "clear-tools": ClearToolsCompaction,
    "claude-code": ClaudeCodeCompaction,
    "codex": CodexCompaction,
    "pi": PiCompaction,
    "openhands": OpenHandsCompaction,
    "langchain": LangChainCompaction,
    "hermes": HermesCompaction,
    "openai-compact": OpenAICompaction,
    "anthropic-edit": AnthropicEditCompaction,
    "anthropic-native": AnthropicNativeCompaction,
    "anthropic-text-projection": AnthropicTextCompaction,
    "anthropic-clear-tools": AnthropicClearToolsCompaction,
    "command": CommandCompaction,
    "recorded": RecordedState,
}

COMPRESSORS: Mapping[str, Compressor] = {
    name: entry if isinstance(entry, Compressor) else compressor(name, entry)
    for name, entry in _STRATEGIES.items()
}
"""All strategies by name."""


def find_compressor(name: str) -> Compressor | None:
    """Return the strategy with a name; None if there is none.

    Args:
        name: A name of `COMPRESSORS`, or the user's own: ``module:name``, ``file.py@name``; with
            ``+artifacts`` after it, the strategy is wrapped by `with_artifacts`.

    Raises:
        DataError: It is the user's own, and cannot be imported or used as a strategy.
    """
    inner = name.removesuffix(SUFFIX)
    strategy = COMPRESSORS.get(inner) or user_compressor(inner)
    return with_artifacts(strategy) if strategy and inner != name else strategy


def unknown_strategy(name: str) -> DataError:
    """Return the error for a name that no strategy has."""
    suffix = SUFFIX if name.endswith(SUFFIX) else ""
    return DataError(
        f"unknown strategy {shorten(name)}"
        + did_you_mean(name, [known + suffix for known in COMPRESSORS])
        + f" (expected one of {', '.join(COMPRESSORS)})"
    )


def compressor_spec(name: str, arguments: Mapping[str, Any] | None = None) -> CompressorSpec:
    """Return a checked spec.

    Args:
        name: As `find_compressor` takes it.
        arguments: Arguments by name; defaults fill the rest.

    Raises:
        DataError: The name is unknown, or an argument is unknown or out of range.
    """
    strategy = find_compressor(name)
    if strategy is None:
        raise DataError(f"compressor: {unknown_strategy(name)}")
    try:
        spec = CompressorSpec(strategy, strategy.arguments.model_validate(dict(arguments or {})))
        spec.build()  # raises here, before anything is paid for, if it cannot be built
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        for detail in details:
            if isinstance(cause := detail.get("ctx", {}).get("error"), DataError):
                raise cause from None
        named = [".".join(map(str, detail["loc"])) for detail in details]
        known = list(strategy.arguments.model_fields)
        problems = "; ".join(
            f"it takes no {name}{did_you_mean(name, known)}{_spaced(name)}"
            if detail["type"] == "extra_forbidden"
            else f"{name}: {detail['msg']}"
            for name, detail in zip(named, details, strict=True)
        )
        raise DataError(
            f"compressor_args of {strategy.name!r}: {problems} "
            f"(arguments it takes: {', '.join(known) or 'none'})"
        ) from error
    return spec


def _spaced(name: str) -> str:
    """Return a hint where YAML took ``name:value`` for a name."""
    return " (YAML wants a space after the colon)" if ":" in name else ""
