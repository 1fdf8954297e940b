"""What tool calls did to files, and to the names and values in them."""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from compression_eval.authoring.asking import Answer, tells, wording
from compression_eval.authoring.history import History, command_line
from compression_eval.file_ops.calls import Call, file_outcome
from compression_eval.file_ops.ledger import FileEvent, Status
from compression_eval.file_ops.tools import (
    NEW_KEYS,
    OLD_KEYS,
    PATCH_KEYS,
    TEXT_KEYS,
    deed_of,
    edits_of,
    paths_of,
    text_of,
)

_MAX_READ = 20_000
_MAX_SOURCE = 200_000
_MAX_RENAMED_WORDS = 5_000
_UNSURE = frozenset({"path", "git", "code", "syntax", "tool", "unanswered", "outcome"})
"""Kinds of calls that may have touched files nobody can name; then no list is complete.

Programs of the project stay out: the questions are about what the agent itself did to files.
"""
_TEMPORARY = ("/tmp/", "/private/tmp/", "/var/tmp/", "/private/var/folders/", "/var/folders/")  # noqa: S108
"""Where files are nobody's work; the wordings leave them out."""
_EDITING = ("write", "edit", "editor", "patch")
"""What calls do whose arguments show what became of each line."""
_PATCHED_FILE = re.compile(r"^(?:\*\*\* (?:Update|Add) File: |\+\+\+ (?:b/)?)(\S.*?)\s*$")
_PUTS_BACK = re.compile(r"\bgit\b[^|;&\n]*\b(?:checkout|restore)\b")
_COMMITS = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
_SETTLES = re.compile(r"\bgit\b[^|;&\n]*\b(?:commit|stash|checkout|restore|reset)\b")
_COMMITTED = re.compile(r"^\[[\w./#-]+ [0-9a-f]{7,40}\] ", re.MULTILINE)
_NOT_THERE = re.compile(r"does not exist|no such file|file not found|ENOENT", re.IGNORECASE)
_TEST = re.compile(r"(?:^|[_.-])(?:tests?|specs?)[_.-]|Tests?\.\w+$")
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
_SETTING = re.compile(
    r"^[ \t]*(?:export |const |let |var |final |static )*[\"']?"
    r"(?P<name>[A-Za-z_][\w.-]{2,60})[\"']?"
    r"(?: ?: ?[A-Za-z_][\w\[\], |]*)?[ \t]*(?::=|[:=])[ \t]*"
    r"(?P<value>-?\d[\d_.]*[a-z%]{0,3}|\"[^\"\n]{1,40}\"|'[^'\n]{1,40}'|[Tt]rue|[Ff]alse)"
    r"[ \t]*[,;]?[ \t]*(?:(?:#|//).*)?$",
    re.MULTILINE,
)
_MIN_TELLING_VALUE = 3
"""Characters from which a value with a digit counts without its name."""


def about_files(history: History) -> Iterator[Answer]:
    """Yield what was done to files, the most telling first."""
    edits = list(_edits(history))
    yield from _definitions(history, edits)
    yield from _changed_lists(history)
    events = history.reading.events
    first = next((event.message for event in events if event.action != "read"), None)
    if first is not None and not _Span(history, 0, first).unsure:
        read = (event.path for event in events if event.message < first and not event.folder)
        for path in dict.fromkeys(read):
            yield Answer("read_first", path, _touching(history, path))
    for state in history.inventory.states.values():
        if state.status == "renamed" and state.original and not state.folder:
            places = _touching(history, state.path)
            yield Answer("file_renamed", state.path, places, {"old": state.original})
    yield from _defining(history, edits)
    for call in history.calls:  # what the agent looked for in vain
        given = paths_of(call.arguments)
        if deed_of(call.name) == "read" and len(given) == 1 and call.result:
            outcome = file_outcome(call.result, call.error, shows_content=True)
            if outcome.failed and _NOT_THERE.search(outcome.text[:_MAX_READ]):
                yield Answer("files_missing", history.project_path(given[0]), [call.message])
    # What was changed after the last commit, if git did nothing to the files since.
    lines = [(call, command_line(call)) for call in history.calls]
    settled = [call for call, line in lines if _SETTLES.search(line)]
    committed = [
        call
        for call, line in lines
        if _COMMITS.search(line) and _COMMITTED.search(call.result or "")
    ]
    if committed and committed[-1].message == settled[-1].message:
        span = _Span(history, committed[-1].message + 1, history.cut)
        yield from span.answers("uncommitted", span.written)
    yield from _renamed(edits)
    yield from _settled(history, edits)


