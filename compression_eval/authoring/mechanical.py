"""Probes that need no model: what tool calls and their results tell, if two signs agree on it.

Each kind of question is a row of ``mechanical.yaml``. `mechanical` goes through what the session
tells: what is open by the task list, what was committed, which files were changed, and where new
functions were written. `questions` makes probes of these answers. A file counts as changed if a
call and its result, or another message, say so. Lists of changed files leave out what sub-agents,
formatters and the like wrote. A kind of question is here only while at least four of five were good
on sessions that it was not made with.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any, cast

import yaml

from compression_eval.authoring.check import faults, tells, warnings
from compression_eval.authoring.history import (
    Candidate,
    Dropped,
    Harvest,
    History,
    command_line,
    draft,
    fact,
)
from compression_eval.file_ops import tools
from compression_eval.file_ops.calls import Call, file_outcome
from compression_eval.file_ops.ledger import FileEvent
from compression_eval.file_ops.naming import mentioned_files
from compression_eval.fixtures.banks import AnswerKey, ExpectedFact, Probe
from compression_eval.fixtures.models import Language
from compression_eval.text.lookup import normalise, other_paths

_MAX_OF_A_KIND = 4
"""Probes of one kind at one cut."""
_MAX_EVIDENCE = 6
_PLACE = re.compile(r"\{(\w+)\}")


@cache
def _table() -> dict[str, dict[str, dict[str, Any]]]:
    data = yaml.safe_load((files(__package__) / "mechanical.yaml").read_text(encoding="utf-8"))
    return cast(dict[str, dict[str, dict[str, Any]]], data)


def wording(name: str, language: Language) -> str:
    """Return one of the texts next to the questions, in a language."""
    return str(_table()["texts"][name][language])


@dataclass(frozen=True)
class Answer:
    """One thing that a history tells, and the question that it answers or helps to answer."""

    kind: str
    """Of the question, in ``mechanical.yaml``."""
    text: str
    messages: Iterable[int]
    """Where it may be stated; those that do state it are its evidence."""
    values: Mapping[str, str] = field(default_factory=dict)
    """What is put into the wording; from conversations, and never read as a place itself."""
    also: Sequence[str] = ()
    """What counts as an answer too, but is no evidence of it."""
    key: str = ""
    """The list of the answer key that it belongs to, where the kind has several."""


def mechanical(history: History) -> Harvest:
    """Return what can be asked about a history without a model; the same for the same history."""
    harvest = Harvest()
    edits = list(_edits(history))
    changed = [e for e in history.reading.events if e.action in ("created", "modified")]
    known = _all_known(history, changed, edits)
    if not known:
        harvest.notes.append(_NOT_ALL_KNOWN)
    # Of each type those come first that are the most telling.
    answers = chain(
        _tasks(history),
        _changed(history, changed) if known else (),
        _definitions(history, edits),
        _commits(history),
    )
    found: dict[str, list[Candidate]] = {}
    for probe in questions(history, answers):
        kind = probe.origin.removeprefix("mechanical:")
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


def questions(history: History, answers: Iterable[Answer]) -> Iterator[Probe]:
    """Yield a probe for each question that has not too many answers.

    Args:
        history: What the answers come from.
        answers: The most telling first; those of the same kind with the same values answer one
            question, and one that was found in several places may come repeatedly.
    """
    asked: dict[tuple[str, tuple[tuple[str, str], ...]], dict[str, list[Answer]]] = {}
    for answer in answers:
        same = asked.setdefault((answer.kind, tuple(answer.values.items())), {})
        same.setdefault(answer.text, []).append(answer)
    for (name, items), found in asked.items():
        kind, values = _table()["probes"][name], dict(items)
        if len(found) > kind["max"]:
            continue
        facts = [_fact_of(history, same, kind) for same in found.values()]
        key = {
            part: [text for text, (one, *_) in found.items() if one.key in ("", part)]
            for part in kind.get("keys", ())
        }
        pieces = _PLACE.split(kind[history.language])  # text and place in turn
        pieces[1::2] = [values[place] for place in pieces[1::2]]
        yield draft(
            history,
            kind["type"],
            "".join(pieces),
            facts,
            wording("join", history.language).join(item.fact for item in facts),
            f"mechanical:{name}",
            AnswerKey.model_validate(key) if key else None,
        )


def _fact_of(history: History, places: Sequence[Answer], kind: Mapping[str, Any]) -> ExpectedFact:
    """Return an answer that was found in some places as an expected fact."""
    text, forms, also = places[0].text, [], list(places[0].also)
    if kind.get("answers") == "files":
        also.append(text)
        text = history.project_path(text)
        # A file's bare name counts too where no other file has it.
        name, paths = posixpath.basename(text), [normalise(text)]
        same = {known for known in history.files if posixpath.basename(known) == name}
        others = (other_paths(normalise(name), paths, known.normalised) for known in history.texts)
        if name != text and same <= {text, name} and not any(others):
            forms.append(name)
    messages = {message for place in places for message in place.messages}
    stated = list(history.stating([text, *forms], messages))
    if len(stated) > _MAX_EVIDENCE:  # the first and the latest
        stated = [*stated[: _MAX_EVIDENCE // 2], *stated[-(_MAX_EVIDENCE // 2) :]]
    return fact(text, stated, [*forms, *also])


# What is open by the task list.

_MAX_CALLS_LATER = 5
"""Calls after which a list that was not written again no longer tells what is open."""
_MAX_TASK = 200
_NOT_LETTER = re.compile(r"[^a-z]")
_OPEN = ("pending", "todo", "open", "notstarted", "inprogress", "active", "doing")
_DONE = ("completed", "complete", "done", "cancelled", "canceled", "deleted")
_TASK_TEXTS = ("content", "step", "text", "title", "subject", "task", "description", "name")
_TASK_IDS = ("id", "taskId", "task_id")
_NAME = re.compile(r"(?<![\w./-])(?:[A-Z]+-\d{2,6}|\w+_\w+|[a-z]+(?:[A-Z][a-z0-9]+)+)(?![\w./-])")
"""A name in a task that stands for one thing: a code, or a name of the source."""


@dataclass(frozen=True)
class Task:
    """One entry of a task list."""

    text: str = ""
    done: bool = False


def _tasks(history: History) -> Iterator[Answer]:
    """Yield what is open by the task list, while the work has not moved on since."""
    tasks, written = latest_tasks(history.calls)
    if not written or any(request > max(written) for request in history.requests):
        return
    later = [call for call in history.calls if call.message > max(written)]
    committed = any(_COMMITS.search(command_line(call)) for call in later)
    if committed or len(later) > _MAX_CALLS_LATER:
        return
    for task in tasks:
        if task.done:
            continue
        # A name in a task that no other task has stands for it as well.
        elsewhere = " ".join(other.text for other in tasks if other != task)
        paths = [name for name in mentioned_files(task.text) if "/" in name]
        names = [name for name in [*paths, *_NAME.findall(task.text)] if name not in elsewhere]
        yield Answer("tasks_open", task.text, written, also=names)


def latest_tasks(calls: Iterable[Call]) -> tuple[list[Task], list[int]]:
    """Return the task list that some calls left, and the messages that wrote what is still true.

    Known are calls that write the whole list, calls that change entries by id (``merge``), and
    pairs of tools of which one adds a task and one changes its state.
    """
    tasks: dict[str, Task] = {}
    messages: list[int] = []
    for call in calls:
        if file_outcome(call.result or "", call.error, shows_content=True).failed:
            continue  # a list that was refused was never written
        name, entries = _NOT_LETTER.sub("", call.name.lower()), _entries(call.arguments)
        if name == "taskcreate":
            number = re.search(r"#(\w+)", call.result or "")
            changed = {number[1] if number else str(len(tasks) + 1): call.arguments}
        elif name == "taskupdate":
            identifier = _task_id(call.arguments)
            changed = {identifier: call.arguments} if identifier in tasks else {}
        else:
            if entries and call.arguments.get("merge") is not True:
                tasks, messages = {}, []
            changed = {_task_id(entry) or str(at): entry for at, entry in enumerate(entries)}
        for identifier, entry in changed.items():
            before = tasks.get(identifier, Task())
            done = _is_done(entry)
            if text := _task_text(entry) or before.text:
                tasks[identifier] = Task(text, before.done if done is None else done)
        messages.extend([call.message] if changed else [])
    return list(tasks.values()), list(dict.fromkeys(messages)) if tasks else []


def _entries(arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the argument that is a list of tasks: every item has a state, and most a text."""
    merge = arguments.get("merge") is True  # a change by id may name no text
    lists = (value for value in arguments.values() if isinstance(value, list))
    return next(
        (
            items
            for items in lists
            if all(isinstance(item, dict) and _is_done(item) is not None for item in items)
            and (merge or any(map(_task_text, items)))
        ),
        [],
    )


