"""Models as Inspect has them: the one under test, and how its reply ended."""

from inspect_ai.model import ContentText, Model, ModelOutput, ModelUsage, get_model

EMBEDDED_MODEL = "embedded/lexical"
"""Reached only by this name, through Inspect's registry, so that nothing depends on it."""

NO_CHOICES = "the model's reply holds no choices"
"""What is wrong with a reply that has nothing in it, which providers do send."""


def model_under_test() -> Model:
    """Return the model that Inspect evaluates, or the embedded one if none was chosen.

    A task that is made in Python cannot know yet whether ``eval()`` will be given a model.
    """
    active = get_model()
    return get_model(EMBEDDED_MODEL) if str(active) == "none/none" else active


def stop_reason(output: ModelOutput) -> str:
    """Return why a reply ended; empty for one without choices."""
    return "" if output.empty else output.stop_reason


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