@dataclass(frozen=True)
class _Span:
    """Some messages of a history, and the files that were written in them."""

    history: History
    start: int
    end: int

    @cached_property
    def unsure(self) -> bool:
        """Whether a call may have touched files that nobody can name."""
        return any(
            item.kind in _UNSURE and self.start <= item.message < self.end
            for item in self.history.reading.unclassified
        )

    @cached_property
    def written(self) -> list[FileEvent]:
        """What was written; if there is a doubt, by editing tools only."""
        given: defaultdict[int, list[str]] = defaultdict(list)
        patched: set[int] = set()
        for call in self.history.calls if self.unsure else ():
            deed = deed_of(call.name)
            if deed in _EDITING:
                given[call.message].extend(paths_of(call.arguments))
            if deed == "patch":
                patched.add(call.message)
        return [
            event
            for event in self.history.reading.events
            if self.start <= event.message < self.end
            and event.action in ("created", "modified")
            and not event.folder
            and not event.path.startswith(_TEMPORARY)
            and (
                not self.unsure
                or event.message in patched
                or any(f"/{path}".endswith(f"/{event.path}") for path in given[event.message])
            )
        ]

    def answers(self, row: str, events: Sequence[FileEvent], **values: str) -> Iterator[Answer]:
        """Yield the files of some of the events."""
        only = wording("only_tools", self.history.language) if self.unsure else ""
        created = {event.path for event in events if event.action == "created"}
        for event in events:
            key = "files_created" if event.path in created else "files_modified"
            places = self.history.with_results(event.message)
            yield Answer(row, event.path, places, {"only": only, **values}, key=key)


def _touching(history: History, path: str) -> list[int]:
    """Return the messages whose calls touched a file under its last path, with their results."""
    events = history.reading.events
    return history.with_results(*{e.message for e in events if path in (e.path, e.to)})


def _changed_lists(history: History) -> Iterator[Answer]:
    """Yield what was changed after each request, in all, in one folder, and of the tests."""
    for turn in history.turns if len(history.turns) > 1 else ():
        if turn.label and turn.end <= history.tail_start:
            span = _Span(history, turn.message, turn.end)
            yield from span.answers("turn_changed", span.written, asked=turn.label)
    span = _Span(history, 0, history.cut)
    if span.unsure:
        yield from span.answers("files_changed", span.written)
    else:
        # A file that git put back was changed, and is not changed any more.
        events = history.reading.events
        modified = {event.message for event in events if event.action == "modified"}
        changing = [command_line(call) for call in history.calls if call.message in modified]
        put_back = any(map(_PUTS_BACK.search, changing))
        statuses: tuple[Status, ...] = ("modified", "created", "deleted", "read")
        for status in statuses[1:] if put_back else statuses:
            for path in history.inventory.with_status(status):
                if not path.startswith(_TEMPORARY):
                    yield Answer(f"files_{status}", path, _touching(history, path))
    paths = dict.fromkeys(event.path for event in span.written)
    for folder, number in Counter(map(posixpath.dirname, paths)).items():
        if folder and 1 < number < len(paths):
            inside = [event for event in span.written if posixpath.dirname(event.path) == folder]
            yield from span.answers("folder_changed", inside, folder=f"{folder}/")
    tests = [event for event in span.written if _TEST.search(posixpath.basename(event.path))]
    if 1 < len({event.path for event in tests}) < len(paths):
        yield from span.answers("tests_changed", tests)


