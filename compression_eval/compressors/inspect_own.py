"""Inspect's own strategies, with our arguments and defaults.

They never warn the model of a compression (``memory``): it has no tool to save anything with.
"""

from typing import Annotated

from inspect_ai.model import CompactionEdit, CompactionSummary, CompactionTrim
from pydantic import AfterValidator, Field, NonNegativeInt

from compression_eval.compressors.strategy import Text


def _can_be_filled_in(template: str | None) -> str | None:
    # Inspect passes it to str.format, which would fail in the middle of a run.
    try:
        (template or "").format(addendums="")
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(
            "braces are placeholders here; write {{ and }} for a brace, and {addendums} where "
            "`instructions` go"
        ) from error
    return template


def inspect_summary(
    *,
    instructions: str | None = None,
    prompt: Annotated[Text | None, AfterValidator(_can_be_filled_in)] = None,
) -> CompactionSummary:
    """Return Inspect's ``CompactionSummary``.

    Args:
        instructions: Added to its prompt.
        prompt: Replaces its prompt; braces and all, Inspect's own ``{addendums}`` included.
    """
    return CompactionSummary(memory=False, instructions=instructions, prompt=prompt)


def inspect_edit(
    *,
    keep_thinking_turns: NonNegativeInt = 1,
    keep_tool_uses: NonNegativeInt = 3,
    keep_tool_inputs: bool = True,
    exclude_tools: list[str] | None = None,
) -> CompactionEdit:
    """Return Inspect's ``CompactionEdit``.

    Args:
        keep_thinking_turns: Newest turns whose thinking stays.
        keep_tool_uses: Newest tool results that stay.
        keep_tool_inputs: Whether the arguments of calls stay whose results are cleared.
        exclude_tools: Tools whose results always stay.
    """
    return CompactionEdit(
        memory=False,
        keep_thinking_turns=keep_thinking_turns,
        keep_tool_uses=keep_tool_uses,
        keep_tool_inputs=keep_tool_inputs,
        exclude_tools=exclude_tools,
    )


def inspect_trim(*, preserve: Annotated[float, Field(ge=0, le=1)] = 0.2) -> CompactionTrim:
    """Return Inspect's ``CompactionTrim``.

    Args:
        preserve: Share of the messages kept, by count, newest first. Inspect's own default is 0.8.
    """
    return CompactionTrim(memory=False, preserve=preserve)
