"""Inspect's own strategies, with our arguments and defaults.

They never warn the model of a compression (``memory``): it has no tool to save anything with.
"""

from collections.abc import Callable
from typing import Annotated

from inspect_ai.model import CompactionEdit, CompactionStrategy, CompactionSummary, CompactionTrim
from pydantic import AfterValidator, ConfigDict, Field, NonNegativeInt

from compression_eval.compressors.spec import Arguments, Compressor
from compression_eval.compressors.strategy import Text
from compression_eval.fixtures.models import Fixture


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


class _Documented(Arguments):
    model_config = ConfigDict(use_attribute_docstrings=True)


class SummaryArguments(_Documented):
    """Arguments of ``CompactionSummary``."""

    instructions: str | None = None
    """Added to its prompt."""
    prompt: Annotated[Text | None, AfterValidator(_can_be_filled_in)] = None
    """Replaces its prompt; braces and all, Inspect's own ``{addendums}`` included."""


class EditArguments(_Documented):
    """Arguments of ``CompactionEdit``."""

    keep_thinking_turns: NonNegativeInt = 1
    """Newest turns whose thinking stays."""
    keep_tool_uses: NonNegativeInt = 3
    """Newest tool results that stay."""
    keep_tool_inputs: bool = True
    """Whether the arguments of calls stay whose results are cleared."""
    exclude_tools: list[str] | None = None
    """Tools whose results always stay."""


class TrimArguments(_Documented):
    """Arguments of ``CompactionTrim``."""

    preserve: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Share of the messages kept, by count, newest first. Inspect's own default is 0.8."""


def _inspects(
    name: str,
    kind: Callable[..., CompactionStrategy],
    arguments: type[Arguments],
    summary: str,
    *,
    calls_model: bool = False,
    borrowed: Callable[[Arguments], str] | None = None,
) -> Compressor:
    def build(given: Arguments, _: Fixture | None = None) -> CompactionStrategy:
        return kind(memory=False, **dict(given))

    return Compressor(
        name, f"Inspect's {summary}", arguments, build, calls_model, borrowed=borrowed
    )


def _summary_prompt(given: Arguments) -> str:
    """Return the prompt that Inspect uses: its own of the installed version if none is given."""
    return CompactionSummary(memory=False, prompt=getattr(given, "prompt", None)).prompt


INSPECTS_OWN = {
    each.name: each
    for each in (
        _inspects(
            "summary",
            CompactionSummary,
            SummaryArguments,
            "CompactionSummary",
            calls_model=True,
            borrowed=_summary_prompt,
        ),
        _inspects(
            "edit",
            CompactionEdit,
            EditArguments,
            "CompactionEdit: older tool results and thinking are cleared",
        ),
        _inspects(
            "trim",
            CompactionTrim,
            TrimArguments,
            "CompactionTrim: the newest share of the messages is kept",
        ),
    )
}
