"""Arguments that strategies take; checked, with defaults, and writable in YAML."""

from pydantic import BaseModel, ConfigDict, Field, field_validator


class Arguments(BaseModel):
    """No arguments; the base of all."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class WindowArguments(Arguments):
    """What is kept verbatim."""

    head_tokens: int = Field(default=0, ge=0)
    """Tokens kept at the start, beyond the system messages."""
    tail_tokens: int = Field(default=2_000, ge=0)
    """Tokens kept at the end; with a budget above 0 at least the last turn is kept."""
    target_tokens: int | None = Field(default=None, gt=0)
    """Wanted tokens of the whole state, system prompt included; it is filled as far as it goes.

    With it, ``tail_tokens`` (and ``summary_tokens``, where there is a summary) are no longer
    budgets: only their proportion counts, by which the target is divided. ``tail`` gives all of
    it to the tail.
    """


class SummaryArguments(WindowArguments):
    """What a summarising strategy is told."""

    summary_tokens: int = Field(default=1_500, gt=0)
    """Budget of the summary in tokens. ``anchored`` enforces it; to a model it is a request.

    With ``target_tokens`` only its proportion to ``tail_tokens`` counts, and it is enforced.
    """
    prompt: str | None = Field(default=None, min_length=1)
    """Text that replaces the strategy's instructions; the reply form is always added."""
    focus_topic: str | None = Field(default=None, min_length=1)
    """A topic that deserves the most room."""


class InspectSummaryArguments(Arguments):
    """Arguments of Inspect's ``CompactionSummary``."""

    instructions: str | None = None
    """Added to its prompt."""
    prompt: str | None = Field(default=None, min_length=1)
    """Replaces its prompt; braces and all, Inspect's own ``{addendums}`` included."""

    @field_validator("prompt")
    @classmethod
    def _can_be_filled_in(cls, value: str | None) -> str | None:
        # Inspect passes it through str.format, which would fail in the middle of a run.
        if value is not None:
            try:
                value.format(addendums="")
            except (KeyError, IndexError, ValueError) as error:
                raise ValueError(
                    "braces are placeholders here; write {{ and }} for a brace, and {addendums} "
                    "where `instructions` go"
                ) from error
        return value


class InspectEditArguments(Arguments):
    """Arguments of Inspect's ``CompactionEdit``."""

    keep_thinking_turns: int = Field(default=1, ge=0)
    """Newest turns whose thinking stays."""
    keep_tool_uses: int = Field(default=3, ge=0)
    """Newest tool results that stay."""
    keep_tool_inputs: bool = True
    """Whether the arguments of calls stay whose results are cleared."""
    exclude_tools: list[str] | None = None
    """Tools whose results always stay."""


class InspectTrimArguments(Arguments):
    """Arguments of Inspect's ``CompactionTrim``."""

    preserve: float = Field(default=0.2, ge=0, le=1)
    """Share of the messages kept, by count, newest first. Inspect's own default is 0.8."""
