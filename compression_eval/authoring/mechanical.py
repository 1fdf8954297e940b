"""Probes that need no model: what tool calls and their results tell, if two signs agree on it.

First come the questions, rows of ``mechanical.yaml``, and how answers become probes; then what is
open by the task list and what was committed; then what was done to files: a call and its result, or
another message, have to say that a file was changed. Lists of changed files leave out what
sub-agents, formatters and the like wrote. A kind of question is here only while at least four of
five were good on sessions that it was not made with.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain, combinations
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from compression_eval.authoring.check import faults, tells, warnings
from compression_eval.authoring.history import (
    MAX_COMMAND,
    Candidate,
    Dropped,
    Harvest,
    History,
    command_line,
    draft,
    fact,
)
from compression_eval.file_ops.calls import Call, file_outcome
from compression_eval.file_ops.ledger import FileEvent
from compression_eval.file_ops.naming import mentioned_files
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
from compression_eval.fixtures.banks import AnswerKey, ExpectedFact, Probe, ProbeType
from compression_eval.fixtures.models import Language
from compression_eval.text.lookup import normalise, other_paths

_MAX_EVIDENCE = 6
_PLACE = re.compile(r"\{(\w+)\}")

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_HASH = r"(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}"
_CODE = r"[A-Z][A-Z0-9]{1,9}-\d{2,6}|[A-Z]{1,5}\d{3,6}"
_SNAKE = r"_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+"
_CAMEL = r"[a-z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]+){2,}"
_PORT = r"(?<=localhost:)\d{4,5}|(?<=127\.0\.0\.1:)\d{4,5}|(?<=port=)\d{4,5}|(?<=port )\d{4,5}"
_ISSUE = r"(?<=\s)#\d{2,6}"
_NAME = re.compile(
    rf"(?<![\w.-])(?:{_UUID}|{_HASH}|{_CODE}|{_SNAKE}|{_CAMEL})(?![\w-])|(?:{_PORT})(?!\w)|{_ISSUE}\b"
)
_COMMON = frozenset([
    "TypeScript", "JavaScript", "Node.js", "GitHub", "GitLab", "CoffeeScript", "PowerShell",
    "WebSocket", "PostgreSQL", "MySQL", "SQLite", "NodeJS", "OpenAI", "ChatGPT", "DevOps", "LaTeX",
    "YouTube", "LinkedIn", "MacOS", "IntelliJ", "PyCharm", "JetBrains",
])  # fmt: skip
"""Names that everybody knows."""
_MIN_NAME, _MAX_NAME = 4, 80
_MAX_NAMED_IN = 200_000


def identifiers_in(text: str) -> list[str]:
    """Return what stands for one thing in a text, each once: files, then symbols, codes, ports.

    Args:
        text: Any text; only its first 200,000 characters are read.
    """
    text = text[:_MAX_NAMED_IN]
    names = [*mentioned_files(text), *(match[0] for match in _NAME.finditer(text))]
    return [
        name
        for name in dict.fromkeys(names)
        if _MIN_NAME <= len(name) <= _MAX_NAME and name.isprintable() and name not in _COMMON
    ]


class _Row(BaseModel):
    """A question that needs no model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: ProbeType
    origin: str
    like: str = ""
    answers: Literal["texts", "files"] = "texts"
    min: int = 1
    max: int | None = None
    keys: tuple[str, ...] = ()
    en: str
    zh: str
    ja: str


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    texts: dict[str, dict[Language, str]]
    probes: dict[str, _Row] = Field(min_length=1)


@cache
def _table() -> _Table:
    text = (files(__package__) / "mechanical.yaml").read_text(encoding="utf-8")
    return _Table.model_validate(yaml.safe_load(text))


def wording(name: str, language: Language) -> str:
    """Return one of the texts beside the questions, in a language."""
    return _table().texts[name][language]


@dataclass(frozen=True)
class Answer:
    """One thing that a history tells, and the question that it answers or helps to answer."""

    row: str
    """The row of the question in ``mechanical.yaml``."""
    text: str
    messages: Iterable[int]
    """Where it may be stated; those that do state it are its evidence."""
    values: Mapping[str, str] = field(default_factory=dict)
    """What is put into the wording; from conversations, and never read as a place itself."""
    forms: Sequence[str] = ()
    """Other ways to state it."""
    also: Sequence[str] = ()
    """What counts as an answer too, but is no evidence of it."""
    key: str = ""
    """The list of the answer key that it stands in, where the row has several."""


