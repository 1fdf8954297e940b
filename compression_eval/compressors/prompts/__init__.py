"""The texts that a summarising strategy sends to its model, as data, one file each."""

import hashlib
import re
from functools import cache
from importlib.resources import files


@cache
def prompt(name: str) -> str:
    """Return the text of ``NAME.md`` in this folder."""
    return (files(__package__) / f"{name}.md").read_text(encoding="utf-8").strip()


def filled(name: str, **values: object) -> str:
    """Return the text of ``NAME.md`` with its ``{names}`` filled in.

    Braces that contain no such name stay as they are, and so does whatever the values hold.
    """
    return re.sub(r"\{(\w+)\}", lambda match: str(values.get(match[1], match[0])), prompt(name))


def prompts_digest() -> str:
    """Return one digest over all texts of this folder."""
    texts = sorted(
        (entry.name, entry.read_bytes())
        for entry in files(__package__).iterdir()
        if entry.name.endswith(".md")
    )
    whole = hashlib.sha256()
    for name, content in texts:
        whole.update(name.encode() + b"\0" + content + b"\0")
    return whole.hexdigest()