def _is_done(entry: Mapping[str, Any]) -> bool | None:
    """Return whether a task is done; None if the entry has no known state."""
    word = _NOT_LETTER.sub("", str(entry.get("status")).lower())
    return word in _DONE if word in (*_DONE, *_OPEN) else None


def _task_id(entry: Mapping[str, Any]) -> str:
    ids = (entry.get(key) for key in _TASK_IDS)
    return next((str(value) for value in ids if isinstance(value, str | int)), "")


def _task_text(entry: Mapping[str, Any]) -> str:
    text = " ".join((tools.text_of(entry, _TASK_TEXTS) or "").split())
    return text if len(text) <= _MAX_TASK and text.isprintable() else ""


# What was committed.

_MAX_COMMITS = 8
_MIN_SUBJECT_WORDS = 2
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


def _commits(history: History) -> Iterator[Answer]:
    """Yield the commits and the last of them, if the commands and git give the same subjects."""
    found: list[Answer] = []
    whole = last = True
    for call in history.calls:
        line = command_line(call)
        if call.result is None:
            continue
        if _COMMITS.search(line):
            made = list(_COMMITTED.finditer(call.result[:_MAX_READ]))
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
            whole = last = False
    if found and last and len(found[-1].text.split()) >= _MIN_SUBJECT_WORDS:
        yield found[-1]
    if whole and 1 < len(found) <= _MAX_COMMITS:
        yield from (replace(answer, kind="commits") for answer in found)


