"""Probes that need no model: what tool calls and their results tell, if two signs agree on it.

What was done to files is read by `mechanical_files`; here stand the task list and the commits. The
questions are rows of ``mechanical.yaml``. A kind of question is here only while at least four of
five were good on sessions that it was not made with.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

from compression_eval.authoring.asking import Answer, identifiers_in, questions
from compression_eval.authoring.candidates import Candidate, Dropped, Harvest, faults, warnings
from compression_eval.authoring.history import History, command_line
from compression_eval.authoring.mechanical_files import about_files
from compression_eval.file_ops.calls import Call, file_outcome
from compression_eval.file_ops.naming import mentioned_files
from compression_eval.file_ops.tools import deed_of

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
