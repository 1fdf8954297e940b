"""The files that a conversation read or changed last, with what it shows of their contents.

Only tools whose one purpose is a file are known here, as in the products that keep lists of files
this way; what a shell command does to files is not seen. And there is no file system to read from:
a fixture is a conversation and nothing else. What stands here is what the agent itself saw or
wrote, with its later edits carried out where that is certain.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool
from inspect_ai.tool import ToolCall

FileKind = Literal["read", "write", "edit"]

_TOOLS: dict[FileKind, tuple[str, ...]] = {
    "read": ("read", "readfile", "view", "viewfile", "openfile"),
    "write": ("write", "writefile", "createfile"),
    "edit": ("edit", "editfile", "multiedit", "strreplace", "replaceinfile", "notebookedit"),
}
_KINDS: dict[str, FileKind] = {name: kind for kind, names in _TOOLS.items() for name in names}
"""What a tool does, by its name in small letters without punctuation."""

_EDITORS = ("strreplacebasededittool", "strreplaceeditor", "texteditor")
_COMMANDS: dict[str, FileKind] = {
    "view": "read",
    "create": "write",
    "str_replace": "edit",
    "insert": "edit",
}
"""What an editor does, by its argument ``command``."""

_PATHS = ("path", "file_path", "filepath", "filename", "file", "notebook_path")
_CONTENTS = ("content", "contents", "file_text", "text")
_OLD = ("old", "old_string", "old_str")
_NEW = ("new", "new_string", "new_str")
_PARTS = ("offset", "limit", "view_range", "start_line", "end_line")

_NUMBERED = re.compile(r" *\d+(?:\t|→|  |: |\| ?)(.*)")
"""A line with the number that a tool for reading puts before it."""


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


@dataclass(frozen=True)
class FileView:
    """What is known of a file's content."""

    path: str
    text: str
    exact: bool = True
    """Whether this is the whole file as it is now, as far as the conversation tells."""


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


def file_views(messages: Sequence[ChatMessage], earlier: Sequence[FileView] = ()) -> list[FileView]:
    """Return the files that were read, written or edited, the last one touched first.

    Args:
        messages: The conversation.
        earlier: What was known before it, oldest first.
    """
    views = {view.path: view for view in earlier}
    made: dict[str, FileCall] = {}
    for message in messages:
        if isinstance(message, ChatMessageAssistant):
            for call in message.tool_calls or []:
                if found := file_call(call):
                    made[call.id] = found
        elif isinstance(message, ChatMessageTool) and message.error is None:
            found = made.pop(message.tool_call_id or "", None)
            if found is not None:
                # Taken out first, so that the last file touched stands last.
                views[found.path] = _after(found, views.pop(found.path, None), message.text)
    return [view for view in reversed(views.values()) if view.text.strip()]


def _after(call: FileCall, known: FileView | None, result: str) -> FileView:
    """Return what is known of a file after a call."""
    if call.kind == "write" and call.content is not None:
        return FileView(call.path, call.content)
    if call.kind == "read":
        text = _unnumbered(result)
        if call.partial and known is not None and known.exact and text in known.text:
            return known
        return FileView(call.path, text, exact=not call.partial)
    if known is None:
        return FileView(call.path, result, exact=False)
    text = known.text
    for old, new in call.replacements:
        if text.count(old) != 1:
            return FileView(call.path, known.text, exact=False)
        text = text.replace(old, new)
    return FileView(call.path, text, exact=known.exact and bool(call.replacements))


def _unnumbered(text: str) -> str:
    """Return a text without the line numbers that a tool put before every line, if it did."""
    lines = text.splitlines()
    found = [_NUMBERED.fullmatch(line) for line in lines]
    if not lines or not all(found):
        return text
    return "\n".join(match[1] for match in found if match)


def _text(arguments: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := arguments.get(name), str)), None)


def _replacements(arguments: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    several = arguments.get("edits")
    result = []
    for edit in several if isinstance(several, list) else [arguments]:
        old = _text(edit, _OLD) if isinstance(edit, dict) else None
        new = _text(edit, _NEW) if isinstance(edit, dict) else None
        if not old or new is None:
            return ()
        result.append((old, new))
    return tuple(result)
