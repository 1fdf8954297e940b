"""Every named strategy: its arguments, how it is built, and what may be expected of it."""

from collections.abc import Mapping
from typing import Any

from inspect_ai.model import (
    CompactionEdit,
    CompactionSummary,
    CompactionTrim,
)
from pydantic import ValidationError

from compression_eval.compressors import (
    claude_code,
    clear_tools,
    codex,
    langchain,
    masking,
    openhands,
    pi,
    recorded,
)
from compression_eval.compressors.anchored import AnchoredCompaction
from compression_eval.compressors.arguments import (
    Arguments,
    InspectEditArguments,
    InspectSummaryArguments,
    InspectTrimArguments,
    SummaryArguments,
    WindowArguments,
)
from compression_eval.compressors.artifacts import SUFFIX, with_artifacts
from compression_eval.compressors.controls import FullContext, NoContext, TailOnly
from compression_eval.compressors.hermes.strategy import COMPRESSOR as HERMES
from compression_eval.compressors.regenerative import RegenerativeCompaction
from compression_eval.compressors.spec import Compressor, CompressorSpec
from compression_eval.compressors.vendors import (
    anthropic_clear_tools,
    anthropic_edit,
    anthropic_on_demand,
    openai_compact,
)
from compression_eval.compressors.yours import user_compressor
from compression_eval.compressors.yours.command import COMPRESSOR as COMMAND
from compression_eval.fixtures.errors import DataError, did_you_mean

COMPRESSORS: Mapping[str, Compressor[Any]] = {
    compressor.name: compressor
    for compressor in (
        Compressor(
            "full",
            "control: keeps everything",
            Arguments,
            lambda _: FullContext(),
            calls_model=False,
            exempt=True,
        ),
        Compressor(
            "none",
            "control: keeps the system prompt only",
            Arguments,
            lambda _: NoContext(),
            calls_model=False,
            exempt=True,
        ),
        Compressor(
            "tail",
            "control: keeps what a summarising arm keeps verbatim, without its summary",
            WindowArguments,
            TailOnly,
            calls_model=False,
        ),
        Compressor(
            "anchored",
            "persistent sectioned memory; only the dropped span is summarised, code merges",
            SummaryArguments,
            AnchoredCompaction,
            calls_model=True,
        ),
        Compressor(
            "regenerative",
            "the whole summary is written anew at each compression",
            SummaryArguments,
            RegenerativeCompaction,
            calls_model=True,
        ),
        Compressor(
            "summary",
            "Inspect's CompactionSummary",
            InspectSummaryArguments,
            lambda a: CompactionSummary(memory=False, instructions=a.instructions, prompt=a.prompt),
            calls_model=True,
        ),
        Compressor(
            "edit",
            "Inspect's CompactionEdit: older tool results and thinking are cleared",
            InspectEditArguments,
            lambda a: CompactionEdit(
                memory=False,
                keep_thinking_turns=a.keep_thinking_turns,
                keep_tool_uses=a.keep_tool_uses,
                keep_tool_inputs=a.keep_tool_inputs,
                exclude_tools=a.exclude_tools,
            ),
            calls_model=False,
        ),
        Compressor(
            "trim",
            "Inspect's CompactionTrim: the newest share of the messages is kept",
            InspectTrimArguments,
            lambda a: CompactionTrim(memory=False, preserve=a.preserve),
            calls_model=False,
        ),
        masking.COMPRESSOR,
        clear_tools.COMPRESSOR,
        claude_code.COMPRESSOR,
        codex.COMPRESSOR,
        pi.COMPRESSOR,
        openhands.COMPRESSOR,
        langchain.COMPRESSOR,
        HERMES,
        openai_compact.COMPRESSOR,
        anthropic_edit.COMPRESSOR,
        *anthropic_on_demand.COMPRESSORS,
        anthropic_clear_tools.COMPRESSOR,
        COMMAND,
        recorded.COMPRESSOR,
    )
}
"""All strategies by name."""


def compressor_spec(name: str, arguments: Mapping[str, Any] | None = None) -> CompressorSpec:
    """Return a checked spec.

    Args:
        name: A name of `COMPRESSORS`, or the user's own: ``module:name``, ``file.py@name``; with
            ``+artifacts`` after it, the strategy is wrapped by `with_artifacts`.
        arguments: Arguments by name; defaults fill the rest.

    Raises:
        DataError: The name is unknown, or an argument is unknown or out of range.
    """
    inner = name.removesuffix(SUFFIX)
    compressor = COMPRESSORS.get(inner) or user_compressor(inner)
    if compressor is None:
        suffix = name[len(inner) :]
        raise DataError(
            f"compressor: unknown strategy {name!r}, expected one of {', '.join(COMPRESSORS)}"
            + did_you_mean(name, [known + suffix for known in COMPRESSORS])
        )
    if inner != name:
        compressor = with_artifacts(compressor)
    try:
        checked = compressor.arguments.model_validate(dict(arguments or {}))
    except ValidationError as error:
        known = ", ".join(compressor.arguments.model_fields) or "none"
        problems = "; ".join(
            f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
            for detail in error.errors(include_url=False, include_input=False)
        )
        raise DataError(
            f"compressor_args of {name!r}: {problems} (arguments it takes: {known})"
        ) from error
    spec = CompressorSpec(compressor, checked)
    spec.build()  # what cannot be built is found here, before anything is paid for
    return spec
