"""What is known of a strategy by its name, so that commands that read logs import no strategy."""

from collections.abc import Mapping

SUFFIX = "+artifacts"
"""Ends the name of a strategy that keeps an index of the files."""

CALLS_MODEL: Mapping[str, bool] = dict.fromkeys(
    ("full", "none", "tail", "edit", "trim", "masking", "clear-tools", "command", "recorded"), False
) | dict.fromkeys(
    (
        *("anchored", "regenerative", "summary", "claude-code", "codex", "pi", "openhands"),
        *("langchain", "hermes", "openai-compact", "anthropic-edit", "anthropic-native"),
        *("anthropic-text-projection", "anthropic-clear-tools"),
    ),
    True,
)
"""Whether a strategy calls a model, by its name without the suffix; a user's own is missing.

Names of earlier versions stay, for their logs.
"""


def calls_model(name: str) -> bool:
    """Return whether a strategy calls a model; a user's own may."""
    return CALLS_MODEL.get(name.removesuffix(SUFFIX), True)
