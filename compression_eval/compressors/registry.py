"""Every strategy that has a name, and what a name with arguments stands for."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from compression_eval.compressors.anchored import AnchoredCompaction
from compression_eval.compressors.artifacts import SUFFIX, with_artifacts
from compression_eval.compressors.claude_code import ClaudeCodeCompaction
from compression_eval.compressors.clear_tools import ClearToolsCompaction
from compression_eval.compressors.codex import CodexCompaction
from compression_eval.compressors.controls import FullContext, NoContext, TailOnly
from compression_eval.compressors.hermes.strategy import HermesCompaction
from compression_eval.compressors.inspect_own import inspect_edit, inspect_summary, inspect_trim
from compression_eval.compressors.langchain import LangChainCompaction
from compression_eval.compressors.masking import MaskingCompaction
from compression_eval.compressors.openhands import OpenHandsCompaction
from compression_eval.compressors.pi import PiCompaction
from compression_eval.compressors.recorded import RecordedState, unsupported
from compression_eval.compressors.regenerative import RegenerativeCompaction
from compression_eval.compressors.spec import Compressor, CompressorSpec, compressor
from compression_eval.compressors.vendors.anthropic_api import (
    require_client,
    require_client_that_answers,
)
from compression_eval.compressors.vendors.anthropic_clear_tools import (
    AnthropicClearToolsCompaction,
)
from compression_eval.compressors.vendors.anthropic_edit import AnthropicEditCompaction
from compression_eval.compressors.vendors.anthropic_on_demand import (
    AnthropicNativeCompaction,
    AnthropicTextCompaction,
)
from compression_eval.compressors.vendors.openai_compact import (
    OpenAICompaction,
    require_responses,
)
from compression_eval.compressors.yours import user_compressor
from compression_eval.compressors.yours.command import CommandCompaction
from compression_eval.fixtures.errors import DataError, did_you_mean

COMPRESSORS: Mapping[str, Compressor] = {
    each.name: each
    for each in (
        compressor(
            "full", "control: keeps everything", FullContext, calls_model=False, exempt=True
        ),
        compressor(
            "none",
            "control: keeps the system prompt only",
            NoContext,
            calls_model=False,
            exempt=True,
        ),
        compressor(
            "tail",
            "control: keeps what a summarising arm keeps verbatim, without its summary",
            TailOnly,
            calls_model=False,
        ),
        compressor(
            "anchored",
            "persistent sectioned memory; only the dropped span is summarised, code merges",
            AnchoredCompaction,
            calls_model=True,
        ),
        compressor(
            "regenerative",
            "the whole summary is written anew at each compression",
            RegenerativeCompaction,
            calls_model=True,
        ),
        compressor("summary", "Inspect's CompactionSummary", inspect_summary, calls_model=True),
        compressor(
            "edit",
            "Inspect's CompactionEdit: older tool results and thinking are cleared",
            inspect_edit,
            calls_model=False,
        ),
        compressor(
            "trim",
            "Inspect's CompactionTrim: the newest share of the messages is kept",
            inspect_trim,
            calls_model=False,
        ),
        compressor(
            "masking",
            "tool results but for the last few become a note with their number of lines",
            MaskingCompaction,
            calls_model=False,
        ),
        compressor(
            "clear-tools",
            "Anthropic's tool clearing done locally: all but the newest tool results go",
            ClearToolsCompaction,
            calls_model=False,
        ),
        compressor(
            "claude-code",
            "Claude Code's summary in nine sections, then the files used last",
            ClaudeCodeCompaction,
            calls_model=True,
        ),
        compressor(
            "codex",
            "Codex CLI's local compaction: recent user messages, then a handoff summary",
            CodexCompaction,
            calls_model=True,
        ),
        compressor(
            "pi",
            "Pi's compaction: recent tokens, an updated summary, lists of files kept by code",
            PiCompaction,
            calls_model=True,
        ),
        compressor(
            "openhands",
            "OpenHands' summarising condenser: first and last events kept, the range between "
            "summarised",
            OpenHandsCompaction,
            calls_model=True,
        ),
        compressor(
            "langchain",
            "LangChain's SummarizationMiddleware as it is; by default it reads the last 4,000 "
            "tokens only",
            LangChainCompaction,
            calls_model=True,
        ),
        compressor(
            "hermes",
            "Hermes' own ContextCompressor, in an interpreter of its own",
            HermesCompaction,
            calls_model=True,
        ),
        compressor(
            "openai-compact",
            "OpenAI's /responses/compact: user messages and one encrypted item",
            OpenAICompaction,
            calls_model=True,
            check_model=require_responses,
            readable=False,
        ),
        compressor(
            "anthropic-edit",
            "Anthropic's threshold edit compact_20260112: the server's block stands for everything",
            AnthropicEditCompaction,
            calls_model=True,
            check_model=require_client_that_answers,
        ),
        compressor(
            "anthropic-native",
            "Anthropic's compaction on demand; its signed block is sent back",
            AnthropicNativeCompaction,
            calls_model=True,
            check_model=require_client_that_answers,
        ),
        compressor(
            "anthropic-text-projection",
            "Anthropic's compaction on demand; its summary as text, for any model",
            AnthropicTextCompaction,
            calls_model=True,
            check_model=require_client,
        ),
        compressor(
            "anthropic-clear-tools",
            "Anthropic's clear_tool_uses_20250919: the server says which old tool results go",
            AnthropicClearToolsCompaction,
            calls_model=True,
            check_model=require_client,
        ),
        compressor(
            "command",
            "yours: a program that reads messages as JSON and writes them",
            CommandCompaction,
            calls_model=False,
        ),
        compressor(
            "recorded",
            "what the recorded agent's own compaction left, at the cuts where it happened",
            RecordedState,
            calls_model=False,
            unsupported=unsupported,
        ),
    )
}
"""All strategies by name."""


def find_compressor(name: str) -> Compressor | None:
    """Return the strategy of a name; None if there is none.

    Args:
        name: A name of `COMPRESSORS`, or the user's own: ``module:name``, ``file.py@name``; with
            ``+artifacts`` after it, the strategy is wrapped by `with_artifacts`.

    Raises:
        DataError: It is the user's own, and cannot be imported or used as a strategy.
    """
    inner = name.removesuffix(SUFFIX)
    found = COMPRESSORS.get(inner) or user_compressor(inner)
    return with_artifacts(found) if found and inner != name else found


def compressor_spec(name: str, arguments: Mapping[str, Any] | None = None) -> CompressorSpec:
    """Return a checked spec.

    Args:
        name: As `find_compressor` takes it.
        arguments: Arguments by name; defaults fill the rest.

    Raises:
        DataError: The name is unknown, or an argument is unknown or out of range.
    """
    found = find_compressor(name)
    if found is None:
        suffix = SUFFIX if name.endswith(SUFFIX) else ""
        raise DataError(
            f"compressor: unknown strategy {name!r}, expected one of {', '.join(COMPRESSORS)}"
            + did_you_mean(name, [known + suffix for known in COMPRESSORS])
        )
    try:
        spec = CompressorSpec(found, found.arguments.model_validate(dict(arguments or {})))
        spec.build()  # what cannot be built is found here, before anything is paid for
    except DataError:
        raise
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
            for detail in error.errors(include_url=False, include_input=False)
        )
        raise _refused(found, problems) from error
    except ValueError as error:  # the arguments do not go together
        raise _refused(found, f": Value error, {error}") from error
    return spec


def _refused(found: Compressor, problems: str) -> DataError:
    known = ", ".join(found.arguments.model_fields) or "none"
    return DataError(f"compressor_args of {found.name!r}: {problems} (arguments it takes: {known})")
