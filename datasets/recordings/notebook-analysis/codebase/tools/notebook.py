"""Reading and writing notebooks (nbformat 4)."""

import json
from pathlib import Path


class NotebookError(Exception):
    """A notebook or a cell is not what it must be."""


def load(path: Path) -> dict:
    """Return a notebook; NotebookError if it is none, or has two cells of one id."""
    try:
        notebook = json.loads(path.read_text())
    except ValueError as error:
        raise NotebookError(f"{path}: not JSON: {error}") from error
    if notebook.get("nbformat") != 4:
        raise NotebookError(f"{path}: nbformat {notebook.get('nbformat')}, expected 4")
    ids = [cell["id"] for cell in notebook["cells"]]
    twice = sorted({each for each in ids if ids.count(each) > 1})
    if twice:
        raise NotebookError(f"{path}: two cells with id {', '.join(twice)}")
    return notebook


def save(path: Path, notebook: dict) -> None:
    """Write a notebook, the same text for the same content."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def lines(text: str) -> list[str]:
    """Return a text as notebooks keep it."""
    return text.splitlines(keepends=True)


def find(notebook: dict, identifier: str) -> int:
    """Return the place of a cell."""
    for place, cell in enumerate(notebook["cells"]):
        if cell["id"] == identifier:
            return place
    raise NotebookError(f"no cell {identifier}; there are {', '.join(c['id'] for c in notebook['cells'])}")


def stdout(cell: dict) -> str:
    """Return what a cell printed."""
    return "".join(
        "".join(output["text"]) for output in cell.get("outputs", ()) if output["output_type"] == "stream"
    )
