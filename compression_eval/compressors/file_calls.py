"""Which file a tool call reads or changes, by the names that such tools commonly have.

Only tools whose one purpose is a file are known here, as in the products that keep lists of files
this way; what a shell command does to files is not seen.
"""

from dataclasses import dataclass
from typing import Any, Literal

from inspect_ai.tool import ToolCall

FileKind = Literal["read", "write", "edit"]

_KINDS: dict[str, FileKind] = {
    "read": "read",
    "readfile": "read",
    "view": "read",
    "viewfile": "read",
    "openfile": "read",
    "write": "write",
    "writefile": "write",
    "createfile": "write",
    "edit": "edit",
    "editfile": "edit",
    "multiedit": "edit",
    "strreplace": "edit",
    "replaceinfile": "edit",
    "notebookedit": "edit",
}
_EDITORS = ("strreplacebasededittool", "strreplaceeditor", "texteditor")
_COMMANDS: dict[str, FileKind] = {
    "view": "read",
    "create": "write",
    "str_replace": "edit",
    "insert": "edit",
}
_PATHS = ("path", "file_path", "filepath", "filename", "file", "notebook_path")
_CONTENTS = ("content", "contents", "file_text", "text")
_OLD = ("old", "old_string", "old_str")
_NEW = ("new", "new_string", "new_str")
_PARTS = ("offset", "limit", "view_range", "start_line", "end_line")


@dataclass(frozen=True)
class FileCall:
    """A tool call that reads, writes or edits one file."""

    kind: FileKind
    path: str
    content: str | None = None
    """What is written; None if the call is no write or holds no text."""
    replacements: tuple[tuple[str, str], ...] = ()
    """Old and new text of an edit; empty if the edit is of another form."""
    partial: bool = False
    """Whether only a part of the file is asked for."""


def file_call(call: ToolCall) -> FileCall | None:
    """Return what a call does to a file; None if it is not a call to a file tool."""
    name = "".join(character for character in call.function.lower() if character.isalnum())
    arguments = call.arguments
    kind = _KINDS.get(name)
    if name in _EDITORS:
        kind = _COMMANDS.get(str(arguments.get("command")))
    path = _text(arguments, _PATHS)
    if kind is None or not path:
        return None
    return FileCall(
        kind,
        path,
        content=_text(arguments, _CONTENTS) if kind == "write" else None,
        replacements=_replacements(arguments) if kind == "edit" else (),
        partial=kind == "read" and any(arguments.get(name) is not None for name in _PARTS),
    )


def _text(arguments: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := arguments.get(name), str)), None)


def _replacements(arguments: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    several = arguments.get("edits")
    edits = several if isinstance(several, list) else [arguments]
    result = []
    for edit in edits:
        old = _text(edit, _OLD) if isinstance(edit, dict) else None
        new = _text(edit, _NEW) if isinstance(edit, dict) else None
        if not old or new is None:
            return ()
        result.append((old, new))
    return tuple(result)
