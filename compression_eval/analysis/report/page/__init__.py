"""The page's template, style and script, as data."""

from importlib.resources import files


def part(name: str) -> str:
    """Return the text of one of the page's files."""
    return (files(__package__) / name).read_text(encoding="utf-8")
