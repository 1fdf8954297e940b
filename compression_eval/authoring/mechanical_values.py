"""Questions about values and names that were changed, from edits that replaced them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from compression_eval.authoring.candidates import fact
from compression_eval.authoring.edits import EDITING, edits_of
from compression_eval.authoring.history import History
from compression_eval.authoring.identifiers import tells
from compression_eval.authoring.making import evidence, made
from compression_eval.fixtures.artifacts.tools import deed_of
from compression_eval.fixtures.banks import ExpectedFact, Probe

_MAX_WORDS = 5_000
_SHOWN = set(EDITING) - {"write"}
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


@dataclass(frozen=True)
class _Change:
    message: int
    path: str
    name: str
    before: str
    after: str


def value_probes(history: History) -> Iterator[tuple[str, Probe]]:
    """Yield probes about changed values and names, each with the name of its template."""
    yield from _name_probes(history)
    changes: dict[tuple[str, str], list[_Change]] = {}
    for change in _changes(history):
        changes.setdefault((change.path, change.name), []).append(change)
    # A number follows from nothing; ``error = red`` may.
    for (path, name), steps in sorted(changes.items(), key=_without_digit):
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


def _without_digit(item: tuple[tuple[str, str], list[_Change]]) -> bool:
    return not any(character.isdigit() for character in item[1][-1].after)


def _name_probes(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask for the new names of what an edit renamed and changed in no other way."""
    renamed: dict[tuple[str, str], dict[str, int]] = {}
    written: dict[str, list[tuple[int, str]]] = {}
    for edit in edits_of(history):
        written.setdefault(edit.path, []).append((edit.message, edit.new))
        if pair := _renamed(edit.old, edit.new):
            renamed.setdefault((edit.path, pair[0]), {})[pair[1]] = edit.message
    for (path, old), names in renamed.items():
        ((name, at), *more) = names.items()
        later = " ".join(text for message, text in written[path] if message > at)
        if more or re.search(rf"\b{re.escape(old)}\b", later):
            continue
        facts = [fact(name, evidence(history, [name], [at]))]
        values = {"old": old, "path": path}
        yield "name_changed", made(history, "decision", "name_changed", facts, "values", values)


def _renamed(old: str, new: str) -> tuple[str, str] | None:
    """Return a name and the one that stands in its place, if nothing else differs."""
    before, after = (re.findall(r"\w+|[^\w\s]", text) for text in (old, new))
    if len(before) != len(after) or len(before) > _MAX_WORDS:
        return None
    pairs = {(a, b) for a, b in zip(before, after, strict=True) if a != b}
    if len(pairs) != 1:
        return None
    ((name, other),) = pairs
    return (name, other) if tells(name) and tells(other) else None


def _still_holds(history: History, last: _Change) -> bool:
    """Return whether nothing later can have changed the value in a way that no edit shows."""
    state = history.inventory.states.get(last.path)
    if state is None or state.status not in ("created", "modified"):
        return False
    if any(
        item.kind == "git" and item.message > last.message for item in history.reading.unclassified
    ):
        return False
    shown = {call.message for call in history.calls if deed_of(call.name) in _SHOWN}
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
    for edit in edits_of(history):
        before, after = _settings(edit.old), _settings(edit.new)
        for name, value in after.items():
            if name in before and _bare(before[name]) != _bare(value):
                yield _Change(edit.message, edit.path, name, before[name], value)


def _settings(text: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for match in _SETTING.finditer(text):
        found.setdefault(match["name"], []).append(match["value"])
    return {name: values[0] for name, values in found.items() if len(values) == 1}
