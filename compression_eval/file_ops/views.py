"""The files that a conversation read or changed last, with their known contents.

As in the products that keep lists of files this way, only file tools count. There is no file system
to read from, since a fixture is only a conversation. So the contents are what the agent itself saw
or wrote, with its later edits applied where certain. What shell commands make of a file is not
shown, only that they may have changed it.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath

from inspect_ai.model import ChatMessage

from compression_eval.file_ops.calls import Call, calls_of_messages, file_outcome
from compression_eval.file_ops.tools import (
    NEW_KEYS,
    OLD_KEYS,
    TEXT_KEYS,
    Deed,
    deed_of,
    edits_of,
    paths_of,
    read_calls,
    text_of,
)

_PART_KEYS = ("offset", "limit", "view_range", "start_line", "end_line")

_NUMBERED = re.compile(r" *\d+(?:\t|→|  |: |\| ?)(.*)")
"""A line with the number that a reading tool puts before it."""


@dataclass(frozen=True)
class FileView:
    """The known content of a file."""

    path: str
    text: str
    exact: bool = True
    """Whether this is the whole file, as it stood when it was last seen or written."""
    changed: bool = False
    """Whether something else may have changed the file since."""
    since: int = -1
    """Number of the call that read or wrote it; -1 if it was known before."""
    edits: frozenset[int] = frozenset()
    """Numbers of the edits that were applied to it since."""


def file_calls(calls: Iterable[Call]) -> list[tuple[Call, Deed, str]]:
    """Return the calls that ``read``, ``write`` or ``edit`` one file, each with its path."""
    found: list[tuple[Call, Deed, str]] = []
    for call in calls:
        deed, paths = deed_of(call.name, call.arguments), paths_of(call.arguments)
        if deed in ("read", "write", "edit") and len(paths) == 1:
            found.append((call, deed, paths[0]))
    return found


def file_views(messages: Sequence[ChatMessage], earlier: Sequence[FileView] = ()) -> list[FileView]:
    """Return the files that were read, written or edited, the last one touched first.

    Args:
        messages: The conversation.
        earlier: The views before it, oldest first.
    """
    views = {view.path: view for view in earlier}
    calls = [
        replace(call, message=number) for number, call in enumerate(calls_of_messages(messages))
    ]
    for call, deed, path in file_calls(calls):
        if call.result is None:
            continue
        if file_outcome(call.result, call.error, shows_content=deed == "read").failed:
            continue
        # Removed first, so that the last file touched comes last.
        known = views.pop(path, None)
        views[path] = _after(call, deed, path, known, call.result)
    changed = _changes(calls)
    return [
        replace(view, changed=view.changed or changed(view))
        for view in reversed(views.values())
        if view.text.strip()
    ]


def _changes(calls: Sequence[Call]) -> Callable[[FileView], bool]:
    """Return whether a call may have changed a file that its view does not show."""
    reading = read_calls(calls)
    root = f"{reading.root}/" if reading.root else ""
    changes: defaultdict[str, set[int]] = defaultdict(set)
    for event in reading.events:
        for path in (event.path, event.to) if event.action != "read" else ():
            changes[path].add(event.message)
    rewritten = {each.message for each in reading.unclassified if each.rewrites}
    in_doubt = [each for each in reading.unclassified if each.kind in ("outcome", "path")]

    def changed(view: FileView) -> bool:
        path = posixpath.normpath(view.path).removeprefix(root)
        by_name = (changes.get(str(each), set()) for each in (path, *PurePosixPath(path).parents))
        perhaps = (each.message for each in in_doubt if each.what.endswith(path))
        later = {number for number in chain(rewritten, *by_name, perhaps) if number > view.since}
        return bool(later - view.edits)

    return changed


def _after(call: Call, deed: Deed, path: str, known: FileView | None, result: str) -> FileView:
    """Return the view of a file after a call."""
    written = text_of(call.arguments, TEXT_KEYS) if deed == "write" else None
    if written is not None:
        return FileView(path, written, since=call.message)
    if deed == "read":
        text = _unnumbered(result)
        partial = any(call.arguments.get(key) is not None for key in _PART_KEYS)
        if partial and known is not None and known.exact and text in known.text:
            return known
        return FileView(path, text, exact=not partial, since=call.message)
    if known is None:
        return FileView(path, result, exact=False, since=call.message)
    text = known.text
    parts = edits_of(call.arguments)
    for part in parts[1:] or parts:
        old, new = text_of(part, OLD_KEYS), text_of(part, NEW_KEYS)
        if not old or new is None or text.count(old) != 1:
            return replace(known, exact=False)
        text = text.replace(old, new)
    return replace(known, text=text, edits=known.edits | {call.message})


def _unnumbered(text: str) -> str:
    """Remove the line numbers of a reading tool from a text, if every line has one."""
    found = [_NUMBERED.fullmatch(line) for line in text.splitlines()]
    return "\n".join(match[1] for match in found if match) if found and all(found) else text
