"""All strategies by name, Inspect's own among them, and checked specs from a name and arguments.

`COMPRESSORS` lists what can be named; `find_compressor` adds a user's own strategies and the suffix
for an artifact index. `compressor_spec` checks the arguments and builds the strategy once, so that
a wrong one is refused before anything is paid for.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from inspect_ai.model import CompactionEdit, CompactionStrategy, CompactionSummary, CompactionTrim
from pydantic import AfterValidator, Field, NonNegativeInt, ValidationError

from compression_eval.compressors.anchored import AnchoredCompaction
from compression_eval.compressors.artifacts import with_artifacts
from compression_eval.compressors.command import CommandCompaction
from compression_eval.compressors.hermes import HermesCompaction
from compression_eval.compressors.langchain import LangChainCompaction
from compression_eval.compressors.mechanical import (
    ClearToolsCompaction,
    FullContext,
    MaskingCompaction,
    NoContext,
    TailOnly,
)
from compression_eval.compressors.names import SUFFIX
from compression_eval.compressors.products import (
    ClaudeCodeCompaction,
    CodexCompaction,
    OpenHandsCompaction,
    PiCompaction,
)
from compression_eval.compressors.recorded import RecordedState
from compression_eval.compressors.strategy import (
    Compressor,
    CompressorSpec,
    Strategy,
    Text,
    compressor,
    strategy,
)
from compression_eval.compressors.summarising import RegenerativeCompaction
from compression_eval.compressors.vendors import (
    AnthropicEditCompaction,
    AnthropicTextCompaction,
    OpenAICompaction,
)
from compression_eval.compressors.yours import user_compressor
from compression_eval.errors import DataError, did_you_mean, shorten
from compression_eval.fixtures.finding_files import invoked_folder


def _can_be_filled_in(template: str | None) -> str | None:
    # Inspect passes it to str.format, which would fail in the middle of a run.
    try:
        (template or "").format(addendums="")
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        raise ValueError(
            "braces are placeholders here; write {{ and }} for a brace, and {addendums} where "
            "`instructions` go"
        ) from error
    return template


def _summary_prompt(given: Any) -> str:
    """Return the prompt that Inspect uses: its own of the installed version if none is given."""
    return CompactionSummary(memory=False, prompt=given.prompt).prompt


@strategy
class _InspectSummary(Strategy):
    summary = "Inspect's CompactionSummary: one summary of everything"
    borrowed: ClassVar[Any] = staticmethod(_summary_prompt)

    instructions: str | None = None
    """Added to its prompt."""
    prompt: Annotated[Text | None, AfterValidator(_can_be_filled_in)] = None
    """Replaces its prompt; braces and all, Inspect's own ``{addendums}`` included."""

    @classmethod
    def made(cls, arguments: dict[str, Any]) -> CompactionStrategy:
        return CompactionSummary(memory=False, **arguments)


@strategy
class _InspectEdit(Strategy):
    summary = "Inspect's CompactionEdit: older tool results and thinking are cleared"

    keep_thinking_turns: NonNegativeInt = 1
    """Newest turns whose thinking stays."""
    keep_tool_uses: NonNegativeInt = 3
    """Newest tool results that stay."""
    keep_tool_inputs: bool = True
    """Whether the arguments of calls stay whose results are cleared."""
    exclude_tools: list[str] | None = None
    """Tools whose results always stay."""

    @classmethod
    def made(cls, arguments: dict[str, Any]) -> CompactionStrategy:
        return CompactionEdit(memory=False, **arguments)


@strategy
class _InspectTrim(Strategy):
    summary = "Inspect's CompactionTrim: the newest share of the messages is kept"

    preserve: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Share of the messages kept, by count, newest first. Inspect's own default is 0.8."""

    @classmethod
    def made(cls, arguments: dict[str, Any]) -> CompactionStrategy:
        return CompactionTrim(memory=False, **arguments)


_STRATEGIES: dict[str, Any] = {
    "full": FullContext,
    "none": NoContext,
    "tail": TailOnly,
    "anchored": AnchoredCompaction,
    "regenerative": RegenerativeCompaction,
    "summary": _InspectSummary,
    "edit": _InspectEdit,
    "trim": _InspectTrim,
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
    "anthropic-text-projection": AnthropicTextCompaction,
    "command": CommandCompaction,
    "recorded": RecordedState,
}

COMPRESSORS: Mapping[str, Compressor] = {
    name: compressor(name, kind) for name, kind in _STRATEGIES.items()
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
    found = COMPRESSORS.get(inner) or user_compressor(inner)
    return with_artifacts(found) if found and inner != name else found


def unknown_strategy(name: str) -> DataError:
    """Return the error for a name that no strategy has."""
    suffix = SUFFIX if name.endswith(SUFFIX) else ""
    close = did_you_mean(name, [known + suffix for known in COMPRESSORS])
    all_of_them = (
        f" (expected one of {', '.join(COMPRESSORS)}, or FILE.py@NAME for one of your own)"
    )
    return DataError(f"unknown strategy {shorten(name)}{close or all_of_them}")


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
        raise DataError(f"compressor: {unknown_strategy(name)}")
    try:
        spec = CompressorSpec(found, found.arguments.model_validate(dict(arguments or {})))
        spec.build()  # raises here, before anything is paid for, if it cannot be built
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        for detail in details:
            if isinstance(cause := detail.get("ctx", {}).get("error"), DataError):
                raise cause from None
        named = [".".join(map(str, detail["loc"])) for detail in details]
        known = list(found.arguments.model_fields)
        problems = "; ".join(
            f"it takes no {name}{did_you_mean(name, known)}"
            + " (YAML wants a space after the colon)" * (":" in name)
            if detail["type"] == "extra_forbidden"
            else f"{name}: {detail['msg'].removeprefix('Value error, ')}"
            for name, detail in zip(named, details, strict=True)
        )
        raise DataError(
            f"compressor_args of {found.name!r}: {problems} "
            f"(arguments it takes: {', '.join(known) or 'none'})"
        ) from error
    return spec


def source_digest(spec: CompressorSpec) -> str | None:
    """Return a digest of the user's own code behind a spec, for the version of a task.

    For a module or file: the file named and the one that defines the target; not what they import.
    For a command: its program, unless that is found by ``PATH``, and arguments that name files.
    None for what is not the user's.
    """
    if spec.name.removesuffix(SUFFIX) != "command":
        return spec.compressor.source_digest or None
    command: list[str] = spec.arguments.command  # type: ignore[attr-defined]
    whole = hashlib.sha256()
    for part in command:
        file = invoked_folder(command) / part
        if file.is_file():
            whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()