@dataclass(frozen=True)
class Edit:
    """One replacement that was carried out; ``old`` is empty for a new file."""

    message: int
    path: str
    old: str
    new: str

    @cached_property
    def defined_before(self) -> list[str]:
        """The functions and types in the old text."""
        return _defined(self.path, self.old)

    @cached_property
    def defined(self) -> list[str]:
        """The functions and types in the new text."""
        return _defined(self.path, self.new)


def _edits(history: History) -> Iterator[Edit]:
    """Yield the replacements before the cut, in their order."""
    done: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for event in history.reading.events:
        if event.action in ("created", "modified"):
            done[event.message][event.path] = event.action
    for call in history.calls:
        touched = done[call.message]
        for given, old, new in _replacements(call) if touched else ():
            path = next((p for p in touched if given == p or given.endswith("/" + p)), None)
            # Of a file that was written over, nobody knows what it was before.
            if path and (old or touched[path] == "created" or deed_of(call.name) == "patch"):
                yield Edit(call.message, path, old, new)


def _replacements(call: Call) -> Iterator[tuple[str, str, str]]:
    """Yield path, old text and new text of each replacement that a call makes."""
    deed, arguments = deed_of(call.name), call.arguments
    if deed == "patch" and (patch := text_of(arguments, PATCH_KEYS)):
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
    paths = paths_of(arguments)
    if deed not in _EDITING or not paths:
        return
    for part in edits_of(arguments):
        before, after = text_of(part, OLD_KEYS), text_of(part, NEW_KEYS)
        if before and after is not None:
            yield paths[0], before, after
    if deed in ("write", "editor") and (text := text_of(arguments, TEXT_KEYS)):
        yield paths[0], "", text


def _defined(path: str, text: str) -> list[str]:
    """Return what a piece of source defines by telling names; not what its long texts quote."""
    pattern, quote = _DEFINED.get(posixpath.splitext(path)[1], ("", ""))
    matches = re.finditer(pattern, text[:_MAX_SOURCE], re.MULTILINE) if pattern else ()
    names = [match[1] for match in matches if text.count(quote, 0, match.start()) % 2 == 0]
    return [name for name in dict.fromkeys(names) if tells(name)]


def _definitions(history: History, edits: Sequence[Edit]) -> Iterator[Answer]:
    """Yield which functions and types were added to a file, or taken out of it."""
    before: defaultdict[str, set[str]] = defaultdict(set)
    new: dict[str, dict[str, list[int]]] = {}  # by file and name: the messages that wrote it
    gone: dict[str, dict[str, list[int]]] = {}
    for edit in edits:
        path, old = edit.path, edit.defined_before
        for name in edit.defined:
            taken_back = gone.get(path, {}).pop(name, None) is not None
            if name not in old and not taken_back and name not in before[path]:
                new.setdefault(path, {}).setdefault(name, []).append(edit.message)
        for name in old:
            if name not in edit.defined and new.get(path, {}).pop(name, None) is None:
                gone.setdefault(path, {}).setdefault(name, []).append(edit.message)
        before[path].update(old)
    for row, found in (("names_added", new), ("names_removed", gone)):
        for path, names in found.items():
            if not history.still_there(path) or path.startswith(_TEMPORARY):
                continue
            events = [e for e in history.reading.events if path in (e.path, e.to)]
            written = {event.message for event in events if event.action != "read"}
            # A command that wrote to it as well may have added others.
            edited = written <= {edit.message for edit in edits if edit.path == path}
            for name, at in names.items() if edited else ():
                yield Answer(row, name, at, {"path": path})


