"""The registry of strategies, and checked specs from a name and arguments."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from inspect_ai.model import CompactionEdit, CompactionSummary, CompactionTrim
from pydantic import ValidationError

from compression_eval.compressors.anchored import AnchoredCompaction
from compression_eval.compressors.artifacts import SUFFIX, with_artifacts
from compression_eval.compressors.claude_code import ClaudeCodeCompaction
from compression_eval.compressors.clear_tools import ClearToolsCompaction
from compression_eval.compressors.codex import CodexCompaction
from compression_eval.compressors.controls import FullContext, NoContext, TailOnly
from compression_eval.compressors.hermes.strategy import HermesCompaction
from compression_eval.compressors.inspect_own import (
    EditArguments,
    SummaryArguments,
    TrimArguments,
    inspects_own,
)
from compression_eval.compressors.langchain import LangChainCompaction
from compression_eval.compressors.masking import MaskingCompaction
from compression_eval.compressors.openhands import OpenHandsCompaction
from compression_eval.compressors.pi import PiCompaction
from compression_eval.compressors.pointers import PointersCompaction
from compression_eval.compressors.recorded import RecordedState, unsupported
from compression_eval.compressors.references import ReferencesCompaction
from compression_eval.compressors.regenerative import RegenerativeCompaction
from compression_eval.compressors.spec import Compressor, CompressorSpec, compressor
from compression_eval.compressors.user_supplied.adapting import user_compressor
from compression_eval.compressors.user_supplied.command import CommandCompaction
from compression_eval.compressors.vendors.anthropic import (
    AnthropicClearToolsCompaction,
    AnthropicEditCompaction,
    AnthropicNativeCompaction,
    AnthropicTextCompaction,
)
from compression_eval.compressors.vendors.anthropic_api import (
    require_client,
    require_client_that_answers,
)
from compression_eval.compressors.vendors.openai import OpenAICompaction, require_responses
from compression_eval.errors import DataError, did_you_mean

_code = partial(compressor, calls_model=False)
_model = partial(compressor, calls_model=True)


_ENTRIES = {
    "full": _code(FullContext, "control: keeps everything", exempt=True),
    "none": _code(NoContext, "control: keeps the system prompt only", exempt=True),
    "tail": _code(
        TailOnly, "control: keeps what a summarising arm keeps verbatim, without its summary"
    ),
    "anchored": _model(
        AnchoredCompaction,
        "persistent sectioned memory; only the dropped span is summarised, code merges",
    ),
    "regenerative": _model(
        RegenerativeCompaction, "the whole summary is written anew at each compression"
    ),
    "summary": inspects_own(
        CompactionSummary, SummaryArguments, "Inspect's CompactionSummary", calls_model=True
    ),
    "edit": inspects_own(
        CompactionEdit,
        EditArguments,
        "Inspect's CompactionEdit: older tool results and thinking are cleared",
    ),
    "trim": inspects_own(
        CompactionTrim,
        TrimArguments,
        "Inspect's CompactionTrim: the newest share of the messages is kept",
    ),
    "pointers": _model(
        PointersCompaction,
        "a summary, and for each file, decision and failed attempt the messages that hold it",
    ),
    "references": _code(
        ReferencesCompaction,
        "what is removed becomes a list of its messages, by number, tool and path or command",
    ),
    "masking": _code(
        MaskingCompaction,
        "tool results but for the last few become a note with their number of lines",
    ),
    "clear-tools": _code(
        ClearToolsCompaction,
        "Anthropic's tool clearing done locally: all but the newest tool results go",
    ),
    "claude-code": _model(
        ClaudeCodeCompaction, "Claude Code's summary in nine sections, then the files used last"
    ),
    "codex": _model(
        CodexCompaction,
        "Codex CLI's local compaction: recent user messages, then a handoff summary",
    ),
    "pi": _model(
        PiCompaction,
        "Pi's compaction: recent tokens, an updated summary, lists of files kept by code",
    ),
    "openhands": _model(
        OpenHandsCompaction,
        "OpenHands' summarising condenser: first and last events kept, the range between "
        "summarised",
    ),
    "langchain": _model(
        LangChainCompaction,
        "LangChain's SummarizationMiddleware as it is; by default it reads the last 4,000 "
        "tokens only",
    ),
    "hermes": _model(
        HermesCompaction, "Hermes' own ContextCompressor, in an interpreter of its own"
    ),
    "openai-compact": _model(
        OpenAICompaction,
        "OpenAI's /responses/compact: user messages and one encrypted item",
        check_model=require_responses,
        readable=False,
    ),
    "anthropic-edit": _model(
        AnthropicEditCompaction,
        "Anthropic's threshold edit compact_20260112: the server's block stands for everything",
        check_model=require_client_that_answers,
    ),
    "anthropic-native": _model(
        AnthropicNativeCompaction,
        "Anthropic's compaction on demand; its signed block is sent back",
        check_model=require_client_that_answers,
    ),
    "anthropic-text-projection": _model(
        AnthropicTextCompaction,
        "Anthropic's compaction on demand; its summary as text, for any model",
        check_model=require_client,
    ),
    "anthropic-clear-tools": _model(
        AnthropicClearToolsCompaction,
        "Anthropic's clear_tool_uses_20250919: the server says which old tool results go",
        check_model=require_client,
    ),
    "command": _code(
        CommandCompaction, "yours: a program that reads messages as JSON and writes them"
    ),
    "recorded": _code(
        RecordedState,
        "what the recorded agent's own compaction left, at the cuts where it happened",
        unsupported=unsupported,
    ),
}

COMPRESSORS: Mapping[str, Compressor] = {
    name: replace(entry, name=name) for name, entry in _ENTRIES.items()
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
        suffix = SUFFIX if name.endswith(SUFFIX) else ""
        raise DataError(
            f"compressor: unknown strategy {name!r}, expected one of {', '.join(COMPRESSORS)}"
            + did_you_mean(name, [known + suffix for known in COMPRESSORS])
        )
    try:
        spec = CompressorSpec(strategy, strategy.arguments.model_validate(dict(arguments or {})))
        spec.build()  # raises here, before anything is paid for, if it cannot be built
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        for detail in details:
            if isinstance(cause := detail.get("ctx", {}).get("error"), DataError):
                raise cause from None
        problems = "; ".join(
            f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
            for detail in details
        )
        known = ", ".join(strategy.arguments.model_fields) or "none"
        raise DataError(
            f"compressor_args of {strategy.name!r}: {problems} (arguments it takes: {known})"
        ) from error
    return spec
