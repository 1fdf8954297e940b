"""Probes that need no model: what tool calls and their results tell, if two signs agree on it.

What was done to files and by commands is read by `mechanical_files` and `mechanical_commands`;
here stands what was planned and chosen. The questions are rows of ``mechanical.yaml``.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from compression_eval.authoring.asking import (
    Answer,
    identifiers_in,
    questions,
)
from compression_eval.authoring.candidates import Candidate, Dropped, Harvest, faults, warnings
from compression_eval.authoring.history import History, command_line
from compression_eval.authoring.mechanical_commands import about_commands, about_git
from compression_eval.authoring.mechanical_files import about_files
from compression_eval.file_ops.calls import Call, file_outcome
from compression_eval.file_ops.naming import mentioned_files

_MAX_OF_A_KIND = 4
"""Probes of one kind at one cut."""
_MAX_CALLS_LATER = 15
"""Calls after which a list that was not written again no longer tells what is open."""
_MAX_TASK = 200
_MAX_QUESTION = 300
_NOT_LETTER = re.compile(r"[^a-z]")
_REMARK = re.compile(r"\s*[(（][^()（）]+[)）]$")
"""What stands in brackets behind an option, such as that it is recommended."""
_PROCEDURE = re.compile(
    r"\b(?:commit|merge|push|proceed|continue|next|release|deploy|publish|PR|branch|plan|finish"
    r"|execut\w+|session|approach|now|today)\b|커밋|머지|푸시|진행|提交|推送|合并|下一步"
    r"|コミット|マージ|プッシュ",
    re.IGNORECASE,
)
"""Questions about one step, whose answer is used up with it."""
_FINISHES = re.compile(
    r"\bgit\b[^|;&\n]*\b(?:push|merge|tag)\b|\b(?:gh|glab) (?:pr|mr|release)\b[^|;&\n]*"
    r"\b(?:create|merge)\b|\b(?:publish|release|deploy)\b"
)
"""Commands with which work is handed over; what was chosen for it is used up then."""
_CODE = re.compile(r"`[^`]{3,60}`")
_SAYS_LITTLE = re.compile(
    r"(?:yes|no|ok|okay|all|both|none|neither|either|override|recommended|option|other|skip|default"
    r"|custom|same|this|that|it|them|other|a|b|c|d|是|否|はい|いいえ|예|네|아니오)(?![\w-])",
    re.IGNORECASE,
)
_SAYS_MUCH = re.compile(r"[^\W\d_]{4,}|[^\x00-\u2fff]{2,}")
"""An option that says something by itself has a word, and does not begin as an answer would."""
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
    answers = chain(
        _tasks(history),
        about_commands(history),
        about_files(history),
        _choices(history),
        about_git(history),
    )
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
    committed = any(re.search(r"\bgit\b.*\bcommit\b", command_line(call)) for call in later)
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


def _choices(history: History) -> Iterator[Answer]:
    """Yield which options the user chose of questions that agents put, as far as they hold still.

    What was chosen for work that was handed over later is used up; a question has to name a part
    of the code, and an option to say something by itself.
    """
    finished = [c.message for c in history.calls if _FINISHES.search(command_line(c))]
    for call in history.calls:
        questions = list(_questions(call.arguments)) if call.result else []
        if finished and call.message < finished[-1]:
            continue
        for asked, options in questions:
            chosen = _chosen(asked, options, call.result or "", alone=len(questions) == 1)
            fits = len(asked) <= _MAX_QUESTION and asked.isprintable()
            named = identifiers_in(asked) or _CODE.search(asked)
            if chosen is None or not fits or not named or _PROCEDURE.search(f"{asked} {chosen}"):
                continue
            plain = _REMARK.sub("", chosen)
            if sum(option.startswith(plain) for option in options) > 1:
                plain = chosen
            if _SAYS_MUCH.search(plain) and not _SAYS_LITTLE.match(plain):
                places = history.with_results(call.message)
                yield Answer("option_chosen", plain, places, {"asked": asked}, also=[chosen])


def _questions(arguments: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the questions that a call puts, each with its options."""
    several = arguments.get("questions")
    for item in several if isinstance(several, list) else [arguments]:
        if not isinstance(item, dict):
            continue
        lists = [item[key] for key in ("options", "choices") if isinstance(item.get(key), list)]
        options = [
            option.get("label") or option.get("value") if isinstance(option, dict) else option
            for option in chain.from_iterable(lists)
        ]
        labels = [label.strip() for label in options if isinstance(label, str)]
        asked = item.get("question")
        if isinstance(asked, str) and len(options) > 1:
            yield " ".join(asked.split()), [label for label in labels if label]


def _chosen(asked: str, options: list[str], result: str, *, alone: bool) -> str | None:
    """Return the one option that a result names as the answer to a question."""
    try:  # some results name the options beside the answer, in fields of JSON
        fields = json.loads(result)
    except (ValueError, RecursionError):
        fields = None
    said = fields.get("user_response") if isinstance(fields, dict) else None
    answer = " ".join((said if isinstance(said, str) else result).split())
    # Results repeat each question before its answer; the answer ends where the next one begins.
    start = answer.find(asked)
    if start >= 0:
        answer = answer[start + len(asked) :].split('", "')[0].split('" "')[0]
    elif not alone:
        return None
    named = [option for option in options if option in answer]
    named = [one for one in named if not any(one != other and one in other for other in named)]
    if len(named) != 1:
        return None
    # It has to stand for itself: "Not Postgres" names an option and chooses none.
    bare = re.escape(named[0])
    by_itself = rf"(?:[\"'“‘`]){bare}(?:[\"'”’`]|$)|(?:^|[:=>]) ?{bare}[\"'”’]?[.!]?$"
    return named[0] if re.search(by_itself, answer.strip()) else None
