"""What the lines of a Claude Code session are, beside those of messages: read from a data file."""

from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict


class Marks(BaseModel):
    """Kinds of lines and what is done with them, and texts by which user lines are known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cleared_result: str
    reminder: str
    local_caveat: tuple[str, ...]
    local_output: tuple[str, ...]
    command: tuple[str, ...]
    clear_command: str
    clear_hook: str
    plan_start: str
    notes: dict[str, tuple[str, ...]]
    """Attachments that the model saw, with the fields whose texts make up the note."""
    hook_events: tuple[str, ...]
    unseen_attachments: dict[str, str]
    """Attachments that it did not see, with the reason."""
    system_lines: dict[str, str]
    other_lines: dict[str, str]


@cache
def marks() -> Marks:
    """Return the kinds and texts."""
    text = (files(__package__) / "claude_code_marks.yaml").read_text(encoding="utf-8")
    return Marks.model_validate(yaml.safe_load(text))
