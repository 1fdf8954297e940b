"""The texts that editing calls put in place of others."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compression_eval.authoring.history import History
from compression_eval.fixtures.artifacts.events import Call
from compression_eval.fixtures.artifacts.tools import (
    PATCH_KEYS,
    TEXT_KEYS,
    deed_of,
    paths_of,
    text_of,
)

EDITING = ("write", "edit", "editor", "patch")
"""What calls do whose arguments show what became of each line."""
_OLD = ("old_string", "old_str", "oldString", "old", "old_text", "oldText", "search")
_NEW = ("new_string", "new_str", "newString", "new", "new_text", "newText", "replace")
_LISTS = ("edits", "replacements")
_PATCHED_FILE = re.compile(r"^(?:\*\*\* (?:Update|Add) File: |\+\+\+ (?:b/)?)(\S.*?)\s*$")


@dataclass(frozen=True)
class Edit:
    """One replacement that was carried out; ``old`` is empty for a new file."""

    message: int
    path: str
    old: str
    new: str


def edits_of(history: History) -> Iterator[Edit]:
    """Yield the replacements before the cut, in their order."""
    done = {
        (event.message, event.path): event.action
        for event in history.reading.events
        if event.action in ("created", "modified")
    }
    for call in history.calls:
        touched = {path: action for (at, path), action in done.items() if at == call.message}
        for given, old, new in _replacements(call) if touched else ():
            path = next((p for p in touched if given == p or given.endswith("/" + p)), None)
            # Of a file that was written over, nobody knows what it was before.
            known = old or touched.get(path or "") == "created" or deed_of(call.name) == "patch"
            if path is not None and known:
                yield Edit(call.message, path, old, new)


def _replacements(call: Call) -> Iterator[tuple[str, str, str]]:
    """Yield path, old text and new text of each replacement that a call makes."""
    deed = deed_of(call.name)
    if deed == "patch" and (patch := text_of(call.arguments, PATCH_KEYS)):
        yield from _patched(patch)
    paths = paths_of(call.arguments)
    if deed not in EDITING or not paths:
        return
    for part in _parts(call.arguments):
        old, new = text_of(part, _OLD), text_of(part, _NEW)
        if old and new is not None:
            yield paths[0], old, new
    if deed in ("write", "editor") and (text := text_of(call.arguments, TEXT_KEYS)):
        yield paths[0], "", text


def _parts(arguments: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield arguments
    for key in _LISTS:
        value = arguments.get(key)
        for item in value if isinstance(value, list) else []:
            if isinstance(item, dict):
                yield item


def _patched(patch: str) -> Iterator[tuple[str, str, str]]:
    path, old, new = "", [""], [""]
    for line in [*patch.split("\n"), "+++ end"]:
        if named := _PATCHED_FILE.match(line):
            if path:
                yield path, "\n".join(old), "\n".join(new)
            path, old, new = named[1], [], []
        elif line.startswith("-"):
            old.append(line[1:])
        elif line.startswith("+"):
            new.append(line[1:])
