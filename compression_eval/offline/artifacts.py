"""Which files a conversation created, changed, read, renamed and deleted, by its tool calls."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compression_eval.offline.reading import Call, Utterance
from compression_eval.offline.segments import beginning

Action = Literal["created", "modified", "read", "deleted", "renamed"]

_PATH_KEYS = ("file_path", "path", "filename", "file", "target_file", "filepath", "notebook_path")
_NEW_KEYS = ("new_string", "new_str", "new", "replacement", "insert_text", "newText", "content")
_TOOLS: tuple[tuple[re.Pattern[str], Action], ...] = (
    (re.compile(r"edit|replace|patch|insert|modify|update", re.IGNORECASE), "modified"),
    (re.compile(r"write|create", re.IGNORECASE), "created"),
    (re.compile(r"read|view|open|cat", re.IGNORECASE), "read"),
    (re.compile(r"delete|remove", re.IGNORECASE), "deleted"),
)
_COMMAND_KEYS = ("command", "cmd", "script")
_PATCH = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PATCH_ACTIONS: dict[str, Action] = {"Add": "created", "Update": "modified", "Delete": "deleted"}
_MOVE = re.compile(r"\b(?:git )?mv(?: -\w+)* (\S+) (\S+)")
_REMOVE = re.compile(r"\b(?:git )?rm(?: -\w+)* ([^\s;&|-][^\s;&|]*)")
_REDIRECT = re.compile(r"(?<![\d&>])>{1,2} ?([\w./-]+\.\w+)")
_SED = re.compile(r"\bsed -i\S* .*?([\w./-]+\.\w+)\s*(?:$|[;&|])", re.MULTILINE)
_COPY = re.compile(r"\bcp(?: -\w+)* \S+ ([\w./-]+\.\w+)")
_PRINT = re.compile(r"(?:^|[;&|(]\s*)(?:cat|head|tail|nl|less|sed -n|grep)\b([^|;&<>\n]*)")
_PATH = re.compile(r"(?<![\w./'\"-])[\w./-]*\w\.[A-Za-z]\w{0,5}(?![\w/])")
_NAMED = re.compile(r"\b(?:def|class|func|fn|function|const|struct|type|interface) +(\w+)")
_LONGEST_PATH = 200


@dataclass(frozen=True)
class FileAction:
    """One file operation: the message it stands in, what was done, the path, what changed."""

    message: int
    action: Action
    path: str
    detail: str = ""
    """Names that the new text defines, or its first telling line; the new path of a rename."""


def file_actions(utterances: list[Utterance]) -> list[FileAction]:
    """Return the file operations of a conversation in order.

    A file that is written after it was read, changed or written before counts as modified.
    """
    known: set[str] = set()
    result = []
    for utterance in utterances:
        for call in utterance.calls:
            for action in _of_call(utterance.index, call):
                result.append(_settled(action, known))
                known.add(action.detail if action.action == "renamed" else action.path)
    return result


def _settled(action: FileAction, known: set[str]) -> FileAction:
    if action.action == "created" and action.path in known:
        return FileAction(action.message, "modified", action.path, action.detail)
    return action


def _of_call(message: int, call: Call) -> Iterator[FileAction]:
    texts = {key: value for key, value in call.arguments.items() if isinstance(value, str)}
    for key in (*_COMMAND_KEYS, "input", "patch"):
        yield from _of_command(message, texts.get(key, ""))
    path = next((texts[key] for key in _PATH_KEYS if texts.get(key)), "")
    if not path or len(path) > _LONGEST_PATH or "\n" in path:
        return
    for pattern, action in _TOOLS:
        if pattern.search(call.name):
            new = next((texts[key] for key in _NEW_KEYS if texts.get(key)), "")
            detail = "" if action == "read" else describe_text(new)
            yield FileAction(message, action, path, detail)
            return


def _of_command(message: int, command: str) -> Iterator[FileAction]:
    if not command:
        return
    for kind, path in _PATCH.findall(command):
        yield FileAction(message, _PATCH_ACTIONS[kind], path.strip())
    head = command.split("<<", 1)[0]
    for old, new in _MOVE.findall(head):
        yield FileAction(message, "renamed", old, new)
    for path in _REMOVE.findall(head):
        yield FileAction(message, "deleted", path)
    for path in _REDIRECT.findall(head):
        if not path.startswith("/dev/"):
            yield FileAction(message, "created", path)
    for path in _SED.findall(head):
        yield FileAction(message, "modified", path)
    for path in _COPY.findall(head):
        yield FileAction(message, "created", path)
    for operands in _PRINT.findall(head):
        for path in _PATH.findall(operands):
            yield FileAction(message, "read", path)


def describe_text(text: str, most: int = 90) -> str:
    """Return what a new piece of a file is about: the names it defines, else its first line."""
    names = list(dict.fromkeys(_NAMED.findall(text)))
    if names:
        return beginning(", ".join(names[:6]), most)
    for line in text.splitlines():
        if len(line.strip()) > 3:
            return beginning(line.strip(), most)
    return ""


def by_action(actions: list[FileAction]) -> dict[Action, list[str]]:
    """Return the paths per kind of operation, each once, a changed one not again as read."""
    result: dict[Action, list[str]] = {}
    for item in actions:
        paths = result.setdefault(item.action, [])
        shown = f"{item.path} -> {item.detail}" if item.action == "renamed" else item.path
        if shown not in paths:
            paths.append(shown)
    changed = {*result.get("created", []), *result.get("modified", [])}
    if "read" in result:
        result["read"] = [path for path in result["read"] if path not in changed]
    return {action: paths for action, paths in result.items() if paths}
