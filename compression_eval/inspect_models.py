"""Models as Inspect has them: the one under test, and how its reply ended."""

from collections.abc import Iterable
from typing import Literal, get_args

from inspect_ai.model import (
    ContentReasoning,
    ContentText,
    Model,
    ModelOutput,
    ModelUsage,
    get_model,
)

from compression_eval.errors import DataError, did_you_mean, shorten
from compression_eval.text.thinking import Split, split_thinking

EMBEDDED_MODEL = "embedded/lexical"
"""Reached only by this name, through Inspect's registry, so that nothing depends on it."""

Role = Literal["grader", "compressor"]
"""Roles that models are bound to; the model under test has none."""

NO_CHOICES = "the model's reply contains no choices"
"""What is wrong with a reply that has nothing in it, which providers do send."""


def model_under_test() -> Model:
    """Return the model that Inspect evaluates, or the embedded one if none was chosen.

    A task that is made in Python cannot know yet whether ``eval()`` will be given a model.
    """
    active = get_model()
    return get_model(EMBEDDED_MODEL) if str(active) == "none/none" else active


def unknown_role(bound: Iterable[str]) -> DataError | None:
    """Return the error for roles that nothing here has, which Inspect ignores; None for none."""
    for role in bound:
        if role not in get_args(Role):
            return DataError(
                f"--model-role: {shorten(role)} is no role{did_you_mean(role, get_args(Role))} "
                "(expected grader=… or compressor=…)"
            )
    return None


def stop_reason(output: ModelOutput) -> str:
    """Return why a reply ended; empty for one without choices."""
    return "" if output.empty else output.stop_reason


def cut_off(output: ModelOutput) -> bool:
    """Return whether a reply ended because of a limit."""
    return stop_reason(output) in ("max_tokens", "model_length")


def said(output: ModelOutput) -> str:
    """Return the text of a reply without its thinking, also where no server has split it off."""
    return split_reply(output).said


def split_reply(output: ModelOutput) -> Split:
    """Split a reply into what was said and thought, unless its provider has done so."""
    content = "" if output.empty else output.message.content
    if not isinstance(content, str) and any(isinstance(p, ContentReasoning) for p in content):
        return Split(output.completion, [], False)
    return split_thinking(output.completion)


def input_tokens(usage: ModelUsage) -> int:
    """Return all input tokens of a request, those of a provider's cache too."""
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return usage.input_tokens + cached


def refused(output: ModelOutput) -> bool:
    """Return whether the model declined: by its stop reason, or by text marked as a refusal.

    OpenAI ends a refusal like any other reply; only the text itself is marked there.
    """
    if output.empty:
        return False
    content = output.message.content
    parts = [] if isinstance(content, str) else content
    return output.stop_reason == "content_filter" or any(
        isinstance(part, ContentText) and bool(part.refusal) for part in parts
    )
