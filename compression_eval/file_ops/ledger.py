"""File events, the ledger that records them, and the resulting file states.

Readers of tools, shells, patches and Python code report what they see to a `Ledger`, which knows
which files exist at that point. `inventory_of` folds the events into the state of each file at the
end: created, modified, read, deleted or renamed.
"""

import posixpath
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

Action = Literal["read", "created", "modified", "deleted", "renamed"]

UnknownKind = Literal["tool", "program", "code", "path", "git", "outcome", "syntax", "unanswered"]
"""Why the effect of a call is uncertain.

``tool``: a tool that is not known. ``program``: a program that may write files of its own choice.
``code``: inline code that writes where only running it would tell. ``path``: a name made of
variables, patterns or command output. ``git``: a git command that rewrites the tree. ``outcome``:
an operation that may or may not have been reached. ``syntax``: a command that cannot be parsed, or
not within bounds.
``unanswered``: a call without a result.
"""

Status = Literal["created", "modified", "renamed", "deleted", "temporary", "read", "former"]
"""The final status of a file.

``created``, ``modified``, ``renamed`` (and otherwise unchanged), ``read`` (and left unchanged):
it exists. ``deleted``; ``temporary`` (created and deleted again); ``former``: the earlier path of a
renamed file.
"""

_REWRITE: tuple[UnknownKind, ...] = ("code", "git", "syntax")
_MAX_PATH = 300
_MAX_LABEL = 60
_MAX_COMMAND = 160
_MAX_SCRIPTS = 50
_MAX_SCRIPT = 100_000
_MAX_NAMES = 6
_MAX_WORK = 1_000_000
"""What one call may take; see `Ledger.may_take`."""
_STEP = 1_000
"""What each step takes next to its size."""
_DEVICES = ("/dev/", "/proc/")
_LISTED = re.compile(r"(?:^|\s)((?:\.{0,2}/)?[^\s/:'\"`,;()<>|*]+(?:/[^\s/:'\"`,;()<>|*]+)+)$")
_DEFINED = re.compile(
    r"^[ \t]*(?:export[ \t]+)?(?:default[ \t]+)?"
    r"(?:(?:pub|public|private|static|async)[ \t]+)*"
    r"(?:def|class|func|fn|function|const|struct|enum|interface|type|trait)[ \t]+(\w+)",
    re.MULTILINE,
)
_TELLS_NOTHING = re.compile(r"__\w+__$|test_|setUp|tearDown|main$")


@dataclass(frozen=True)
class FileEvent:
    """One operation that took place on one file or folder.

    Attributes:
        message: Index of the message that made the call.
        action: What was done.
        path: The file, relative to the project if the project is known.
        to: For ``renamed``, the new path.
        folder: Whether it is a folder with all its contents.
        names: Functions and classes that the new text defines, for written files.
    """

    message: int
    action: Action
    path: str
    to: str = ""
    folder: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class FailedCommand:
    """A command or file call that failed; the exit code is None if the result names none."""

    message: int
    command: str
    exit_code: int | None = None


@dataclass(frozen=True)
class Unclassified:
    """Something that may have touched files in an unknown way."""

    message: int
    kind: UnknownKind
    what: str
    """A program, tool or path; shortened."""
    rewrites: bool = False
    """Whether it changes files in place that its words do not name."""


@dataclass(frozen=True)
class RanCommand:
    """One command that a shell call ran.

    Attributes:
        text: Its source, without redirections.
        folder: Where it ran: empty for the project folder, else relative to it or absolute; None if
            unknown.
        fixed: Whether the folder is the same wherever the shell stood when the call began.
    """

    text: str
    folder: str | None
    fixed: bool


