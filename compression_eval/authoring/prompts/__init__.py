"""What a model is told that writes probes, as data, one file each."""

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str) -> str:
    """Return the text of ``NAME.md`` in this folder."""
    return (files(__package__) / f"{name}.md").read_text(encoding="utf-8").strip()
