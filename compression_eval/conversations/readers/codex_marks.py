"""Which messages Codex wrote itself, known by how they begin."""

from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict

from compression_eval.conversations.drafts import Draft


class Marks(BaseModel):
    """Texts by which Codex' own messages are known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    injected: tuple[str, ...]
    """Starts of messages that Codex puts in the user's name."""
    summary_request: str
    """Start of the prompt that asks the model for a summary."""
    summary_start: str
    """Start of the message that hands a summary on."""
    shortened: str
    """Stands for what was cut out of a long message; has a place for the number of tokens."""


@cache
def marks() -> Marks:
    """Return the texts."""
    text = (files(__package__) / "codex_marks.yaml").read_text(encoding="utf-8")
    return Marks.model_validate(yaml.safe_load(text))


def is_injected(draft: Draft) -> bool:
    """Return whether every text of a user message begins as those that Codex writes."""
    texts = [part for part in draft.content if isinstance(part, str) and part.strip()]
    starts = marks().injected
    return bool(texts) and all(text.lstrip().startswith(starts) for text in texts)


def begins(draft: Draft, start: str) -> bool:
    """Return whether a message begins with a mark."""
    return draft.text.lstrip()[: len(start)] == start
