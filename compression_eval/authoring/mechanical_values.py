"""Questions about values that were changed, from edits that replaced them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from compression_eval.authoring.candidates import fact
from compression_eval.authoring.history import History
from compression_eval.authoring.making import evidence, made
from compression_eval.fixtures.artifacts.events import Call
from compression_eval.fixtures.artifacts.tools import PATCH_KEYS, deed_of, paths_of, text_of
from compression_eval.fixtures.banks import ExpectedFact, Probe

_OLD = ("old_string", "old_str", "oldString", "old", "old_text", "oldText", "search")
_NEW = ("new_string", "new_str", "newString", "new", "new_text", "newText", "replace")
_LISTS = ("edits", "replacements")
_SHOWN_DEEDS = ("edit", "editor", "patch")
"""What calls do whose arguments show what became of each line."""
_TELLING = 3
"""Characters from which a value with a digit counts without its name."""
_SETTING = re.compile(
    r"^[ \t]*(?:export |const |let |var |final |static )*[\"']?"
    r"(?P<name>[A-Za-z_][\w.-]{2,60})[\"']?"
    r"(?: ?: ?[A-Za-z_][\w\[\], |]*)?[ \t]*(?::=|[:=])[ \t]*"
    r"(?P<value>-?\d[\d_.]*[a-z%]{0,3}|\"[^\"\n]{1,40}\"|'[^'\n]{1,40}'|[Tt]rue|[Ff]alse)"
    r"[ \t]*[,;]?[ \t]*(?:(?:#|//).*)?$",
    re.MULTILINE,
)
_PATCHED_FILE = re.compile(r"^(?:\*\*\* Update File: |\+\+\+ (?:b/)?)(\S.*?)\s*$")


@dataclass(frozen=True)
class _Change:
    message: int
    path: str
    name: str
    before: str
    after: str


def value_probes(history: History) -> Iterator[tuple[str, Probe]]:
    """Yield probes about changed values, each with the name of its template."""
    changes: dict[tuple[str, str], list[_Change]] = {}
    for change in _changes(history):
        changes.setdefault((change.path, change.name), []).append(change)
    for (path, name), steps in changes.items():
        followed = all(later.before == earlier.after for earlier, later in pairwise(steps))
        if not followed or steps[-1].after == steps[0].before:
            continue  # one name in two places of a file, or a change that was taken back
        if not _still_holds(history, steps[-1]):
            continue
        item = _value_fact(history, steps)
        values = {"name": name, "path": path}
        if len(steps) > 1:
            yield (
                "value_settled",
                made(history, "decision", "value_settled", [item], "values", values),
            )
        else:
            yield "value_set", made(history, "artifact", "value_set", [item], "values", values)


def _still_holds(history: History, last: _Change) -> bool:
    """Return whether nothing later can have changed the value in a way that no edit shows."""
    state = history.inventory.states.get(last.path)
    if state is None or state.status not in ("created", "modified"):
        return False
    if any(
        item.kind == "git" and item.message > last.message for item in history.reading.unclassified
    ):
        return False
    shown = {call.message for call in history.calls if deed_of(call.name) in _SHOWN_DEEDS}
    return not any(
        event.path == last.path
        and event.action != "read"
        and event.message > last.message
        and event.message not in shown
        for event in history.reading.events
    )


def _value_fact(history: History, steps: list[_Change]) -> ExpectedFact:
    last = steps[-1]
    shown, *forms = _forms(last.name, last.after)
    stated = evidence(history, [shown, *forms], [last.message])
    old = [_forms(last.name, step.before) for step in steps if step.before != last.after]
    # An old value is looked for in the spelling that the history has it in.
    known = [next((form for form in each if history.stated_in([form])), "") for each in old]
    return fact(shown, stated, forms, [value for value in known if value])


def _forms(name: str, value: str) -> list[str]:
    bare = _bare(value)
    forms = [f"{name} = {bare}", f"{name}: {bare}", f"{name} is {bare}"]
    if bare != value:
        forms += [f"{name} = {value}", f"{name}: {value}"]
    telling = len(bare) >= _TELLING and any(character.isdigit() for character in bare)
    return [*forms, bare] if telling else forms


def _bare(value: str) -> str:
    return value.strip("\"'")


def _changes(history: History) -> Iterator[_Change]:
    """Yield each value that a successful edit replaced, where the name stands once in the edit."""
    modified = {(e.message, e.path) for e in history.reading.events if e.action == "modified"}
    for call in history.calls:
        touched = [path for message, path in modified if message == call.message]
        for written, old, new in _edits(call):
            path = next((p for p in touched if written == p or written.endswith("/" + p)), None)
            if path is None:
                continue
            before, after = _settings(old), _settings(new)
            for name, value in after.items():
                if name in before and _bare(before[name]) != _bare(value):
                    yield _Change(call.message, path, name, before[name], value)


def _settings(text: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for match in _SETTING.finditer(text):
        found.setdefault(match["name"], []).append(match["value"])
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _edits(call: Call) -> Iterator[tuple[str, str, str]]:
    """Yield path, old text and new text of each replacement that a call makes."""
    deed = deed_of(call.name)
    if deed == "patch" and (patch := text_of(call.arguments, PATCH_KEYS)):
        yield from _patched(patch)
    if deed not in ("edit", "editor"):
        return
    paths = paths_of(call.arguments)
    for part in _parts(call.arguments):
        old, new = text_of(part, _OLD), text_of(part, _NEW)
        if paths and old and new:
            yield paths[0], old, new


def _parts(arguments: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield arguments
    for key in _LISTS:
        value = arguments.get(key)
        for item in value if isinstance(value, list) else []:
            if isinstance(item, dict):
                yield item


def _patched(patch: str) -> Iterator[tuple[str, str, str]]:
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
