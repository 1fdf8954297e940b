"""How a reply ended; tell a refusal from a reply, however a provider marks it."""

from inspect_ai.model import ContentText, ModelOutput

NO_CHOICES = "the model's reply holds no choices"
"""What is wrong with a reply that has nothing in it, which providers do send."""


def stop_reason(output: ModelOutput) -> str:
    """Return why a reply ended; empty for one without choices."""
    return "" if output.empty else output.stop_reason


def refused(output: ModelOutput) -> bool:
    """Return whether the model declined: by its stop reason, or by text marked as a refusal.

    OpenAI ends a refusal like any other reply; only the text itself is marked there.
    """
    if output.empty:
        return False
    if output.stop_reason == "content_filter":
        return True
    content = output.message.content
    if isinstance(content, str):
        return False
    return any(isinstance(part, ContentText) and bool(part.refusal) for part in content)
