"""What tool calls did to files, and to the values in them.

Of a file, a call and its result or another message have to say that it was changed; a value has to
stand somewhere beside the edits.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from compression_eval.authoring.asking import Answer, tells, wording
from compression_eval.authoring.history import History, command_line
from compression_eval.file_ops.calls import Call
from compression_eval.file_ops.ledger import FileEvent
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

_MAX_SOURCE = 200_000
_MAX_FILES = 8
"""Files up to which all are asked for; of more, those of the folders with the most."""
_MAX_FOLDERS = 3
_MIN_PLACES = 2
"""Messages that have to name a file: the call alone may have done something else."""
_MIN_LABEL_WORDS = 3
_LAST_TURNS = 4
"""Requests whose changes are asked for: of earlier ones nobody needs it apart."""
_UNSURE = frozenset({"path", "git", "code", "syntax", "tool", "unanswered", "outcome"})
"""Kinds of calls that may have touched files nobody can name; then no list is complete.

Programs of the project stay out: the questions are about what the agent itself did to files.
"""
_TEMPORARY = ("/tmp/", "/private/tmp/", "/var/tmp/", "/private/var/folders/", "/var/folders/")  # noqa: S108
"""Where files are nobody's work."""
_AGENT_FOLDER = re.compile(r"/\.(?:claude|codex|pi|gemini|cursor|opencode|hermes|factory|copilot)/")
"""Where agents keep plans, notes and settings of their own."""
_NO_FILE = re.compile(r"\\|^\w+:")
"""Addresses of other things, and what commands of Windows name."""
_EDITING = ("write", "edit", "editor", "patch")
"""What calls do whose arguments show what became of each line."""
_SAYS_DONE = re.compile(
    r"\b(?:updated|success\w*|applied|created|wrote|written|edited|replaced|saved)\b|^\{\}$", re.I
)
_MAX_SAID = 300
_PATCHED_FILE = re.compile(r"^(?:\*\*\* (?:Update|Add) File: |\+\+\+ (?:b/)?)(\S.*?)\s*$")
_PUTS_BACK = re.compile(r"\bgit\b[^|;&\n]*\b(?:checkout|restore)\b")
_COMMITS = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
_SETTLES = re.compile(r"\bgit\b[^|;&\n]*\b(?:commit|stash|checkout|restore|reset)\b")
_COMMITTED = re.compile(r"^\[[\w./#-]+ [0-9a-f]{7,40}\] ", re.MULTILINE)
_TEST = re.compile(r"(?:^|[_./-])(?:tests?|specs?)[_./-]|Tests?\.\w+$")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
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
    yield from _uncommitted(history)
    yield from _changed_lists(history)
    for state in history.inventory.states.values():
        old, new = state.original, state.path
        if state.status == "renamed" and old and not state.folder and _is_work(new):
            events = [e for e in history.reading.events if new in (e.path, e.to)]
            moved = history.with_results(*{e.message for e in events if e.to == new})
            if history.comes_up(new, moved):
                places = history.with_results(*{e.message for e in events})
                yield Answer("file_renamed", new, places, {"old": old})
    yield from _defining(history, edits)
    yield from _settled(history, edits)


def _is_work(path: str) -> bool:
    """Return whether a path is in the project: plans, notes and settings of agents are not."""
    outside = path.startswith(("~", "../", *_TEMPORARY)) or _AGENT_FOLDER.search(f"/{path}")
    return not outside and not _NO_FILE.search(path)


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
        """What was written in the project; if there is a doubt, by editing tools only."""
        history = self.history
        given: defaultdict[int, list[str]] = defaultdict(list)
        patched: set[int] = set()
        for call in history.calls if self.unsure else ():
            if deed_of(call.name) not in _EDITING:
                continue
            given[call.message].extend(paths := paths_of(call.arguments))
            if not paths:
                patched.add(call.message)
            if not call.arguments and self.start <= call.message < self.end:
                return []  # a change that nobody can read
        outside = history.reading.root  # with a root, what is absolute lies elsewhere
        events = [e for e in history.reading.events if self.start <= e.message < self.end]
        if not self.unsure and any(_NO_FILE.search(event.path) for event in events):
            return []
        return [
            event
            for event in events
            if event.action in ("created", "modified")
            and not event.folder
            and _is_work(event.path)
            and not (outside and event.path.startswith("/"))
            and (
                not self.unsure
                or event.message in patched
                or any(f"/{path}".endswith(f"/{event.path}") for path in given[event.message])
            )
        ]

    @cached_property
    def _said_done(self) -> set[int]:
        """The messages with an editing call whose result says that it was carried out."""
        return {
            call.message
            for call in self.history.calls
            if deed_of(call.name) in _EDITING and _SAYS_DONE.search((call.result or "")[:_MAX_SAID])
        }

    def answers(self, row: str, events: Sequence[FileEvent], **values: str) -> Iterator[Answer]:
        """Yield those files of some events that are still there, if two signs say so of each.

        The call is one; the other is a result that says so, or another message with the path.
        """
        history = self.history
        only = wording("only_tools", history.language) if self.unsure else ""
        created = {event.path for event in events if event.action == "created"}
        there = [event for event in events if history.still_there(event.path)]
        done = {event.path for event in there if event.message in self._said_done}
        doubtful = {event.path for event in there} - done
        if any(len(history.stated_in([path])) < _MIN_PLACES for path in doubtful):
            return
        for event in there:
            key = "files_created" if event.path in created else "files_modified"
            places = history.with_results(event.message)
            yield Answer(row, event.path, places, {"only": only, **values}, key=key)


