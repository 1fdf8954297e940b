"""Probes that need no model: what the tool calls, the texts and the recorded continuation tell.

What was done to files and by commands is read by `mechanical_files` and `mechanical_commands`;
here stands what was said, planned and chosen. The questions are rows of ``mechanical.yaml``.
"""

import json
import posixpath
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from compression_eval.authoring.asking import (
    Answer,
    identifiers_in,
    questions,
    tells,
    wording,
)
from compression_eval.authoring.candidates import Candidate, Dropped, Harvest, faults, warnings
from compression_eval.authoring.history import History, command_line
from compression_eval.authoring.mechanical_commands import about_commands, about_git
from compression_eval.authoring.mechanical_files import about_files
from compression_eval.file_ops.calls import Call, file_outcome
from compression_eval.file_ops.naming import mentioned_files
from compression_eval.fixtures.models import leaves
from compression_eval.text.matching import normalise

_MAX_NAMED = 5
_MAX_REQUEST = 2_000
"""Characters of a request; a longer one brings instructions and material along."""
_MAX_SHORT = 400
"""Characters of an argument that is no file's text."""
_MAX_READ = 40_000
_MAX_CALLS_LATER = 15
"""Calls after which a list that was not written again no longer tells what is open."""
_MAX_TASK = 200
_MAX_QUESTION = 300
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_PASTED = re.compile(r":\d+:\d+|^\s*at \S+|^ {4,}\S|^\s*[➜$>%#] |^[+-] ?\d+ ")
_HASH = re.compile(r"[0-9a-f-]{7,}")
"""A hash that somebody pasted says nothing to go on with."""
_TICKET = re.compile(r"\b[A-Z][A-Z0-9]{1,9}-\d{2,6}\b|(?<!\w)#\d{2,5}\b")
_THING = r"(?:`[^`\n]{2,60}`|(?<![\w`])[A-Za-z0-9_.#/-]*\w(?:\(\))?)"
_INSTEAD = re.compile(
    rf"(?P<new>{_THING}),? (?:instead of|rather than) (?:the |an? |using )?(?P<old>{_THING})"
)
_REPLACED = re.compile(
    r"\b(?:chang|renam|replac|switch|migrat|upgrad|bump)(?:e|ed|es|ing|t|ted|ting)"
    r" (?:from )?(?:the )?"
    rf"(?P<old>{_THING}) (?:to|with|by) (?:the )?(?P<new>{_THING})",
    re.IGNORECASE,
)
_USES = re.compile(r"\b(?:I(?:'ll| will)?|I've) (?:now )?use[ds]? (?:the )?$")
_NUMBER = (
    r"#[0-9a-fA-F]{6}|\d+(?:\.\d+)? ?(?:ms|s|secs?|seconds|minutes?|min|h|hours?"
    r"|days?|%|px|[KMG]i?B|tokens?|rows?|lines?|requests?|times)\b|v?\d+(?:\.\d+)+|\d{3,}"
)
_GIVEN = re.compile(
    r"(?<![\w./:@#-])(?P<key>[A-Za-z][\w-]+(?: [A-Za-z][\w-]+){0,3})"
    r"(?: (?:is|are|should be|must be|at|to|of|=)|:) "
    rf"(?P<value>{_NUMBER})(?![\w.:/])"
)
_ARTICLE = re.compile(r".*\b(?:the|an?|our|your|its|their) ", re.IGNORECASE)
_NO_KEY = frozenset([
    "it", "that", "this", "which", "there", "they", "we", "you", "line", "lines", "and", "or",
    "but", "want", "put", "set", "make", "use", "keep", "have", "get", "be", "so", "if", "at",
    "of", "to", "is",
])  # fmt: skip
_NOT_LETTER = re.compile(r"[^a-z]")
_ASKS = ("askuserquestion", "requestuserinput", "askuser", "clarify", "askfollowupquestion")
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
    again = set(used_again(history))
    # Of each type those come first that are the most telling.
    answers = chain(
        _tasks(history),
        about_commands(history),
        _said(history, again),
        about_files(history),
        _choices(history),
        about_git(history),
    )
    for asked, template in questions(history, answers):
        probe = asked
        first, *more = (item.forms for item in probe.expected_facts)
        needed = not more and not again.isdisjoint(first) and not history.kept(first)
        if needed and probe.type in ("recall", "artifact"):
            # What an agent really needed again is the best evidence that it has to be kept.
            question = wording("future", history.language) + probe.question
            changes = {"question": question, "origin": "mechanical:future"}
            probe = probe.model_copy(update={"type": "continuation", **changes})
        # Nobody reads these before they are used, so a doubt is enough.
        if wrong := faults(probe, history) or warnings(probe, history):
            harvest.dropped.append(Dropped.of(probe, wrong))
        else:
            harvest.candidates.append(Candidate.of(probe, history, template))
    return harvest


def used_again(history: History) -> list[str]:
    """Return the names that calls after the cut used before anything showed them.

    A name is shown by a tool result or a user's message. A symbol that stands only in written
    text is left out: it may be of the language, not of the project.
    """
    shown: list[str] = []
    told: dict[str, bool] = {}
    known: dict[str, bool] = {}
    for message in history.continuation:
        if message.role in ("tool", "user"):
            shown.append(message.text.casefold())
        given = [value for call in message.calls for value in call.function.parsed().values()]
        for argument in chain.from_iterable(map(leaves, given)):
            for name in identifiers_in(argument):
                if name not in known:
                    bare = posixpath.basename(name).casefold()
                    known[name] = not any(bare in text for text in shown)
                if known[name]:
                    telling = len(argument) <= _MAX_SHORT or not name.isidentifier()
                    told[name] = told.get(name, False) or telling
    return [history.project_path(name) for name, telling in told.items() if telling]


