"""Read a conversation's tool calls: the effect of each tool, and the names of its arguments.

``tools.yaml`` says what a tool of a given name does; the functions at the top find paths, texts and
edits in its arguments, which agents name differently. `read_calls` guesses the project's folder and
passes each call to the reader of shells, code, patches or files.
"""

import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from compression_eval.file_ops.calls import Call, command_outcome, file_outcome
from compression_eval.file_ops.ledger import Ledger, Reading
from compression_eval.file_ops.patches import apply_patch, is_envelope
from compression_eval.file_ops.python_code import code_effects, record_code
from compression_eval.fixtures.digests import digest

Deed = Literal[
    "shell", "code", "read", "write", "edit", "delete", "move", "copy", "patch", "editor", "list",
    "none",
]  # fmt: skip

PATH_KEYS = (
    "file_path", "filePath", "path", "filename", "file_name", "target_file", "filepath", "file",
    "absolute_path", "AbsolutePath", "TargetFile", "notebook_path", "notebookPath", "relative_path",
    "abs_path", "target_notebook", "targetFile", "relativeWorkspacePath", "uri",
)  # fmt: skip
MANY_KEYS = ("paths", "files", "file_paths", "filePaths")
COMMAND_KEYS = ("command", "cmd", "script", "CommandLine", "commands", "input", "keystrokes")
CODE_KEYS = ("code", "source", "script", "input")
TEXT_KEYS = ("content", "file_text", "text", "contents", "file_content", "CodeContent", "fileText")
OLD_KEYS = ("old_string", "old_str", "oldString", "old", "old_text", "oldText", "search")
NEW_KEYS = (
    "new_string", "new_str", "newString", "new", "new_text", "newText", "replacement", "replace",
    "insert_text", "new_source", "code_edit", "content", "text", "diff",
)  # fmt: skip
FROM_KEYS = ("source", "src", "old_path", "from", "source_path", "oldPath", "path", "file_path")
TO_KEYS = ("destination", "dest", "dst", "new_path", "to", "destination_path", "newPath", "target")
PATCH_KEYS = ("input", "patch", "patchText", "patch_text", "diff", "content", "changes")
FOLDER_KEYS = ("workdir", "cwd", "working_directory", "work_dir", "directory", "Cwd")

_PREFIX = re.compile(r"^(?:mcp__[\w-]+__|functions?[.:]|default_api[.:]|[\w-]+[.:/](?=\w+$))")
_VERSION = re.compile(r"v?\d+$")
_EDITOR: dict[str, Deed] = {
    "view": "read",
    "create": "write",
    "str_replace": "edit",
    "insert": "edit",
    "undo_edit": "edit",
    "delete": "delete",
    "rename": "move",
}
"""The operation of an editor, by its argument ``command``."""

_SAYS_CREATED = re.compile(r"\bcreated\b|\bnew file\b|wrote new|新建|作成", re.IGNORECASE)
_SAYS_REPLACED = re.compile(
    r"\b(?:replaced|overwr(?:ote|itten)|updated|edited|modified)\b", re.IGNORECASE
)
_CHANGED_FOLDER = re.compile(r"(?m)^\s*cd (/[\w./-]+)\s*(?:&&|;|$)")
_SYSTEM = ("/tmp", "/private", "/dev", "/proc", "/etc", "/usr", "/var", "/bin", "/opt", "/sys")  # noqa: S108


@cache
def _deeds() -> dict[str, Deed]:
    import yaml

    text = (files(__package__) / "tools.yaml").read_text(encoding="utf-8")
    loaded: dict[Deed, str] = yaml.safe_load(text)
    return {name: deed for deed, names in loaded.items() for name in names.split()}


def deed_of(name: str, arguments: Mapping[str, Any] | None = None) -> Deed | None:
    """Return a tool's operation, by its name in any spelling; None for an unknown one.

    Args:
        name: The tool's name.
        arguments: A call's arguments, which determine the operation of an ``editor``.
    """
    bare = re.sub(r"[^a-z0-9]", "", _PREFIX.sub("", name).casefold())
    deed = _deeds().get(bare) or _deeds().get(_VERSION.sub("", bare))
    if deed == "editor" and arguments is not None:
        return _EDITOR.get(text_of(arguments, ("command",)) or "")
    return deed


