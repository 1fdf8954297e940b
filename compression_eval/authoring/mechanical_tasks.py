"""Questions about unfinished work and about choices of the user, from tools that record them."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from compression_eval.authoring.candidates import fact
from compression_eval.authoring.history import History
from compression_eval.authoring.identifiers import identifiers_in
from compression_eval.authoring.making import evidence, made
from compression_eval.authoring.runs import shell_of
from compression_eval.authoring.task_lists import Task, TaskList, latest_tasks
from compression_eval.fixtures.banks import AnswerKey, ExpectedFact, Probe

_MOST_OPEN = 8
_MAX_CALLS_LATER = 15
"""Calls after which a list that was not written again no longer tells what is open."""
_ASKS = ("askuserquestion", "requestuserinput", "askuser", "clarify", "askfollowupquestion")
_NOT_LETTER = re.compile(r"[^a-z]")
_LONGEST_QUESTION = 300


def task_probes(history: History) -> Iterator[tuple[str, Probe]]:
    """Yield probes about the task list, each with the name of its template."""
    tasks = latest_tasks(history.calls)
    if tasks is None or _stale(history, tasks):
        return
    left = [task for task in tasks.tasks if task.state != "done"]
    current = [task for task in left if task.state == "current"]
    if 0 < len(left) <= _MOST_OPEN:
        key = AnswerKey(open_tasks=[task.text for task in left])
        facts = [_task_fact(history, task, tasks) for task in left]
        yield "tasks_open", made(history, "continuation", "tasks_open", facts, "todo", key=key)
    if len(current) == 1 and len(left) > 1:
        facts = [_task_fact(history, current[0], tasks)]
        yield "task_current", made(history, "continuation", "task_current", facts, "todo")


def _stale(history: History, tasks: TaskList) -> bool:
    """Return whether the work has moved on since the list was written, which no list then says."""
    written = max(tasks.messages)
    if any(turn.request and turn.message > written for turn in history.turns):
        return True
    later = [call for call in history.calls if call.message > written]
    committed = any(re.search(r"\bgit\b.*\bcommit\b", shell_of(call)) for call in later)
    return committed or len(later) > _MAX_CALLS_LATER


def choice_probes(history: History) -> Iterator[tuple[str, Probe]]:
    """Yield probes about options that the user chose, each with the name of its template."""
    for call in history.calls:
        if _NOT_LETTER.sub("", call.name.lower()) not in _ASKS or not call.result:
            continue
        questions = list(_questions(call.arguments))
        for asked, options in questions:
            chosen = _chosen(asked, options, call.result, alone=len(questions) == 1)
            if chosen is None or len(asked) > _LONGEST_QUESTION or not asked.isprintable():
                continue
            places = [call.message, *history.results_of(call)]
            stated = evidence(history, [chosen], places)
            yield (
                "option_chosen",
                made(
                    history,
                    "decision",
                    "option_chosen",
                    [fact(chosen, stated)],
                    "choices",
                    {"asked": asked},
                ),
            )


def _task_fact(history: History, task: Task, tasks: TaskList) -> ExpectedFact:
    """Return a task as a fact; a name in it that no other task has stands for it as well."""
    forms = [task.text, *([task.other] if task.other else [])]
    elsewhere = " ".join(other.text for other in tasks.tasks if other != task)
    forms.extend(name for name in identifiers_in(task.text) if name not in elsewhere)
    stated = evidence(history, forms[:2], tasks.messages)
    return fact(task.text, stated, forms[1:])


def _questions(arguments: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    several = arguments.get("questions")
    for item in several if isinstance(several, list) else [arguments]:
        if not isinstance(item, dict):
            continue
        asked = item.get("question")
        options = [_label(option) for key in ("options", "choices") for option in _items(item, key)]
        if isinstance(asked, str) and len(options) > 1:
            yield " ".join(asked.split()), [option for option in options if option]


def _items(item: Mapping[str, Any], key: str) -> list[Any]:
    value = item.get(key)
    return value if isinstance(value, list) else []


def _label(option: object) -> str:
    if isinstance(option, dict):
        option = option.get("label") or option.get("value")
    return option.strip() if isinstance(option, str) else ""


def _said(result: str) -> str:
    """Return what the user said: some results name the options beside it, in fields of JSON."""
    try:
        fields = json.loads(result)
    except (ValueError, RecursionError):
        return result
    said = fields.get("user_response") if isinstance(fields, dict) else None
    return said if isinstance(said, str) else result


def _chosen(asked: str, options: list[str], result: str, *, alone: bool) -> str | None:
    """Return the one option that a result names as the answer to a question.

    It has to stand for itself: in quotes, after a sign, or as the whole answer. ``Not Postgres``
    names an option and chooses none.

    Args:
        asked: The question.
        options: What the user could choose from.
        result: The call's result.
        alone: Whether it answers no other question.
    """
    text = " ".join(_said(result).split())
    start = text.find(asked)
    # Results repeat each question before its answer; the answer ends where the next one begins.
    if start < 0 and not alone:
        return None
    answer = text[start + len(asked) :] if start >= 0 else text
    answer = answer.split('", "')[0].split('" "')[0] if start >= 0 else answer
    named = [option for option in options if option in answer]
    named = [o for o in named if not any(o != other and o in other for other in named)]
    if len(named) != 1:
        return None
    bare = re.escape(named[0])
    by_itself = rf"(?:[\"'“‘`]){bare}(?:[\"'”’`]|$)|(?:^|[:=>]) ?{bare}[\"'”’]?[.!]?$"
    return named[0] if re.search(by_itself, answer.strip()) else None
