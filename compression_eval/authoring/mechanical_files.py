"""Questions about files, from what the tool calls did to them."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from compression_eval.authoring.candidates import fact
from compression_eval.authoring.edits import EDITING, edits_of
from compression_eval.authoring.history import History
from compression_eval.authoring.identifiers import tells
from compression_eval.authoring.making import evidence, made, path_fact
from compression_eval.authoring.runs import shell_of
from compression_eval.authoring.templates import wordings
from compression_eval.fixtures.artifacts.events import FileEvent
from compression_eval.fixtures.artifacts.inventory import Status
from compression_eval.fixtures.artifacts.outcomes import file_outcome
from compression_eval.fixtures.artifacts.tools import deed_of, paths_of
from compression_eval.fixtures.banks import AnswerKey, Probe, ProbeType

_ORIGIN = "files"
_MAX_LISTED = 8
_MAX_NAMES = 8
_UNSURE = frozenset({"path", "git", "code", "syntax", "tool", "unanswered", "outcome"})
"""Kinds of calls that may have touched files nobody can name; then no list is complete.

Programs of the project stay out: the questions are about what the agent itself did to files.
"""
_SCANNED = 20_000
_PUTS_BACK = re.compile(r"\bgit\b[^|;&\n]*\b(?:checkout|restore)\b")
_TEMPORARY = ("/tmp/", "/private/tmp/", "/var/tmp/", "/private/var/folders/", "/var/folders/")  # noqa: S108
"""Where files are nobody's work; the wordings leave them out."""
_START = r"^(?:[ ]{0,4}|\t)"
_SCRIPT = _START + (
    r"(?:export\s+)?(?:default\s+)?(?:abstract\s+)?(?:async\s+)?"
    r"(?:function\*?|class|interface|enum)\s+(\w+)"
)
_CLASSES = _START + (
    r"(?:(?:public|private|protected|internal|static|abstract|final|open|data)\s+)*"
    r"(?:class|interface|enum|struct|record|fun|trait|object)\s+(\w+)"
)
_DEFINED = {
    ".py": (_START + r"(?:async\s+)?(?:def|class)\s+(\w+)", '"""'),
    ".go": (r"^(?:func\s+(?:\([^)\n]*\)\s*)?|type\s+)(\w+)", "`"),
    ".rs": (_START + r"(?:pub(?:\(\w+\))?\s+)?(?:async\s+)?(?:fn|struct|enum|trait)\s+(\w+)", '"#'),
    ".rb": (_START + r"(?:def|class|module)\s+(\w+)", "<<~"),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".ts", ".tsx", ".vue", ".svelte"), (_SCRIPT, "`")),
    **dict.fromkeys((".java", ".kt", ".cs", ".swift", ".scala", ".php"), (_CLASSES, '"""')),
}
"""What a file of each kind defines, and what opens and ends its texts of several lines."""
_NOT_THERE = re.compile(r"does not exist|no such file|file not found|ENOENT", re.IGNORECASE)
_TEST = re.compile(r"(?:^|[_.-])(?:tests?|specs?)[_.-]|Tests?\.\w+$")


def file_probes(history: History) -> Iterator[tuple[str, Probe]]:
    """Yield probes about files, each with the name of its template."""
    yield from _added(history)
    yield from _after_requests(history)
    yield from _lists(history)
    yield from _groups(history)
    yield from _read_first(history)
    yield from _renamed(history)
    yield from _defining(history)
    yield from _missing(history)
    yield from _uncommitted(history)


def _unsure(history: History, start: int, end: int) -> bool:
    """Return whether a call in a range may have touched files that nobody can name."""
    return any(
        item.kind in _UNSURE and start <= item.message < end
        for item in history.reading.unclassified
    )


def _changes(history: History, start: int, end: int) -> tuple[list[FileEvent], bool]:
    """Return what was written in a range, and whether that is only what editing tools wrote."""
    only_tools = _unsure(history, start, end)
    given: dict[int, list[str]] = {}
    patched: set[int] = set()
    for call in history.calls:
        if deed_of(call.name) in EDITING:
            given.setdefault(call.message, []).extend(paths_of(call.arguments))
            if deed_of(call.name) == "patch":
                patched.add(call.message)
    found = [
        event
        for event in history.reading.events
        if start <= event.message < end
        and event.action in ("created", "modified")
        and not event.folder
        and not event.path.startswith(_TEMPORARY)
        and (
            not only_tools
            or event.message in patched
            or any(f"/{path}".endswith(f"/{event.path}") for path in given.get(event.message, ()))
        )
    ]
    return found, only_tools


