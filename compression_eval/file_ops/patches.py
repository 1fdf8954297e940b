"""Patches: the ``apply_patch`` form with its envelope, and unified diffs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from compression_eval.file_ops.ledger import Ledger

_ENVELOPE = re.compile(r"^\*\*\* (Add|Update|Delete) File:(.+)$")
_MOVE = re.compile(r"^\*\*\* Move to:(.+)$")
_OLD = re.compile(r"^--- (?:a/)?([^\t\n]+?)(?:\t.*)?$")
_NEW = re.compile(r"^\+\+\+ (?:b/)?([^\t\n]+?)(?:\t.*)?$")
_GIT_RENAME = re.compile(r"^rename (from|to) (.+)$")

_Kind = Literal["add", "update", "delete", "move"]
_KINDS: dict[str, _Kind] = {"Add": "add", "Update": "update", "Delete": "delete"}


@dataclass
class _FilePatch:
    """A patch's operation on one file, and the lines that it adds."""

    kind: _Kind
    path: str
    to: str = ""
    added: list[str] = field(default_factory=list)


def is_envelope(text: str) -> bool:
    """Return whether a text contains a patch in the ``apply_patch`` form."""
    return "*** Begin Patch" in text or bool(re.search(r"(?m)^\*\*\* \w+ File: ", text))


def apply_patch(ledger: Ledger, text: str, folder: str | None = "") -> None:
    """Record the effects of a patch of either form.

    Args:
        ledger: Records them.
        text: The patch.
        folder: Folder that its paths are relative to; None if unknown.
    """
    patches = list(_envelope(text) if is_envelope(text) else _diff(text))
    if not patches:
        ledger.unknown("path", "a patch without files")
    for patch in patches:
        added = "\n".join(patch.added)
        path = ledger.clean(patch.path, folder or "")
        if path is None or (folder is None and not path.startswith("/")):
            ledger.unknown("path", patch.path)
        elif patch.kind == "add":
            ledger.written(path, added, created=ledger.exists(path) is not True)
        elif patch.kind == "delete":
            ledger.deleted(path)
        elif patch.kind == "update":
            ledger.modified(path, added)
        elif to := ledger.clean(patch.to, folder or ""):
            ledger.renamed(path, to)
            if added:
                ledger.modified(to, added)


def _envelope(text: str) -> list[_FilePatch]:
    patches: list[_FilePatch] = []
    for line in text.splitlines():
        if match := _ENVELOPE.match(line):
            patches.append(_FilePatch(_KINDS[match[1]], match[2]))
        elif patches and (match := _MOVE.match(line)):
            patches[-1].kind, patches[-1].to = "move", match[1]
        elif patches and line.startswith("+"):
            patches[-1].added.append(line[1:])
    return patches


def _diff(text: str) -> Iterator[_FilePatch]:
    current: _FilePatch | None = None
    moved_from = ""
    lines = text.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        old = _OLD.match(line)
        new = _NEW.match(following) if old else None
        if old and new:
            if current:
                yield current
            kind: _Kind = "update"
            if "/dev/null" in (old[1], new[1]):
                kind = "add" if old[1] == "/dev/null" else "delete"
            current = _FilePatch(kind, old[1] if kind == "delete" else new[1])
        elif match := _GIT_RENAME.match(line):
            if match[1] == "from":
                moved_from = match[2]
            elif moved_from:
                yield _FilePatch("move", moved_from, match[2])
                moved_from = ""
        elif current and line.startswith("+") and not line.startswith("+++"):
            current.added.append(line[1:])
    if current:
        yield current