# Which files were changed.

_MAX_FILES = 8
"""Files up to which all are asked for; of more, those of the folders with the most."""
_MAX_FOLDERS = 3
_MIN_PLACES = 2
"""Messages that have to name a file: the call alone may have done something else."""
_LEAVES = re.compile(
    r"^(?:rg|wait|yield|advisor)$|(?:^|_)(?:search|get|list|read|view|query|fetch|find|ask\w*)(?:_|$)"
    r"|wait_agent$|(?:agents?|task|delegate|spawn|workflow|workers?|send_?message|send_?input)$"
)
"""Unknown tools by which this agent writes nothing itself: they show something, put questions, or
have other agents work, whose calls are not shown here."""
_MAY_WRITE = re.compile(r"write|append|save|copy|rename|unlink|remove|open\(|\$", re.IGNORECASE)
"""What code says, given next to its interpreter, that changes files."""
_MOVES_COMPUTED = re.compile(
    r"(?:\b(?:mv|rm|rmdir|unlink|rename|[Mm]ove-[Ii]tem|[Rr]emove-[Ii]tem)|\bgit\b[^|;&\n]*\b"
    r"(?:checkout|restore))\s[^|;&\n]*[$*?`{]"
)
"""A command that moves, removes or puts back what only running it would tell."""
_ASIDE = re.compile(
    r"(?:/private)?/(?:tmp|var/tmp|var/folders)/|/(?:home/[^/]+|Users/[^/]+|root)/(?:\.|[^/]+$)"
    r"|(?:.*/)?\.(?:claude|codex|pi|gemini|cursor|opencode|hermes|factory|copilot)/"
)
"""Files that are of no project: temporary ones, those of a home folder itself, and agents' own
plans, notes and settings."""
_NO_FILE = re.compile(r"\\|^\w+:")
"""Addresses of other things, and what commands of Windows name."""
_EDITING = ("write", "edit", "editor", "patch")
"""What calls do whose arguments show what became of each line."""
_SAYS_DONE = re.compile(
    r"\b(?:updated|success\w*|applied|created|wrote|written|edited|replaced|saved)\b|^\{\}$", re.I
)
_MAX_SAID = 300
_PATCHED_FILE = re.compile(r"^(?:\*\*\* (?:Update|Add) File: |\+\+\+ (?:b/)?)(\S.*?)\s*$", re.M)