@dataclass
class Reading:
    """All file operations of a conversation's tool calls, in order."""

    events: list[FileEvent] = field(default_factory=list)
    failed: list[FailedCommand] = field(default_factory=list)
    unclassified: list[Unclassified] = field(default_factory=list)
    root: str = ""
    """The project folder removed from absolute paths; empty if none was found."""
    printed: set[tuple[int, str]] = field(default_factory=set)
    """Message and path of the reads that did more than search the file for lines."""
    commands: list[RanCommand] = field(default_factory=list)
    """Commands of shell calls but ``cd``, in the order in which they ran."""
    ended: RanCommand | None = None
    """The whole of the last shell call, with the folder in which it left the shell."""


class Ledger:
    """Collects the effects of calls, and tracks which files exist.

    Args:
        root: Project folder to remove from absolute paths; empty for none.
        existing: Files known to exist before the first call.
    """

    def __init__(self, root: str = "", existing: Iterable[str] = ()) -> None:
        self.reading = Reading(root=root)
        self.message = 0
        self._work = 0
        self.scripts: OrderedDict[str, str] = OrderedDict()
        """Texts of files that were written whole, which may be run as scripts later."""
        self._known: dict[str, bool] = {}
        """Whether each named path exists."""
        self._inside: Counter[str] = Counter()
        """Number of files known to lie below a folder."""
        self._made: set[str] = set()
        """New folders that may still be empty."""
        self._latest: dict[str, FileEvent] = {}
        for path in existing:
            self._note(path, exists=True)

    def begin(self, message: int) -> None:
        """Begin a call of a message."""
        self.message, self._work = message, 0

    def may_take(self, work: int) -> bool:
        """Return whether the present call may take so much more work; if not, it is recorded.

        Args:
            work: Characters of a script to read, or known files to look through.
        """
        self._work += _STEP + work
        if self._work > _MAX_WORK:
            self.unknown("syntax", "more than is followed")
        return self._work <= _MAX_WORK

    def clean(self, path: str, folder: str = "") -> str | None:
        """Return the path to record; None for a file of no interest.

        Args:
            path: The raw path; data from a conversation.
            folder: Folder that it is relative to.
        """
        path = path.strip().removeprefix("file://")
        if not path or len(path) > _MAX_PATH or not path.isprintable():
            return None
        joined = posixpath.normpath(posixpath.join(folder, path))
        if joined.startswith(_DEVICES) or joined in (".", "..", "/", "-"):
            return None
        return joined.removeprefix(f"{self.reading.root}/") if self.reading.root else joined

    def exists(self, path: str) -> bool | None:
        """Return whether a file exists; None if unknown."""
        return self._known.get(path)

    def matching(self, pattern: str) -> list[str]:
        """Return the existing files that match a shell pattern; ``*`` matches no slash."""
        depth = pattern.count("/")
        if not self.may_take(len(self._known)):
            return []
        return sorted(
            path
            for path, exists in self._known.items()
            if exists and path.count("/") == depth and fnmatchcase(path, pattern)
        )

    def read(self, path: str, *, search: bool = False) -> None:
        """Record that a file's text was shown, or only what a search found; a folder has none."""
        if self.is_folder(path):
            return
        if not search:
            self.reading.printed.add((self.message, path))
        if path not in self._known:
            self._note(path, exists=True)
        self._add(FileEvent(self.message, "read", path))

    def written(self, path: str, text: str | None = None, *, created: bool | None = None) -> None:
        """Record that a whole file was written.

        Args:
            path: The file.
            text: The new text, if the call contains it.
            created: Whether the file is new; None to decide by what is known of it.
        """
        is_new = not self.exists(path) if created is None else created
        action: Action = "created" if is_new else "modified"
        self._add(FileEvent(self.message, action, path, names=_defined_names(text or "")))
        self._note(path, exists=True)
        self._keep_script(path, text)

    def modified(self, path: str, text: str = "") -> None:
        """Record that part of a file was changed."""
        self._note(path, exists=True)
        self._keep_script(path, None)
        self._add(FileEvent(self.message, "modified", path, names=_defined_names(text)))

    def appended(self, path: str) -> None:
        """Record text appended to a file, which creates it if it is known not to exist."""
        if self.exists(path) is False:
            self.written(path, created=True)
        else:
            self.modified(path)

    def deleted(self, path: str, *, folder: bool = False) -> None:
        """Record that a file, or a folder with all its contents, was deleted."""
        folder = folder or self.is_folder(path)
        self._forget(path)
        self._add(FileEvent(self.message, "deleted", path, folder=folder))

    def renamed(self, path: str, to: str) -> None:
        """Record that a file or folder was renamed."""
        if path == to:
            return
        folder, inside = self.is_folder(path), self._below(path)
        script = self.scripts.get(path)
        self._forget(path)
        for known in inside or [path]:
            self._note(to + known[len(path) :], exists=True)
        self._keep_script(to, script)
        self._add(FileEvent(self.message, "renamed", path, to, folder))

    def copied(self, path: str, to: str, *, folder: bool = False) -> None:
        """Record that a file, or a folder with all its contents, was copied."""
        if not folder and not self.is_folder(path):
            self.written(to, self.scripts.get(path))
            return
        for known in self._below(path):
            if not known.startswith(f"{to}/"):
                self._note(to + known[len(path) :], exists=True)
        self._add(FileEvent(self.message, "created", to, folder=True))

    def made_folder(self, path: str) -> None:
        """Record a new folder; ignored if it exists already."""
        if not self.is_folder(path):
            self._made.add(path)
            self._add(FileEvent(self.message, "created", path, folder=True))

    def is_folder(self, path: str) -> bool:
        """Return whether a path was created as a folder, or has known files below it."""
        return path in self._made or self._inside[path] > 0

    def failed(self, command: str, exit_code: int | None) -> None:
        """Record a call that failed."""
        line = _shortened(command, _MAX_COMMAND)
        self.reading.failed.append(FailedCommand(self.message, line, exit_code))

    def unknown(self, kind: UnknownKind, what: str, *, rewrites: bool | None = None) -> None:
        """Record a possible effect that the call does not show.

        Args:
            kind: Why it is not shown.
            what: A program, tool or path.
            rewrites: See `Unclassified`; by default as the kind says.
        """
        rewrites = kind in _REWRITE if rewrites is None else rewrites
        entry = Unclassified(self.message, kind, _shortened(what, _MAX_LABEL), rewrites)
        if entry not in self.reading.unclassified[-20:]:
            self.reading.unclassified.append(entry)

    def listing(self, output: str) -> None:
        """Take paths at the ends of an output's lines for existing files."""
        for line in output.splitlines():
            if len(line) <= _MAX_PATH and (match := _LISTED.search(line.rstrip())):
                path = self.clean(match[1])
                if path and path not in self._known:
                    self._note(path, exists=True)

    def _note(self, path: str, *, exists: bool) -> None:
        change = int(exists) - int(self._known.get(path, False))
        self._known[path] = exists
        folder = posixpath.dirname(path) if change else ""
        while folder.strip("/"):
            self._inside[folder] += change
            folder = posixpath.dirname(folder)

    def _below(self, path: str) -> list[str]:
        if self._inside[path] < 1 or not self.may_take(len(self._known)):
            return []
        return [
            known for known, there in self._known.items() if there and known.startswith(path + "/")
        ]

    def _forget(self, path: str) -> None:
        for known in [*self._below(path), path]:
            self._note(known, exists=False)
        self._made = {f for f in self._made if f != path and not f.startswith(path + "/")}
        self.scripts.pop(path, None)

    def _keep_script(self, path: str, text: str | None) -> None:
        self.scripts.pop(path, None)
        if text is not None and len(text) <= _MAX_SCRIPT and path.endswith((".py", ".sh")):
            self.scripts[path] = text
            if len(self.scripts) > _MAX_SCRIPTS:
                self.scripts.popitem(last=False)

    def _add(self, event: FileEvent) -> None:
        if self._latest.get(event.path) != event:
            self.reading.events.append(event)
        self._latest[event.path] = event
        self._latest.pop(event.to, None)


