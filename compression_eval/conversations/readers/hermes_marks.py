"""Texts that mark what Hermes itself wrote into a conversation."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml


@dataclass(frozen=True)
class Summary:
    """A summary found in a message."""

    text: str
    """As the agent wrote it, without the line that marks its end."""
    prior: str | None = None
    """What the message said before the summary was joined to it; None if it was no message."""


def summary_in(text: str) -> Summary | None:
    """Return the summary that a message carries; None if it carries none."""
    marks = _marks()
    prior: str | None = None
    start = text[:200].lstrip()
    if start.startswith(marks["joined_start"]) and marks["joined_split"] in text:
        before, _, text = text.partition(marks["joined_split"])
        prior = _prior(before, marks)
        start = text[:200].lstrip()
    if not start.startswith(tuple(marks["summary_starts"])):
        return None
    body = text.strip()
    last_line = body.rfind("\n") + 1
    if body.startswith(marks["summary_end"], last_line):
        body = body[:last_line].rstrip()
    return Summary(body, prior)


def added_by_compaction(text: str) -> bool:
    """Whether a message is one that a compaction adds behind what it keeps."""
    return text.startswith(tuple(_marks()["added_starts"]))


def review_prompt(text: str) -> bool:
    """Whether a message is a prompt of the agent's own background review."""
    return text[:200].lstrip().startswith(tuple(_marks()["review_starts"]))


def removed_call() -> str:
    """Return what stands where a call was taken out of a kept turn."""
    return str(_marks()["removed_call"])


def _prior(before: str, marks: dict[str, Any]) -> str:
    inner = before.lstrip().partition("\n")[2]
    return inner.rpartition(marks["joined_split_start"])[0].strip()


@cache
def _marks() -> dict[str, Any]:
    text = files(__package__).joinpath("hermes_marks.yaml").read_text(encoding="utf-8")
    marks: dict[str, Any] = yaml.safe_load(text)
    return marks