@dataclass(frozen=True)
class Edit:
    """One replacement that was carried out; ``old`` is empty for a whole file."""

    message: int
    path: str
    old: str
    new: str
    whole: bool
    """Whether nothing is left of what the file was before."""


def _edits(history: History) -> Iterator[Edit]:
    """Yield the replacements before the cut, in their order."""
    written: defaultdict[int, list[str]] = defaultdict(list)
    for event in history.reading.events:
        if event.action in ("created", "modified"):
            written[event.message].append(event.path)
    for call in history.calls:
        paths = written[call.message]
        for given, old, new in _replacements(call) if paths else ():
            if path := next((p for p in paths if f"/{given}".endswith(f"/{p}")), None):
                whole = not old and tools.deed_of(call.name) != "patch"
                yield Edit(call.message, path, old, new, whole)


def _replacements(call: Call) -> Iterator[tuple[str, str, str]]:
    """Yield path, old text and new text of each replacement that a call makes."""
    deed, arguments = tools.deed_of(call.name), call.arguments
    if deed == "patch" and (patch := tools.text_of(arguments, tools.PATCH_KEYS)):
        _, *parts = _PATCHED_FILE.split(patch)  # each path, and its lines, in turn
        for path, lines in zip(parts[::2], map(str.splitlines, parts[1::2]), strict=True):
            old, new = (
                "\n".join(line[1:] for line in lines if line.startswith(sign)) for sign in "-+"
            )
            yield path, old, new
    paths = tools.paths_of(arguments)
    if deed not in _EDITING or not paths:
        return
    for part in tools.edits_of(arguments):
        before, after = tools.text_of(part, tools.OLD_KEYS), tools.text_of(part, tools.NEW_KEYS)
        if before and after is not None:
            yield paths[0], before, after
    if deed in ("write", "editor") and (text := tools.text_of(arguments, tools.TEXT_KEYS)):
        yield paths[0], "", text


def _is_work(history: History, path: str) -> bool:
    """Return whether a path is in the project: plans, notes and settings of agents are not."""
    if history.reading.root and path.startswith("/"):
        return False  # with a root, what is absolute lies elsewhere
    return not (path.startswith(("~", "../")) or _ASIDE.match(path) or _NO_FILE.search(path))


def _may_be_gone(history: History, path: str, since: int) -> bool:
    """Return whether a command after a message may have moved, removed or put back a file.

    It may where its operands are computed, where git rewrites the tree, and where nobody knows if
    a command that names the file was reached.
    """
    parts = path.split("/")
    names = {"/".join(parts[:end]) for end in range(1, len(parts) + 1)}
    doubtful = (
        item.kind in ("git", "syntax")
        or (item.kind == "outcome" and not names.isdisjoint(item.what.split()))
        for item in history.reading.unclassified
        if item.message > since
    )
    lines = (command_line(call) for call in history.calls if call.message > since)
    return any(doubtful) or any(map(_MOVES_COMPUTED.search, lines))


_NOT_ALL_KNOWN = (
    "no question asks which files were changed: a tool or code whose effect is not known, or an "
    "edit that was taken back, may have changed others"
)


def _changed(history: History, events: Sequence[FileEvent]) -> Iterator[Answer]:
    """Yield the files changed in all, or in the folders with the most."""
    work = [event for event in events if not event.folder and _is_work(history, event.path)]
    paths = dict.fromkeys(event.path for event in work)
    if len(paths) <= _MAX_FILES:
        yield from _confirmed(history, "files_changed", work)
        return
    folders = Counter(posixpath.dirname(path) for path in paths if history.still_there(path))
    for folder, number in folders.most_common(_MAX_FOLDERS):
        if folder and number > 1:
            inside = [event for event in work if posixpath.dirname(event.path) == folder]
            shown = f"{history.project_path(folder)}/"
            yield from _confirmed(history, "folder_changed", inside, folder=shown)


def _all_known(history: History, events: Sequence[FileEvent], edits: Sequence[Edit]) -> bool:
    """Return whether every file that this agent wrote itself can be named.

    It cannot where it called a tool that is not known or ran code that nobody read, where
    something outside of the project's folder may be a part of it, and where an edit was taken back
    by hand.
    """
    lines = {call.message: command_line(call) for call in history.calls}
    for item in history.reading.unclassified:
        spelled = re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z]+", "_", item.what).lower()
        if item.kind == "tool" and not _LEAVES.search(spelled):
            return False
        if item.kind == "code" and _MAY_WRITE.search(lines.get(item.message, "$")):
            return False
    for path in (event.path for event in events):
        elsewhere = history.reading.root and path.startswith("/") and not _ASIDE.match(path)
        if elsewhere or _NO_FILE.search(path):
            return False
    changes = {(edit.path, edit.old, edit.new) for edit in edits if edit.old != edit.new}
    return not any((path, new, old) in changes for path, old, new in changes)