def text_of(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    """Return the first of the arguments that is a text."""
    return next((arguments[key] for key in keys if isinstance(arguments.get(key), str)), None)


def paths_of(arguments: Mapping[str, Any]) -> list[str]:
    """Return the files that a call names: one, or a list of names or of objects with one."""
    if single := text_of(arguments, PATH_KEYS):
        return [single]
    listed = [arguments[key] for key in MANY_KEYS if isinstance(arguments.get(key), list)]
    named = [
        text_of(item, PATH_KEYS) if isinstance(item, dict) else item
        for items in listed
        for item in items
    ]
    return [path for path in named if isinstance(path, str) and path]


def command_of(arguments: Mapping[str, Any]) -> str | list[str] | None:
    """Return the command of a shell call: a text, or a list of words."""
    for key in COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return list(value)
    return None


def edits_of(arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the parts of an edit with their old and new texts: the call itself, and others."""
    parts: list[Mapping[str, Any]] = [arguments]
    for key in ("edits", "replacements", "ReplacementChunks"):
        items = arguments.get(key)
        parts += (
            [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        )
    return parts


_READINGS: dict[str, Reading] = {}
"""The latest readings by a digest of their calls, the latest last."""
_MAX_READINGS = 64


def read_calls(calls: Sequence[Call], *, root: str = "", existing: Iterable[str] = ()) -> Reading:
    """Return the effects of tool calls on files, as far as calls and results show them.

    A failed call changes nothing. Commands that may not have been reached, names that only running
    could determine, and unknown tools and programs are listed as unclassified, without a file
    operation. The result is kept for the next call about the same history, so nobody may change it.

    Args:
        calls: Calls in order, with results.
        root: Folder of the project; if empty, guessed from absolute paths in the calls.
        existing: Files known to exist before the first call.
    """
    # Strategies and the embedded model read the same history for each compression of it.
    existing = list(existing)
    key = digest(repr((list(calls), root, existing)))
    if (reading := _READINGS.pop(key, None)) is None:
        reading = _read(calls, root, existing)
        if not root and (recorded_root := _root(calls, reading)):
            reading = _read(calls, recorded_root, existing)
        if len(_READINGS) >= _MAX_READINGS:
            _READINGS.pop(next(iter(_READINGS)), None)
    _READINGS[key] = reading
    return reading


def _read(calls: Sequence[Call], root: str, existing: Iterable[str]) -> Reading:
    ledger = Ledger(root, existing)
    for call in calls:
        ledger.begin(call.message)
        _call(ledger, call)
    return ledger.reading


def _root(calls: Sequence[Call], reading: Reading) -> str:
    """Guess the project's folder: entered by commands, or shared by absolute and relative paths."""
    votes: Counter[str] = Counter()
    for call in calls:
        folder = text_of(call.arguments, FOLDER_KEYS)
        command = text_of(call.arguments, ("command", "cmd")) if not folder else None
        if entered := _CHANGED_FOLDER.match(command or ""):
            folder = entered[1]
        if folder:
            votes[folder.rstrip("/")] += 1
    paths = {event.path for event in reading.events}
    relative = {path for path in paths if not path.startswith("/")}
    for path in paths - relative:
        parts = path.split("/")
        for start in range(2, len(parts)):
            if "/".join(parts[start:]) in relative:
                votes["/".join(parts[:start])] += 1
    votes = Counter({folder: n for folder, n in votes.items() if _may_be_root(folder)})
    if votes:
        most = max(votes.values())
        return min((folder for folder, n in votes.items() if n == most), key=len)
    own = sorted(path for path in paths - relative if _may_be_root(path))
    if len(own) < 2:
        return ""
    common = posixpath.commonpath([posixpath.dirname(path) for path in own])
    # The common folder, if it is deep enough to be a project.
    return common if common.count("/") >= 3 or common == "/workspace" else ""


def _may_be_root(folder: str) -> bool:
    return folder.startswith("/") and not folder.startswith(_SYSTEM) and len(folder) > 1


def _call(ledger: Ledger, call: Call) -> None:
    deed = deed_of(call.name, call.arguments)
    if deed == "none":
        return
    if deed is None:
        # A tool with another name that takes a command is a shell too.
        if "cmd" not in call.arguments and "command" not in call.arguments:
            ledger.unknown("tool", call.name)
            return
        deed = "shell"
    if call.result is None:
        ledger.unknown("unanswered", call.name)
    elif deed == "shell":
        _shell(ledger, call, call.result)
    elif deed == "code":
        _code(ledger, call, call.result)
    else:
        _file(ledger, call, call.result, deed)


def _shell(ledger: Ledger, call: Call, result: str) -> None:
    from compression_eval.file_ops.shell import ShellReader

    command = command_of(call.arguments)
    if command is None:
        ledger.unknown("tool", f"{call.name} without a command")
        return
    given = text_of(call.arguments, FOLDER_KEYS) or ""
    folder = "" if given.rstrip("/") == ledger.reading.root else given
    if isinstance(command, list):
        if len(command) > 1 and command[0] == "apply_patch":
            _patched(ledger, call, result, command[1])
            return
        command = command[0] if len(command) == 1 else shlex.join(command)
    ShellReader(ledger, command_outcome(result, call.error)).read(
        command, folder, fixed=bool(given)
    )


def _code(ledger: Ledger, call: Call, result: str) -> None:
    code = text_of(call.arguments, CODE_KEYS)
    if code is None:
        ledger.unknown("code", call.name)
        return
    outcome = command_outcome(result, call.error)
    broken = outcome.failed or "Traceback (most recent call last)" in outcome.text
    if broken:
        ledger.failed(f"{call.name}: {code}", outcome.exit_code)
    record_code(ledger, code_effects(code), "", doubtful=broken)


def _file(ledger: Ledger, call: Call, result: str, deed: Deed) -> None:
    outcome = file_outcome(result, call.error, shows_content=deed in ("read", "list"))
    if deed == "list":
        if not outcome.failed:
            ledger.listing(outcome.text)
        return
    patch = text_of(call.arguments, PATCH_KEYS) if deed in ("patch", "edit") else None
    if patch is not None and (deed == "patch" or is_envelope(patch)) and "\n" in patch:
        _patched(ledger, call, result, patch)
        return
    paths = [path for name in paths_of(call.arguments) if (path := ledger.clean(name))]
    if outcome.failed:
        ledger.failed(" ".join([call.name, *paths[:2]]), outcome.exit_code)
    elif deed in ("move", "copy"):
        _moved(ledger, call, deed)
    elif not paths:
        ledger.unknown("tool", f"{call.name} without a path")
    else:
        for path in paths:
            _done(ledger, call, deed, path, outcome.text)


def _done(ledger: Ledger, call: Call, deed: Deed, path: str, result: str) -> None:
    there = ledger.exists(path) is True
    new = "\n".join(filter(None, (text_of(part, NEW_KEYS) for part in edits_of(call.arguments))))
    if deed == "read":
        ledger.read(path)
    elif deed == "write":
        first = result.strip().split("\n", 1)[0]
        created: bool | None = None
        if _SAYS_REPLACED.search(first):
            created = False
        elif _SAYS_CREATED.search(first) and not there:
            created = True
        ledger.written(path, text_of(call.arguments, TEXT_KEYS), created=created)
    elif deed == "delete":
        ledger.deleted(path)
    elif deed == "edit" and not there and "" in map(call.arguments.get, OLD_KEYS[:3]):
        ledger.written(path, new)  # some tools create a file by an edit that replaces nothing
    else:
        ledger.modified(path, new if deed == "edit" else "")


def _moved(ledger: Ledger, call: Call, deed: Deed) -> None:
    source = ledger.clean(text_of(call.arguments, FROM_KEYS) or "")
    target = ledger.clean(text_of(call.arguments, TO_KEYS) or "")
    if not source or not target:
        ledger.unknown("tool", f"{call.name} without two paths")
    elif deed == "move":
        ledger.renamed(source, target)
    else:
        ledger.copied(source, target)


def _patched(ledger: Ledger, call: Call, result: str, patch: str) -> None:
    outcome = file_outcome(result, call.error, shows_content=False)
    if outcome.failed:
        ledger.failed(call.name, outcome.exit_code)
    else:
        apply_patch(ledger, patch)