def questions(history: History, answers: Iterable[Answer]) -> Iterator[tuple[Probe, str]]:
    """Yield a probe, and what it is made after, for each question with a fit number of answers.

    Answers to one question are those with the same row and values.

    Args:
        history: What they come from.
        answers: The most telling first; one that was found in several places may come repeatedly.
    """
    asked: dict[tuple[str, tuple[tuple[str, str], ...]], dict[str, list[Answer]]] = {}
    for answer in answers:
        same = asked.setdefault((answer.row, tuple(answer.values.items())), {})
        same.setdefault(answer.text, []).append(answer)
    for (name, items), found in asked.items():
        row, values = _table().probes[name], dict(items)
        if len(found) < row.min or (row.max is not None and len(found) > row.max):
            continue
        facts = [_fact_of(history, row, same) for same in found.values()]
        key = {
            part: [text for text, (one, *_) in found.items() if one.key in ("", part)]
            for part in row.keys
        }
        pieces = _PLACE.split(getattr(row, history.language))  # text and place in turn
        pieces[1::2] = [values[place] for place in pieces[1::2]]
        probe = draft(
            history,
            row.type,
            "".join(pieces),
            facts,
            wording("join", history.language).join(item.fact for item in facts),
            f"mechanical:{row.origin}",
            AnswerKey.model_validate(key) if key else None,
        )
        yield probe, row.like or name


