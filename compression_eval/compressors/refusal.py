"""Tell a refusal from a reply, however a provider marks it."""

from inspect_ai.model import ContentText, ModelOutput


def refused(output: ModelOutput) -> bool:
    """Return whether the model declined: by its stop reason, or by text marked as a refusal.

    OpenAI ends a refusal like any other reply; only the text itself is marked there.
    """
    if output.stop_reason == "content_filter":
        return True
    content = output.message.content if output.choices else ""
    if isinstance(content, str):
        return False
    return any(isinstance(part, ContentText) and bool(part.refusal) for part in content)