def _said(history: History, used: Container[str]) -> Iterator[Answer]:
    """Yield what the user and the agent said: names, values, and what was to be replaced."""
    spoken = [(turn, _prose(history.messages[turn.message].typed)) for turn in history.turns]
    for turn, prose in [(turn, prose) for turn, prose in spoken if turn.request][-1:]:
        if len(prose) <= _MAX_REQUEST:
            for name in _names(history, prose, turn.message, used):
                yield Answer("last_request", name, [turn.message])
    yield from _instead(history)
    for turn, prose in spoken:  # values, each by the words before it
        for match in chain.from_iterable(map(_GIVEN.finditer, prose.split("\n"))):
            words = _ARTICLE.split(match["key"])[-1].split()
            if len(words) > 1 and not _NO_KEY.intersection((words[0], words[-1])):
                values = {"name": " ".join(words)}
                yield Answer("user_value", match["value"], [turn.message], values)
    for turn, prose in spoken:
        for name in _names(history, prose, turn.message, used) if turn.label else ():
            if mentioned_files(name):
                yield Answer("user_files", name, [turn.message], {"asked": turn.label})


def _prose(text: str) -> str:
    """Return what somebody wrote, without code and what looks pasted from a terminal."""
    lines = _FENCED.sub(" ", text[:_MAX_READ]).split("\n")
    return "\n".join(line for line in lines if not _PASTED.search(line))


def _names(history: History, text: str, message: int, used: Container[str]) -> list[str]:
    """Return the files and tickets in a text, or else its telling names, by the project's paths.

    All or none: one of them at least has to come up again, or they are examples.
    """
    names = [history.project_path(name) for name in mentioned_files(text)]
    names += _TICKET.findall(text)
    if not names:
        found = identifiers_in(text)
        names = [name for name in found if tells(name) and not _HASH.fullmatch(name)]
    names = list(dict.fromkeys(names))
    again = any(name in used or history.comes_up(name, besides=message) for name in names)
    return names if again and len(names) <= _MAX_NAMED else []


def _instead(history: History) -> Iterator[Answer]:
    """Yield what was to stand in the place of something."""
    found: list[Answer] = []
    unclear: set[tuple[str, str]] = set()
    for index in history.compressed:
        message = history.messages[index]
        text = message.typed if message.role == "user" else message.text
        if message.role not in ("user", "assistant") or not text:
            continue
        prose = _prose(text)
        for match in chain(_INSTEAD.finditer(prose), _REPLACED.finditer(prose)):
            done = re.match(r"\w+ed\b", match[0]) or _USES.search(prose[: match.start()])
            if message.role == "assistant" and not done:
                continue  # what it describes, or proposes
            if not (_is_thing(match["old"]) and _is_thing(match["new"])):
                continue
            row = "user_instead" if message.role == "user" else "agent_instead"
            old, new = _bare(match["old"]), _bare(match["new"])
            found.append(Answer(row, new, [index], {"old": old}))
            if normalise(new) in normalise(old) or normalise(old) in normalise(new):
                unclear.add((row, old))
    yield from (one for one in found if (one.row, one.values["old"]) not in unclear)


def _bare(thing: str) -> str:
    return thing.strip("`").rstrip(".,;:")


def _is_thing(thing: str) -> bool:
    """Return whether words stand for one thing of the project, by their quotes or their form."""
    bare = _bare(thing)
    quoted = thing.startswith("`") and len(bare) > 3
    return quoted or identifiers_in(bare) == [bare]


def _tasks(history: History) -> Iterator[Answer]:
    """Yield what is open by the task list, while the work has not moved on since."""
    tasks, written = latest_tasks(history.calls)
    left = [task for task in tasks if task.state != "done"]
    if not written or any(turn.request and turn.message > max(written) for turn in history.turns):
        return
    later = [call for call in history.calls if call.message > max(written)]
    committed = any(re.search(r"\bgit\b.*\bcommit\b", command_line(call)) for call in later)
    if committed or len(later) > _MAX_CALLS_LATER:
        return
    for row in ("tasks_open", "task_current") if len(left) > 1 else ("tasks_open",):
        for task in left:
            if row == "tasks_open" or task.state == "current":
                # A name in a task that no other task has stands for it as well.
                elsewhere = " ".join(other.text for other in tasks if other != task)
                names = [name for name in identifiers_in(task.text) if name not in elsewhere]
                forms = [task.other] if task.other else []
                yield Answer(row, task.text, written, forms=forms, also=names)


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
    """Yield which options the user chose, from tools that put questions to them."""
    for call in history.calls:
        if _NOT_LETTER.sub("", call.name.lower()) not in _ASKS or not call.result:
            continue
        questions = list(_questions(call.arguments))
        for asked, options in questions:
            chosen = _chosen(asked, options, call.result, alone=len(questions) == 1)
            if chosen is not None and len(asked) <= _MAX_QUESTION and asked.isprintable():
                places = history.with_results(call.message)
                yield Answer("option_chosen", chosen, places, {"asked": asked})


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