def _list(
    history: History,
    template: str,
    events: Sequence[FileEvent],
    only_tools: bool,
    values: dict[str, str],
) -> Iterator[tuple[str, Probe]]:
    """Ask for the files of some events, if they are few enough to be told."""
    paths = list(dict.fromkeys(event.path for event in events))
    if not 0 < len(paths) <= _MAX_LISTED:
        return
    created = {event.path for event in events if event.action == "created"}
    key = AnswerKey(
        files_created=[path for path in paths if path in created],
        files_modified=[path for path in paths if path not in created],
    )
    facts = [
        path_fact(history, path, _beside(history, {e.message for e in events if e.path == path}))
        for path in paths
    ]
    values = {"only": wordings(history.language).only_tools if only_tools else "", **values}
    kind: ProbeType = "continuation" if template == "uncommitted" else "artifact"
    yield template, made(history, kind, template, facts, _ORIGIN, values, key=key)


def _after_requests(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask what was changed after each request of the user."""
    for turn in history.turns if len(history.turns) > 1 else ():
        if not turn.label or turn.end > history.tail_start:
            continue
        values = {"asked": turn.label}
        events, only_tools = _changes(history, turn.message, turn.end)
        yield from _list(history, "turn_changed", events, only_tools, values)


def _lists(history: History) -> Iterator[tuple[str, Probe]]:
    if _unsure(history, 0, history.cut):
        events, only_tools = _changes(history, 0, history.cut)
        yield from _list(history, "files_changed", events, only_tools, {})
        return
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
        if fewest <= len(paths) <= _MAX_LISTED:
            facts = [path_fact(history, path, _touching(history, path)) for path in paths]
            key = None
            if template != "files_deleted":
                key = AnswerKey.model_validate({template: paths})
            yield template, made(history, "artifact", template, facts, _ORIGIN, key=key)


def _restored(history: History) -> bool:
    """Return whether git put a file back: then it was changed, and is not changed any more."""
    written = {event.message for event in history.reading.events if event.action == "modified"}
    return any(
        call.message in written and _PUTS_BACK.search(shell_of(call)) for call in history.calls
    )


def _groups(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask for the changed files of one folder, and for the tests among them."""
    events, only_tools = _changes(history, 0, history.cut)
    paths = dict.fromkeys(event.path for event in events)
    folders = Counter(posixpath.dirname(path) for path in paths)
    for folder, number in folders.items():
        if folder and 1 < number < len(paths):
            inside = [event for event in events if posixpath.dirname(event.path) == folder]
            values = {"folder": f"{folder}/"}
            yield from _list(history, "folder_changed", inside, only_tools, values)
    tests = [event for event in events if _TEST.search(posixpath.basename(event.path))]
    if 1 < len({event.path for event in tests}) < len(paths):
        yield from _list(history, "tests_changed", tests, only_tools, {})


def _read_first(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask which files were read before the first change."""
    events = history.reading.events
    first = next((e.message for e in events if e.action != "read"), None)
    if first is None or _unsure(history, 0, first):
        return
    paths = [e.path for e in events if e.message < first and not e.folder]
    paths = list(dict.fromkeys(paths))
    if 1 < len(paths) <= _MAX_LISTED:
        facts = [path_fact(history, path, _touching(history, path)) for path in paths]
        key = AnswerKey(files_read=paths)
        yield "read_first", made(history, "artifact", "read_first", facts, _ORIGIN, key=key)


def _renamed(history: History) -> Iterator[tuple[str, Probe]]:
    for state in history.inventory.states.values():
        if state.status == "renamed" and state.original and not state.folder:
            facts = [path_fact(history, state.path, _touching(history, state.path))]
            values = {"old": state.original}
            yield "file_renamed", made(history, "artifact", "file_renamed", facts, _ORIGIN, values)


def _definitions(path: str, text: str) -> list[str]:
    """Return what a piece of source defines by telling names; not what its long texts quote."""
    pattern, quote = _DEFINED.get(posixpath.splitext(path)[1], ("", ""))
    matches = re.finditer(pattern, text[:200_000], re.MULTILINE) if pattern else ()
    names = [match[1] for match in matches if text.count(quote, 0, match.start()) % 2 == 0]
    return [name for name in dict.fromkeys(names) if tells(name)]


def _added(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask which functions and types were added to a file, or taken out of it."""
    before: dict[str, set[str]] = {}
    new: dict[str, dict[str, list[int]]] = {}
    gone: dict[str, dict[str, list[int]]] = {}
    messages: dict[str, set[int]] = {}
    for edit in edits_of(history):
        messages.setdefault(edit.path, set()).add(edit.message)
        old, now = _definitions(edit.path, edit.old), _definitions(edit.path, edit.new)
        known = before.setdefault(edit.path, set())
        for name in now:
            taken_back = gone.get(edit.path, {}).pop(name, None) is not None
            if name not in old and not taken_back and name not in known:
                new.setdefault(edit.path, {}).setdefault(name, []).append(edit.message)
        for name in old:
            if name not in now and new.get(edit.path, {}).pop(name, None) is None:
                gone.setdefault(edit.path, {}).setdefault(name, []).append(edit.message)
        known.update(old)
    for template, found in (("names_added", new), ("names_removed", gone)):
        for path, names in found.items():
            state = history.inventory.states.get(path)
            if state is None or state.status not in ("created", "modified"):
                continue
            if path.startswith(_TEMPORARY) or not 0 < len(names) <= _MAX_NAMES:
                continue
            if not _written(history, path) <= messages[path]:
                continue  # some command wrote to it as well
            facts = [fact(name, evidence(history, [name], at)) for name, at in names.items()]
            values = {"path": path}
            yield template, made(history, "artifact", template, facts, _ORIGIN, values)


def _written(history: History, path: str) -> set[int]:
    return {
        event.message
        for event in history.reading.events
        if path in (event.path, event.to) and event.action != "read"
    }


def _defining(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask where a function or type was written, if that was one file only, which is still there."""
    places: dict[str, set[str]] = {}
    written: dict[str, list[int]] = {}
    for edit in edits_of(history):
        now = _definitions(edit.path, edit.new)
        for name in _definitions(edit.path, edit.old):
            if name not in now:
                places.pop(name, None)  # taken out again
        for name in now:
            places.setdefault(name, set()).add(edit.path)
            written.setdefault(name, []).append(edit.message)
    asked: set[str] = set()
    for name, paths in places.items():
        (path, *more) = sorted(paths)
        state = history.inventory.states.get(path)
        there = state is not None and state.status in ("created", "modified")
        there = there and not path.startswith(_TEMPORARY)
        if more or not there or path in asked:
            continue
        asked.add(path)
        facts = [path_fact(history, path, written[name])]
        yield (
            "file_defines",
            made(history, "artifact", "file_defines", facts, _ORIGIN, {"name": name}),
        )


def _missing(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask for the files that the agent looked for in vain."""
    missing: dict[str, list[int]] = {}
    for call in history.calls:
        given = paths_of(call.arguments)
        if deed_of(call.name) != "read" or len(given) != 1 or not call.result:
            continue
        outcome = file_outcome(call.result, call.error, shows_content=True)
        if outcome.failed and _NOT_THERE.search(outcome.text[:_SCANNED]):
            missing.setdefault(history.reading_path(given[0]), []).append(call.message)
    if 0 < len(missing) <= _MAX_NAMES:
        facts = [path_fact(history, path, at) for path, at in missing.items()]
        yield "files_missing", made(history, "recall", "files_missing", facts, _ORIGIN)


def _uncommitted(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask what was changed after the last commit."""
    git = [
        call.message
        for call in history.calls
        if re.search(
            r"\bgit\b[^|;&\n]*\b(?:commit|stash|checkout|restore|reset)\b",
            shell_of(call),
        )
    ]
    commits = [
        call.message
        for call in history.calls
        if re.search(r"\bgit\b[^|;&\n]*\bcommit\b", shell_of(call))
        and re.search(r"^\[[\w./#-]+ [0-9a-f]{7,40}\] ", call.result or "", re.MULTILINE)
    ]
    if commits and commits[-1] == git[-1]:
        events, only_tools = _changes(history, commits[-1] + 1, history.cut)
        yield from _list(history, "uncommitted", events, only_tools, {})


def _touching(history: History, path: str) -> Sequence[int]:
    """Return the messages whose calls touched a file under its last path, with their results."""
    events = history.reading.events
    return _beside(history, {event.message for event in events if path in (event.path, event.to)})


def _beside(history: History, messages: set[int]) -> list[int]:
    """Return messages with the results of their calls."""
    found: list[int] = []
    for message in sorted(messages):
        end = message + 1
        while end < history.cut and history.messages[end].role == "tool":
            end += 1
        found.extend(range(message, end))
    return found
