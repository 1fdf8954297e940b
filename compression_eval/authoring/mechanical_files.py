"""Questions about files, from what the tool calls did to them."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from compression_eval.authoring.history import History
from compression_eval.authoring.making import made, path_fact
from compression_eval.fixtures.artifacts.inventory import Status
from compression_eval.fixtures.artifacts.tools import command_of, deed_of
from compression_eval.fixtures.banks import AnswerKey, Probe

_ORIGIN = "files"
_MOST_LISTED = 8
_UNSURE = frozenset({"path", "git", "code", "syntax", "tool", "unanswered", "outcome"})
"""Kinds of calls that may have touched files nobody can name; then no list is complete.

Programs of the project stay out: the questions are about what the agent itself did to files.
"""
_SHORTEST_NAME = 5
_SCANNED = 20_000
_PUTS_BACK = re.compile(r"\bgit\b[^|;&\n]*\b(?:checkout|restore)\b")
_TEMPORARY = ("/tmp/", "/private/tmp/", "/var/tmp/", "/private/var/folders/", "/var/folders/")  # noqa: S108
"""Where files are nobody's work; the wordings leave them out."""


def file_probes(history: History) -> Iterator[tuple[str, Probe]]:
    """Yield probes about files, each with the name of its template."""
    if not any(item.kind in _UNSURE for item in history.reading.unclassified):
        yield from _lists(history)
        yield from _only_one_in_folder(history)
    yield from _renamed(history)
    yield from _defining(history)


def _lists(history: History) -> Iterator[tuple[str, Probe]]:
    wanted: dict[str, tuple[Status, ...]] = {
        "files_modified": ("modified",),
        "files_created": ("created",),
        "files_deleted": ("deleted",),
        "files_read": ("read",),
    }
    for template, statuses in wanted.items():
        if template == "files_modified" and _restored(history):
            continue
        paths = [
            path
            for path in history.inventory.with_status(*statuses)
            if not path.startswith(_TEMPORARY)
        ]
        fewest = 2 if template == "files_read" else 1
        if fewest <= len(paths) <= _MOST_LISTED:
            facts = [path_fact(history, path, _touching(history, path)) for path in paths]
            key = None
            if template != "files_deleted":
                key = AnswerKey.model_validate({template: paths})
            yield template, made(history, "artifact", template, facts, _ORIGIN, key=key)


def _restored(history: History) -> bool:
    """Return whether git put a file back: then it was changed, and is not changed any more."""
    written = {event.message for event in history.reading.events if event.action == "modified"}
    for call in history.calls:
        if call.message not in written or deed_of(call.name) != "shell":
            continue
        command = command_of(call.arguments)
        text = " ".join(command) if isinstance(command, list) else command or ""
        if _PUTS_BACK.search(text[:_SCANNED]):
            return True
    return False


def _only_one_in_folder(history: History) -> Iterator[tuple[str, Probe]]:
    created = history.inventory.with_status("created")
    folders = [posixpath.dirname(path) for path in created]
    for path, folder in zip(created, folders, strict=True):
        if folder and folders.count(folder) == 1 and len(created) > 1:
            facts = [path_fact(history, path, _touching(history, path))]
            values = {"folder": f"{folder}/"}
            yield (
                "folder_created",
                made(history, "artifact", "folder_created", facts, _ORIGIN, values),
            )


def _renamed(history: History) -> Iterator[tuple[str, Probe]]:
    for state in history.inventory.states.values():
        if state.status == "renamed" and state.original and not state.folder:
            facts = [path_fact(history, state.path, _touching(history, state.path))]
            values = {"old": state.original}
            yield "file_renamed", made(history, "artifact", "file_renamed", facts, _ORIGIN, values)


def _defining(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask where a function or type was written, if that was one file only, which is still there."""
    places: dict[str, set[str]] = {}
    written: dict[str, list[int]] = {}
    for event in history.reading.events:
        for name in event.names:
            places.setdefault(name, set()).add(event.path)
            written.setdefault(name, []).append(event.message)
    asked: set[str] = set()
    for name, paths in places.items():
        (path, *more) = sorted(paths)
        state = history.inventory.states.get(path)
        there = state is not None and state.status in ("created", "modified")
        there = there and not path.startswith(_TEMPORARY)
        if more or not there or path in asked or len(name) < _SHORTEST_NAME:
            continue
        asked.add(path)
        facts = [path_fact(history, path, written[name])]
        yield (
            "file_defines",
            made(history, "artifact", "file_defines", facts, _ORIGIN, {"name": name}),
        )


def _touching(history: History, path: str) -> Sequence[int]:
    """Return the messages whose calls touched a file under its last path, with their results."""
    found: list[int] = []
    for event in history.reading.events:
        if path in (event.path, event.to):
            found.append(event.message)
            end = event.message + 1
            while end < history.cut and history.messages[end].role == "tool":
                found.append(end)
                end += 1
    return found