def _defining(history: History, edits: Sequence[Edit]) -> Iterator[Answer]:
    """Yield where a function or type was written, if in one file only, which is still there."""
    places: dict[str, set[str]] = {}
    written: defaultdict[str, list[int]] = defaultdict(list)
    for edit in edits:
        for name in edit.defined_before:
            if name not in edit.defined:
                places.pop(name, None)  # taken out again
        for name in edit.defined:
            places.setdefault(name, set()).add(edit.path)
            written[name].append(edit.message)
    asked: set[str] = set()
    for name, paths in places.items():
        path = min(paths)
        there = history.still_there(path) and not path.startswith(_TEMPORARY)
        if len(paths) == 1 and there and path not in asked:
            asked.add(path)
            yield Answer("file_defines", path, written[name], {"name": name})


def _renamed(edits: Sequence[Edit]) -> Iterator[Answer]:
    """Yield the new names of what an edit renamed and changed in no other way."""
    renamed: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for edit in edits:
        before, after = (re.findall(r"\w+|[^\w\s]", text) for text in (edit.old, edit.new))
        if len(before) == len(after) <= _MAX_RENAMED_WORDS:
            pairs = {(a, b) for a, b in zip(before, after, strict=True) if a != b}
            if len(pairs) == 1:
                ((old, name),) = pairs
                if tells(old) and tells(name):
                    renamed[edit.path, old][name] = edit.message
    for (path, old), names in renamed.items():
        ((name, at), *more) = names.items()
        later = " ".join(edit.new for edit in edits if edit.path == path and edit.message > at)
        if not more and not re.search(rf"\b{re.escape(old)}\b", later):
            yield Answer("name_changed", name, [at], {"old": old, "path": path})


def _settled(history: History, edits: Sequence[Edit]) -> Iterator[Answer]:
    """Yield the values that edits put in the place of others, and that hold still."""
    # By file and name: the message of each change, the value before it and after it.
    changes: defaultdict[tuple[str, str], list[tuple[int, str, str]]] = defaultdict(list)
    for edit in edits:
        before, after = _settings(edit.old), _settings(edit.new)
        for name, value in after.items():
            if name in before and _bare(before[name]) != _bare(value):
                changes[edit.path, name].append((edit.message, before[name], value))
    reading = history.reading
    by_git = max((item.message for item in reading.unclassified if item.kind == "git"), default=-1)
    shown = {call.message for call in history.calls if deed_of(call.name) in _EDITING[1:]}
    # The latest change of each file that no edit shows.
    hidden = {
        event.path: event.message
        for event in reading.events
        if event.action != "read" and event.message not in shown
    }
    # A number follows from nothing; ``error = red`` may.
    by_digit = sorted(changes.items(), key=lambda item: not re.search(r"\d", item[1][-1][2]))
    for (path, name), steps in by_digit:
        message, _, value = steps[-1]
        followed = all(later[1] == earlier[2] for earlier, later in pairwise(steps))
        if not followed or value == steps[0][1]:
            continue  # one name in two places of a file, or a change that was taken back
        if not history.still_there(path) or max(by_git, hidden.get(path, -1)) > message:
            continue
        text, *forms = _forms(name, value)
        # An old value is looked for in the spelling that the history has it in.
        spellings = [_forms(name, old) for _, old, _ in steps if old != value]
        stated = [list(filter(history.comes_up, each)) for each in spellings]
        row = "value_set" if len(steps) == 1 else "value_settled"
        values, old = {"name": name, "path": path}, [each[0] for each in stated if each]
        yield Answer(row, text, [message], values, forms, superseded=old)


def _forms(name: str, value: str) -> list[str]:
    """Return how a value can be given, the shown form first."""
    bare = _bare(value)
    forms = [f"{name} = {bare}", f"{name}: {bare}", f"{name} is {bare}"]
    if bare != value:
        forms += [f"{name} = {value}", f"{name}: {value}"]
    telling = len(bare) >= _MIN_TELLING_VALUE and any(map(str.isdigit, bare))
    return [*forms, bare] if telling else forms


def _bare(value: str) -> str:
    return value.strip("\"'")


def _settings(text: str) -> dict[str, str]:
    """Return the values of the names that are set once in a text."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for match in _SETTING.finditer(text):
        found[match["name"]].append(match["value"])
    return {name: values[0] for name, values in found.items() if len(values) == 1}