def _tells_request(label: str) -> bool:
    """Return whether the beginning of a message says what it is about."""
    words = set(re.findall(r"[^\W\d_]{3,}", label))
    told = not label.isascii() or len(words) >= _MIN_LABEL_WORDS
    return bool(label) and told and not label.endswith((":", "："))


def _uncommitted(history: History) -> Iterator[Answer]:
    """Yield what was changed after the last commit, if git did nothing to the files since."""
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


def _changed_lists(history: History) -> Iterator[Answer]:
    """Yield what was changed in all, in one folder, and after each request."""
    span = _Span(history, 0, history.cut)
    changing = {event.message for event in span.written}
    calls = [call for call in history.calls if call.message in changing]
    if any(_PUTS_BACK.search(command_line(call)) for call in calls):
        return
    paths = dict.fromkeys(event.path for event in span.written)
    if len(paths) <= _MAX_FILES:
        yield from span.answers("files_changed", span.written)
    else:
        folders = Counter(posixpath.dirname(path) for path in paths if history.still_there(path))
        for folder, number in folders.most_common(_MAX_FOLDERS):
            if folder and number > 1:
                inside = [e for e in span.written if posixpath.dirname(e.path) == folder]
                yield from span.answers("folder_changed", inside, folder=f"{folder}/")
    turns = [turn for turn in history.turns if turn.end <= history.tail_start]
    spans = [(turn, _Span(history, turn.message, turn.end)) for turn in turns]
    for turn, span in [(turn, span) for turn, span in spans if span.written][-_LAST_TURNS:]:
        whole = paths.keys() <= {event.path for event in span.written}
        if turn.request and _tells_request(turn.label) and not whole:
            yield from span.answers("turn_changed", span.written, asked=turn.label)


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


def _defining(history: History, edits: Sequence[Edit]) -> Iterator[Answer]:
    """Yield where a new function or type was written, if in one file that is still there.

    It has to come up elsewhere; tests and what is only used where it stands are nobody's question.
    """
    places: dict[str, set[str]] = {}
    written: defaultdict[str, list[int]] = defaultdict(list)
    for edit in edits:
        for name in edit.defined_before:
            if name not in edit.defined:
                places.pop(name, None)  # taken out again
        for name in edit.defined:
            if name in written or name not in edit.defined_before:
                places.setdefault(name, set()).add(edit.path)
                written[name].append(edit.message)
    asked: set[str] = set()
    for name, paths in places.items():
        path = min(paths)
        there = history.still_there(path) and _is_work(path) and not _TEST.search(path)
        if len(paths) != 1 or not there or path in asked or _names_file(name, path):
            continue
        shown = (i for i in range(min(written[name])) if history.messages[i].role == "tool")
        known = any(True for _ in history.stating([name], shown))
        if not known and history.comes_up(name, history.with_results(*written[name])):
            asked.add(path)
            yield Answer("file_defines", path, written[name], {"name": name})


def _names_file(name: str, path: str) -> bool:
    """Return whether half of the words of a file's name are those of a definition in it."""
    stem = posixpath.splitext(posixpath.basename(path))[0]
    given, words = (set(map(str.lower, _WORD.findall(text))) for text in (name, stem))
    return 2 * len(words & given) >= len(words)


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
        there = history.still_there(path) and _is_work(path)
        if not there or max(by_git, hidden.get(path, -1)) > message:
            continue
        text, *forms = _forms(name, value)
        edited = history.with_results(*(step[0] for step in steps))
        if not any(history.comes_up(form, edited) for form in (text, *forms)):
            continue
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