def _confirmed(
    history: History, kind: str, events: Sequence[FileEvent], **values: str
) -> Iterator[Answer]:
    """Yield those files of some events that are still there, if two signs say so of each.

    The call is one; the other is a result that says so, or another message with the path.
    """
    created = {event.path for event in events if event.action == "created"}
    there = [event for event in events if history.still_there(event.path)]
    done = {
        call.message
        for call in history.calls
        if tools.deed_of(call.name) in _EDITING
        and _SAYS_DONE.search((call.result or "")[:_MAX_SAID])
    }
    sure = {event.path for event in there if event.message in done}
    for path, message in {event.path: event.message for event in there}.items():
        if path not in sure and len(list(history.stating([path]))) < _MIN_PLACES:
            return
        if _may_be_gone(history, path, message):
            return
    for event in there:
        key = "files_created" if event.path in created else "files_modified"
        yield Answer(kind, event.path, history.with_results(event.message), values, key=key)


# In which file something was defined.

_MAX_SOURCE = 200_000
_SOURCE = re.compile(r"\.(?:py|go|rs|rb|[jt]sx?|mjs|vue|svelte|java|kt|cs|swift|scala|php)$")
_DEFINED = re.compile(
    r"^(?:[ ]{0,4}|\t)(?:(?:export|default|abstract|async|public|private|protected|internal|static"
    r"|final|open|data|pub(?:\(\w+\))?)\s+)*(?:def|class|module|func(?:\s+\([^)\n]*\))?|function\*?"
    r"|fun|fn|type|interface|enum|struct|trait|record|object)\s+(\w+)",
    re.MULTILINE,
)
_TEST = re.compile(r"(?:^|[_./-])(?:tests?|specs?)[_./-]|Tests?\.\w+$")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
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


def _defined(path: str, text: str) -> list[str]:
    """Return the telling names that a piece of source defines."""
    names = _DEFINED.findall(text[:_MAX_SOURCE]) if _SOURCE.search(path) else []
    return [name for name in dict.fromkeys(names) if tells(name)]


def _definitions(history: History, edits: Sequence[Edit]) -> Iterator[Answer]:
    """Yield where a new function or type was written, if in one file that is still there.

    It has to come up elsewhere; tests and what is only used where it stands are nobody's question.
    """
    places: dict[str, set[str]] = {}
    written: defaultdict[str, list[int]] = defaultdict(list)
    for edit in edits:
        before, defined = _defined(edit.path, edit.old), _defined(edit.path, edit.new)
        there = [n for n, paths in places.items() if edit.path in paths] if edit.whole else []
        for name in {*there, *before}.difference(defined):
            places.pop(name, None)  # taken out again
        for name in defined:
            if name in written or name not in before:
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
        path, since = min(paths), written[name][-1]
        work = history.still_there(path) and _is_work(history, path) and not _TEST.search(path)
        if len(paths) != 1 or not work or path in asked or _names_file(name, path):
            continue
        if hidden.get(path, -1) > since or _may_be_gone(history, path, since):
            continue
        shown = (i for i in range(min(written[name])) if history.messages[i].role == "tool")
        known = any(True for _ in history.stating([name], shown))
        own = history.with_results(*written[name])
        others = (text for index, text in enumerate(history.texts) if index not in own)
        if not known and any(text.spells(name) for text in others):
            asked.add(path)
            yield Answer("file_defines", path, written[name], {"name": name})


def _names_file(name: str, path: str) -> bool:
    """Return whether a file's name follows from that of a definition in it, or from convention."""
    stem = posixpath.splitext(posixpath.basename(path))[0]
    given, words = (
        {word.lower()[:_MIN_ALIKE] for word in _WORD.findall(text)} for text in (name, stem)
    )
    return stem.lower() in _CONVENTIONAL or bool(words & given)