def _defined_names(text: str) -> tuple[str, ...]:
    """Return the informative names of functions and types that a piece of source defines."""
    names = dict.fromkeys(_DEFINED.findall(text[:_MAX_SCRIPT]))
    return tuple(name for name in names if not _TELLS_NOTHING.match(name))[:_MAX_NAMES]


def _shortened(text: str, limit: int) -> str:
    """Return a text on one line, printable, of bounded length."""
    line = " ".join(text[: 4 * limit].split())
    line = "".join(c if c.isprintable() else "?" for c in line)
    return line if len(line) <= limit else line[: limit - 1] + "…"


@dataclass
class FileState:
    """One path and its operations; steps are numbers that rise with time."""

    path: str
    created: bool = False
    modified: bool = False
    read: bool = False
    deleted: bool = False
    moved_to: str = ""
    original: str = ""
    """Its path before it was renamed."""
    folder: bool = False
    names: tuple[str, ...] = ()
    """Functions and types that its new text defines."""
    last: int = 0
    """Step of the latest operation."""

    @property
    def status(self) -> Status:
        """Its final status."""
        if self.moved_to:
            return "former"
        if self.deleted:
            return "temporary" if self.created else "deleted"
        if self.created:
            return "created"
        if self.modified:
            return "modified"
        return "renamed" if self.original else "read"


