"""Task lists that agents keep by tool calls, in the forms of several agents."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from compression_eval.fixtures.artifacts.events import Call
from compression_eval.fixtures.artifacts.outcomes import file_outcome

TaskState = Literal["open", "current", "done"]

_STATES: dict[str, TaskState] = {
    "pending": "open",
    "todo": "open",
    "open": "open",
    "notstarted": "open",
    "inprogress": "current",
    "active": "current",
    "doing": "current",
    "completed": "done",
    "complete": "done",
    "done": "done",
    "cancelled": "done",
    "canceled": "done",
    "deleted": "done",
}
_TEXTS = ("content", "step", "text", "title", "subject", "task", "description", "name")
_IDS = ("id", "taskId", "task_id")
_NOT_LETTER = re.compile(r"[^a-z]")
_NUMBER = re.compile(r"#(\w+)")
_LONGEST = 200


@dataclass(frozen=True)
class Task:
    """One entry of a task list."""

    text: str
    state: TaskState
    other: str = ""
    """Another wording of it, where the agent keeps one."""


@dataclass(frozen=True)
class TaskList:
    """The list as it was last written."""

    tasks: tuple[Task, ...]
    messages: tuple[int, ...]
    """Indices of the messages that wrote what still holds."""


def latest_tasks(calls: list[Call]) -> TaskList | None:
    """Return the task list that some calls left; None if there is none.

    Known are calls that write the whole list, calls that change entries by id (``merge``), and
    pairs of tools of which one adds a task and one changes its state.
    """
    tasks: dict[str, Task] = {}
    messages: list[int] = []
    for call in calls:
        if file_outcome(call.result or "", call.error, shows_content=True).failed:
            continue  # a list that was refused was never written
        name = _NOT_LETTER.sub("", call.name.lower())
        if name in ("taskcreate", "taskupdate"):
            if _single(call, tasks, created=name == "taskcreate"):
                messages.append(call.message)
            continue
        entries = _entries(call.arguments)
        if entries is None:
            continue
        if call.arguments.get("merge") is not True:
            tasks, messages = {}, []
        messages.append(call.message)
        for number, entry in enumerate(entries):
            _put(tasks, _id_of(entry) or str(number), entry)
    if not tasks:
        return None
    return TaskList(tuple(tasks.values()), tuple(dict.fromkeys(messages)))


def _entries(arguments: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the argument that is a list of tasks: every item has a state, and most a text."""
    for value in arguments.values():
        if not isinstance(value, list) or not value:
            continue
        stated = all(isinstance(item, dict) and _state_of(item) for item in value)
        # A change by id may name no text.
        merged = arguments.get("merge") is True
        if stated and (merged or any(_text_of(item) for item in value)):
            return value
    return None


def _single(call: Call, tasks: dict[str, Task], *, created: bool) -> bool:
    if created:
        number = _NUMBER.search(call.result or "")
        _put(tasks, number[1] if number else str(len(tasks) + 1), call.arguments)
        return True
    identifier = _id_of(call.arguments)
    if identifier not in tasks:
        return False
    _put(tasks, identifier, call.arguments)
    return True


def _put(tasks: dict[str, Task], identifier: str, entry: Mapping[str, Any]) -> None:
    before = tasks.get(identifier)
    text = _text_of(entry) or (before.text if before else "")
    state = _state_of(entry) or (before.state if before else "open")
    if text:
        other = entry.get("activeForm")
        tasks[identifier] = Task(text, state, _plain(other) or (before.other if before else ""))


def _id_of(entry: Mapping[str, Any]) -> str:
    return next((str(entry[key]) for key in _IDS if isinstance(entry.get(key), str | int)), "")


def _state_of(entry: Mapping[str, Any]) -> TaskState | None:
    value = entry.get("status")
    return _STATES.get(_NOT_LETTER.sub("", value.lower())) if isinstance(value, str) else None


def _text_of(entry: Mapping[str, Any]) -> str:
    return next((text for key in _TEXTS if (text := _plain(entry.get(key)))), "")


def _plain(value: object) -> str:
    if not isinstance(value, str):
        return ""
    text = " ".join(value.split())
    return text if len(text) <= _LONGEST and text.isprintable() else ""