def _fact_of(history: History, row: _Row, places: Sequence[Answer]) -> ExpectedFact:
    """Return an answer that was found in some places as an expected fact."""
    answer = places[0]
    text, forms, also = answer.text, list(answer.forms), list(answer.also)
    if row.answers == "files":
        also.append(text)
        text = history.project_path(text)
        # A file's bare name counts too where no other file has it.
        name = posixpath.basename(text)
        if text.startswith("/"):  # nobody knows where the project begins
            forms.extend(_endings(text, history.files))
        same = {known for known in history.files if posixpath.basename(known) == name}
        if name != text and same <= {text, name}:
            bare, paths = normalise(name), [normalise(text)]
            if not any(other_paths(bare, paths, known.normalised) for known in history.texts):
                forms.append(name)
    messages = {message for place in places for message in place.messages}
    stated = history.stated_in([text, *forms], messages)
    if len(stated) > _MAX_EVIDENCE:  # the first and the latest
        stated = [*stated[: _MAX_EVIDENCE // 2], *stated[-(_MAX_EVIDENCE // 2) :]]
    return fact(text, stated, [*forms, *also])


def _endings(path: str, files: Iterable[str]) -> Iterator[str]:
    """Yield the ends of an absolute path that are the end of no other file, from two parts on."""
    parts = path.strip("/").split("/")
    others = [f"/{known.lstrip('/')}" for known in files if known != path]
    for start in range(len(parts) - 2, 0, -1):
        ending = "/".join(parts[start:])
        if not any(other.endswith(f"/{ending}") for other in others):
            yield ending


_MAX_OF_A_KIND = 4
"""Probes of one kind at one cut."""
_MAX_CALLS_LATER = 5
"""Calls after which a list that was not written again no longer tells what is open."""
_MAX_TASK = 200
_NOT_LETTER = re.compile(r"[^a-z]")
_MAX_READ = 20_000
_COMMITTED = re.compile(
    r"^\[(?P<branch>[\w./#-]+)(?: \(root-commit\))? (?P<hash>[0-9a-f]{7,40})\] "
    r"(?P<subject>\S.{0,150})$",
    re.MULTILINE,
)
_COMMITS = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
_MOVES_HEAD = re.compile(
    r"\bgit\b[^|;&\n]*\b(?:reset|rebase|revert|cherry-pick|merge|pull|am|stack)\b"
)
_TAKES_BACK = re.compile(r"\bgit\b[^|;&\n]*\b(?:reset|revert|rebase -i|rebase --interactive)\b")
_MIN_SUBJECT_WORDS = 2
_MAX_COMMITS = 8
TaskState = Literal["open", "current", "done"]
_TASK_STATES: dict[TaskState, tuple[str, ...]] = {
    "open": ("pending", "todo", "open", "notstarted"),
    "current": ("inprogress", "active", "doing"),
    "done": ("completed", "complete", "done", "cancelled", "canceled", "deleted"),
}
_TASK_TEXTS = ("content", "step", "text", "title", "subject", "task", "description", "name")
_TASK_IDS = ("id", "taskId", "task_id")
_TASK_NUMBER = re.compile(r"#(\w+)")


def mechanical(history: History) -> Harvest:
    """Return what can be asked about a history without a model; the same for the same history."""
    harvest = Harvest()
    # Of each type those come first that are the most telling.
    answers = chain(_tasks(history), about_files(history), _commits(history))
    found: dict[str, list[Candidate]] = {}
    for probe, kind in questions(history, answers):
        # Nobody reads these before they are used, so a doubt is enough.
        if wrong := faults(probe, history) or warnings(probe, history):
            harvest.dropped.append(Dropped.of(probe, wrong))
        else:
            found.setdefault(kind, []).append(Candidate.of(probe, history, kind))
    for same in found.values():
        # Of many, the latest, and others at equal distances before it.
        few = min(len(same), _MAX_OF_A_KIND)
        harvest.candidates.extend(same[len(same) * n // few - 1] for n in range(1, few + 1))
    return harvest


def _tasks(history: History) -> Iterator[Answer]:
    """Yield what is open by the task list, while the work has not moved on since."""
    tasks, written = latest_tasks(history.calls)
    left = [task for task in tasks if task.state != "done"]
    if not written or any(request > max(written) for request in history.requests):
        return
    later = [call for call in history.calls if call.message > max(written)]
    committed = any(_COMMITS.search(command_line(call)) for call in later)
    if committed or len(later) > _MAX_CALLS_LATER:
        return
    for task in left:
        # A name in a task that no other task has stands for it as well.
        elsewhere = " ".join(other.text for other in tasks if other != task)
        names = [
            name
            for name in identifiers_in(task.text)
            if name not in elsewhere and ("/" in name or not mentioned_files(name))
        ]
        forms = [task.other] if task.other else []
        yield Answer("tasks_open", task.text, written, forms=forms, also=names)


@dataclass(frozen=True)
class Task:
    """One entry of a task list."""

    text: str
    state: TaskState
    other: str = ""
    """Another wording of it, where the agent keeps one."""


def latest_tasks(calls: list[Call]) -> tuple[list[Task], list[int]]:
    """Return the task list that some calls left, and the messages that wrote what still holds.

    Known are calls that write the whole list, calls that change entries by id (``merge``), and
    pairs of tools of which one adds a task and one changes its state.
    """
    tasks: dict[str, Task] = {}
    messages: list[int] = []
    for call in calls:
        if file_outcome(call.result or "", call.error, shows_content=True).failed:
            continue  # a list that was refused was never written
        name = _NOT_LETTER.sub("", call.name.lower())
        if name == "taskcreate":
            number = _TASK_NUMBER.search(call.result or "")
            _put(tasks, number[1] if number else str(len(tasks) + 1), call.arguments)
        elif name == "taskupdate":
            if _task_id(call.arguments) not in tasks:
                continue
            _put(tasks, _task_id(call.arguments), call.arguments)
        elif (entries := _entries(call.arguments)) is not None:
            if call.arguments.get("merge") is not True:
                tasks, messages = {}, []
            for position, entry in enumerate(entries):
                _put(tasks, _task_id(entry) or str(position), entry)
        else:
            continue
        messages.append(call.message)
    return list(tasks.values()), list(dict.fromkeys(messages)) if tasks else []


def _entries(arguments: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the argument that is a list of tasks: every item has a state, and most a text."""
    merge = arguments.get("merge") is True  # a change by id may name no text
    return next(
        (
            value
            for value in arguments.values()
            if isinstance(value, list)
            and value
            and all(isinstance(item, dict) and _task_state(item) for item in value)
            and (merge or any(map(_task_text, value)))
        ),
        None,
    )


def _put(tasks: dict[str, Task], identifier: str, entry: Mapping[str, Any]) -> None:
    """Enter or change a task; what the entry leaves out stays as it was."""
    before = tasks.get(identifier, Task("", "open"))
    if text := _task_text(entry) or before.text:
        state = _task_state(entry) or before.state
        tasks[identifier] = Task(text, state, _plain(entry.get("activeForm")) or before.other)


def _task_id(entry: Mapping[str, Any]) -> str:
    ids = (entry.get(key) for key in _TASK_IDS)
    return next((str(value) for value in ids if isinstance(value, str | int)), "")


def _task_state(entry: Mapping[str, Any]) -> TaskState | None:
    status = entry.get("status")
    word = _NOT_LETTER.sub("", status.lower()) if isinstance(status, str) else ""
    return next((state for state, words in _TASK_STATES.items() if word in words), None)


def _task_text(entry: Mapping[str, Any]) -> str:
    return next((text for key in _TASK_TEXTS if (text := _plain(entry.get(key)))), "")


def _plain(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= _MAX_TASK and text.isprintable() else ""


def _commits(history: History) -> Iterator[Answer]:
    """Yield the commits and the last of them, if the commands and git give the same subjects."""
    found: list[Answer] = []
    whole = last = True
    calls = (call for call in history.calls if call.result is not None)
    for call in (call for call in calls if deed_of(call.name) == "shell"):
        line = command_line(call)
        if _COMMITS.search(line):
            made = list(_COMMITTED.finditer((call.result or "")[:_MAX_READ]))
            told = " ".join(line.split())
            places = history.with_results(call.message)
            read = [
                Answer("last_commit", match["subject"].strip(), places, also=[match["hash"]])
                for match in made
                if match["subject"].isprintable() and match["subject"].strip() in told
            ]
            last = bool(made) and len(read) == len(made)
            whole = whole and last and "--amend" not in line
            found += read
        elif _MOVES_HEAD.search(line):
            last = False
            whole = whole and not _TAKES_BACK.search(line)
    if found and last and len(found[-1].text.split()) >= _MIN_SUBJECT_WORDS:
        yield found[-1]
    if whole and 1 < len(found) <= _MAX_COMMITS:
        yield from (replace(answer, row="commits") for answer in found)


_MAX_SOURCE = 200_000
_MAX_FILES = 8
"""Files up to which all are asked for; of more, those of the folders with the most."""
_MAX_FOLDERS = 3
_MIN_PLACES = 2
"""Messages that have to name a file: the call alone may have done something else."""
_DELEGATES = re.compile(
    r"(?:agents?|task|delegate|spawn|workflow|workers?|send_?message|send_?input)$"
)
"""Names of tools by which other agents work, whose calls are not shown here."""
_LOOKS = re.compile(
    r"^(?:rg|wait|yield|advisor)$|(?:^|_)(?:search|get|list|read|view|query|fetch|find|ask\w*)(?:_|$)"
    r"|wait_agent$"
)
"""Tools that only show something or put questions, among those that are not known."""
_LEAVES = re.compile(f"{_LOOKS.pattern}|{_DELEGATES.pattern}")
"""Tools by which this agent writes nothing itself."""
_MAY_WRITE = re.compile(r"write|append|save|copy|rename|unlink|remove|open\(|\$", re.IGNORECASE)
"""What code says, given beside its interpreter, that changes files."""
_PART = re.compile(r"[^|;&\n]+")
"""The single commands of a command line."""
_GIT = re.compile(r"\bgit\b")
_MOVES = re.compile(r"\b(?:mv|rm|rmdir|unlink|rename|[Mm]ove-[Ii]tem|[Rr]emove-[Ii]tem)\s")
"""Commands that move or remove what they name."""
_PUTS_BACK = re.compile(r"\b(?:checkout|restore)\s")
"""Subcommands of git that may put back what they name."""
_COMPUTED = re.compile(r"[$*?`{]")
_TEMPORARY = ("/tmp/", "/private/tmp/", "/var/tmp/", "/private/var/folders/", "/var/folders/")  # noqa: S108
"""Where files are nobody's work."""
_AGENT_FOLDER = re.compile(r"/\.(?:claude|codex|pi|gemini|cursor|opencode|hermes|factory|copilot)/")
"""Where agents keep plans, notes and settings of their own."""
_HOME = re.compile(r"/(?:home/[^/]+|Users/[^/]+|root)/(?:\.|[^/]+$)")
"""Files in a home folder that belong to no project."""
_NO_FILE = re.compile(r"\\|^\w+:")
"""Addresses of other things, and what commands of Windows name."""
_EDITING = ("write", "edit", "editor", "patch")
"""What calls do whose arguments show what became of each line."""
_SAYS_DONE = re.compile(
    r"\b(?:updated|success\w*|applied|created|wrote|written|edited|replaced|saved)\b|^\{\}$", re.I
)
_MAX_SAID = 300
_PATCHED_FILE = re.compile(r"^(?:\*\*\* (?:Update|Add) File: |\+\+\+ (?:b/)?)(\S.*?)\s*$")
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
_CONVENTIONAL = frozenset([
    "schema", "schemas", "model", "models", "type", "types", "interface", "interfaces", "enum",
    "enums", "view", "views", "form", "forms", "route", "routes", "router", "error", "errors",
    "exception", "exceptions", "hook", "hooks", "constants", "middleware", "serializers", "dto",
    "entity", "entities", "controller", "service", "repository", "handler", "handlers", "api", "db",
    "database", "store", "client", "server", "cli", "app", "lib", "mod", "page", "layout",
])  # fmt: skip
"""Names of files in which anybody would look for a definition first."""
_MIN_ALIKE = 4
"""Letters with which two words begin alike, so that one tells the other."""


def about_files(history: History) -> Iterator[Answer]:
    """Yield what was done to files, the most telling first."""
    edits, moves = list(_edits(history)), _Moves(history)
    yield from _changed_lists(history, moves, edits)
    yield from _defining(history, moves, edits)


def _is_work(history: History, path: str) -> bool:
    """Return whether a path is in the project: plans, notes and settings of agents are not."""
    if history.reading.root and path.startswith("/"):
        return False  # with a root, what is absolute lies elsewhere
    outside = path.startswith(("~", "../", *_TEMPORARY)) or _HOME.match(path)
    return not (outside or _AGENT_FOLDER.search(f"/{path}") or _NO_FILE.search(path))


def _operands(line: str) -> Iterator[str]:
    """Yield what the commands of a line name that move, remove or put back files."""
    for part in _PART.findall(line):
        found = [match.start() for match in [_MOVES.search(part)] if match]
        if (git := _GIT.search(part)) and _PUTS_BACK.search(part, git.end()):
            found.append(git.start())
        if found:
            for word in part[min(found) :].split()[1:]:
                yield word.strip("\"'").rstrip("/")


@dataclass(frozen=True)
class _Moves:
    """Which files the commands of a history may have moved, removed or put back, and when."""

    history: History

    @cached_property
    def _named(self) -> dict[str, int]:
        """What they name, with the latest message that does."""
        return {
            operand.lstrip("./"): message
            for message, line in self._lines
            for operand in _operands(line)
        }

    @cached_property
    def _anything(self) -> int:
        """The latest message with a command that may have moved any file; -1 without one."""
        git = [i.message for i in self.history.reading.unclassified if i.kind == "git"]
        unclear = [
            message
            for message, line in self._lines
            if len(line) >= MAX_COMMAND or any(map(_COMPUTED.search, _operands(line)))
        ]
        return max([*git, *unclear], default=-1)

    @cached_property
    def _lines(self) -> list[tuple[int, str]]:
        return [(call.message, command_line(call)) for call in self.history.calls]

    def spare(self, path: str, since: int) -> bool:
        """Return whether no command after a message may have moved or removed a file."""
        if self._anything > since:
            return False
        whole = f"/{path}/"
        slashes = [index for index, char in enumerate(whole) if char == "/"]
        runs = (whole[start + 1 : end] for start, end in combinations(slashes, 2))
        return not any(self._named.get(run, -1) > since for run in runs)


def _spelled(name: str) -> str:
    """Return a tool's name in lower case, its words parted by ``_``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z]+", "_", name).lower()


@dataclass(frozen=True)
class _Written:
    """The files that were written before a cut."""

    history: History
    moves: _Moves
    edits: Sequence["Edit"]

    @cached_property
    def own(self) -> bool:
        """Whether every file that this agent wrote itself can be named.

        It cannot where it called a tool that is not known or ran code that nobody read, where
        something outside of the project's folder may be a part of it, and where an edit was
        taken back by hand.
        """
        lines = {call.message: command_line(call) for call in self.history.calls}
        unread = any(
            (item.kind == "tool" and not _LEAVES.search(_spelled(item.what)))
            or (item.kind == "code" and _MAY_WRITE.search(lines.get(item.message, "$")))
            for item in self.history.reading.unclassified
        )
        changes = {(edit.path, edit.old, edit.new) for edit in self.edits if edit.old != edit.new}
        undone = any((path, new, old) in changes for path, old, new in changes)
        return not (unread or undone or any(map(self._unclear, self._events)))

    def _unclear(self, event: FileEvent) -> bool:
        """Return whether nobody can tell if a file belongs to the project."""
        path = event.path
        elsewhere = path.startswith(_TEMPORARY) or _AGENT_FOLDER.search(path) or _HOME.match(path)
        outside = self.history.reading.root and path.startswith("/") and not elsewhere
        return bool(_NO_FILE.search(path) or outside)

    @cached_property
    def _events(self) -> list[FileEvent]:
        events = self.history.reading.events
        return [event for event in events if event.action in ("created", "modified")]

    @cached_property
    def written(self) -> list[FileEvent]:
        """What was written in the project; empty if that is not known for sure."""
        events = self._events if self.own else []
        return [e for e in events if not e.folder and _is_work(self.history, e.path)]

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
        created = {event.path for event in events if event.action == "created"}
        there = [event for event in events if history.still_there(event.path)]
        done = {event.path for event in there if event.message in self._said_done}
        doubtful = {event.path for event in there} - done
        if any(len(history.stated_in([path])) < _MIN_PLACES for path in doubtful):
            return
        latest = {event.path: event.message for event in there}
        if not all(self.moves.spare(path, message) for path, message in latest.items()):
            return
        for event in there:
            key = "files_created" if event.path in created else "files_modified"
            places = history.with_results(event.message)
            yield Answer(row, event.path, places, values, key=key)


def _changed_lists(history: History, moves: _Moves, edits: Sequence["Edit"]) -> Iterator[Answer]:
    """Yield what was changed in all, or in the folders with the most."""
    found = _Written(history, moves, edits)
    paths = dict.fromkeys(event.path for event in found.written)
    if len(paths) <= _MAX_FILES:
        yield from found.answers("files_changed", found.written)
        return
    folders = Counter(posixpath.dirname(path) for path in paths if history.still_there(path))
    for folder, number in folders.most_common(_MAX_FOLDERS):
        if folder and number > 1:
            inside = [e for e in found.written if posixpath.dirname(e.path) == folder]
            shown = history.project_path(folder)
            yield from found.answers("folder_changed", inside, folder=f"{shown}/")


@dataclass(frozen=True)
class Edit:
    """One replacement that was carried out; ``old`` is empty for a whole file."""

    message: int
    path: str
    old: str
    new: str
    whole: bool
    """Whether nothing is left of what the file was before."""
    over: bool
    """Whether that was a file of which nobody knows what it had."""

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
            if path:
                whole = not old and deed_of(call.name) != "patch"
                over = whole and touched[path] != "created"
                yield Edit(call.message, path, old, new, whole, over)


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


def _defining(history: History, moves: _Moves, edits: Sequence[Edit]) -> Iterator[Answer]:
    """Yield where a new function or type was written, if in one file that is still there.

    It has to come up elsewhere; tests and what is only used where it stands are nobody's question.
    """
    places: dict[str, set[str]] = {}
    written: defaultdict[str, list[int]] = defaultdict(list)
    for edit in edits:
        there = [n for n, paths in places.items() if edit.path in paths] if edit.whole else []
        for name in [*there, *edit.defined_before]:
            if name not in edit.defined:
                places.pop(name, None)  # taken out again
        for name in edit.defined:
            if name in written or not (edit.over or name in edit.defined_before):
                places.setdefault(name, set()).add(edit.path)
                written[name].append(edit.message)
    shown_edits = {(edit.message, edit.path) for edit in edits}
    hidden = {  # the latest change of each file that no edit shows
        event.path: event.message
        for event in history.reading.events
        if event.action != "read" and (event.message, event.path) not in shown_edits
    }
    asked: set[str] = set()
    for name, paths in places.items():
        path = min(paths)
        work = history.still_there(path) and _is_work(history, path) and not _TEST.search(path)
        if len(paths) != 1 or not work or path in asked or _names_file(name, path):
            continue
        since = written[name][-1]
        if hidden.get(path, -1) > since or not moves.spare(path, since):
            continue
        shown = (i for i in range(min(written[name])) if history.messages[i].role == "tool")
        known = any(True for _ in history.stating([name], shown))
        if not known and history.comes_up(name, history.with_results(*written[name])):
            asked.add(path)
            yield Answer("file_defines", path, written[name], {"name": name})


def _names_file(name: str, path: str) -> bool:
    """Return whether a file's name follows from that of a definition in it, or from convention."""
    stem = posixpath.splitext(posixpath.basename(path))[0].lower()
    given, words = (
        {word.lower()[:_MIN_ALIKE] for word in _WORD.findall(text)}
        for text in (name, posixpath.splitext(posixpath.basename(path))[0])
    )
    return stem in _CONVENTIONAL or bool(words & given)