class Inventory:
    """Files by path.

    Args:
        states: States after earlier conversations; taken over, not copied.
    """

    def __init__(self, states: Iterable[FileState] = ()) -> None:
        self.states = {state.path: state for state in states}

    def add(self, event: FileEvent, step: int) -> None:
        """Add one event.

        Args:
            event: The operation.
            step: Its position in time.
        """
        if event.action == "renamed":
            for path in self._with_below(event):
                self._move(path, event.to + path[len(event.path) :], step)
            self.states[event.path].folder = self.states[event.to].folder = event.folder
        elif event.action == "deleted":
            for path in self._with_below(event):
                self._at(path, step).deleted = True
            self.states[event.path].folder |= event.folder
        else:
            state = self._at(event.path, step)
            state.folder = event.folder
            if event.action == "read":
                state.read = True
            else:
                self._write(state, event)

    def with_status(self, *wanted: Status, folders: bool = False) -> list[str]:
        """Return the paths with one of the statuses, in the order of their first touch."""
        return [
            state.path
            for state in self.states.values()
            if state.status in wanted and (folders or not state.folder)
        ]

    def _at(self, path: str, step: int) -> FileState:
        state = self.states.setdefault(path, FileState(path))
        state.last = step
        return state

    def _write(self, state: FileState, event: FileEvent) -> None:
        if state.deleted or state.moved_to:
            # A file that existed before and is written again is modified, not created.
            state.modified = not state.created
            state.deleted, state.moved_to, state.original = False, "", ""
        elif event.action == "created" and not (state.modified or state.read or state.original):
            state.created = True
        elif not state.created:
            state.modified = True
        state.names = tuple(dict.fromkeys([*state.names, *event.names]))

    def _move(self, path: str, to: str, step: int) -> None:
        old = self._at(path, step)
        replaced = self.states.pop(to, None)
        new = self._at(to, step)
        new.created, new.read, new.names = old.created, old.read, old.names
        # Moved over another file: to a reader of the project that file was modified.
        over = replaced is not None and replaced.status in ("modified", "read", "renamed")
        new.modified = old.modified or over
        new.original = old.original or path
        new.folder = old.folder
        old.moved_to = to
        if new.original == to:
            new.original = ""

    def _with_below(self, event: FileEvent) -> list[str]:
        if not event.folder:
            return [event.path]
        below = [
            known
            for known, state in self.states.items()
            if known.startswith(event.path + "/") and not state.deleted and not state.moved_to
        ]
        return [*below, event.path]


def inventory_of(events: Iterable[FileEvent]) -> Inventory:
    """Return the state of each file; an event's message is its step."""
    inventory = Inventory()
    for event in events:
        inventory.add(event, event.message)
    return inventory
