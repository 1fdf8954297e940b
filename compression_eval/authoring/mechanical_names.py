"""Questions for names: those that the recorded agent went on to use, and those that people gave.

What an agent really needed again after the cut is the best evidence that a compression has to
keep it. A name counts if it was first seen in the part to be compressed, is in nothing that is
kept, and was used by a call after the cut before anything showed it again.
"""

import builtins
import posixpath
from collections.abc import Iterator

from compression_eval.authoring.candidates import fact
from compression_eval.authoring.gaps import Lines
from compression_eval.authoring.history import History
from compression_eval.authoring.identifiers import identifiers_in
from compression_eval.authoring.making import evidence, made, path_fact
from compression_eval.fixtures.artifacts.naming import mentioned_files
from compression_eval.fixtures.banks import ExpectedFact, Probe
from compression_eval.fixtures.models import Message, leaves

_SHORT = 400
"""Characters of an argument that is no file's text."""
_MOST_NAMES = 40
"""Names of each kind that are tried; enough for any bank, and bounds the time."""


def future_probes(history: History, lines: Lines) -> Iterator[tuple[str, Probe]]:
    """Yield probes about what the recorded continuation used again, most used first."""
    tried = 0
    for name in used_again(history):
        if tried >= _MOST_NAMES:
            return
        item = _fact(history, name)
        if not _can_be_asked(history, name, item):
            continue
        tried += 1
        if gap := lines.gap(name, history.tail_start):
            yield (
                gap.template,
                made(
                    history,
                    "continuation",
                    gap.template,
                    [item],
                    "future",
                    gap.values,
                    future=True,
                ),
            )


def name_probes(history: History, lines: Lines) -> Iterator[tuple[str, Probe]]:
    """Yield probes about names in what was said: the user's first, the most repeated first."""
    mentions: dict[str, int] = {}
    said: dict[str, bool] = {}
    for index in history.compressed:
        message = history.messages[index]
        names = set(identifiers_in(message.searchable()))
        for name in names:
            mentions[name] = mentions.get(name, 0) + 1
        if message.role == "assistant" or message.typed:
            for name in identifiers_in(message.typed or message.text):
                said[name] = said.get(name, False) or message.role == "user"
    repeated = [name for name in said if mentions.get(name, 0) > 1]
    repeated.sort(key=lambda name: (not said[name], -mentions[name]))
    for name in repeated[:_MOST_NAMES]:
        item = _fact(history, name)
        if not _can_be_asked(history, name, item):
            continue
        if gap := lines.gap(name, history.tail_start, ("user", "assistant")):
            yield (
                gap.template,
                made(history, "recall", gap.template, [item], "names", gap.values),
            )


def used_again(history: History) -> list[str]:
    """Return the names that calls after the cut used before anything showed them, most used first.

    A name is shown by a tool result or a user's message. Uses are counted to the end of the
    continuation; those in short arguments (a path, a command, a pattern) come first. A symbol
    that stands only in written text is left out: it may be of the language, not of the project.
    """
    shown: list[str] = []
    uses: dict[str, tuple[int, int]] = {}
    known: dict[str, bool] = {}
    for message in history.continuation:
        if message.role in ("tool", "user"):
            shown.append(message.text.casefold())
        for name, short in _used(message).items():
            if name not in known:
                bare = posixpath.basename(name).casefold()
                known[name] = not any(bare in text for text in shown)
            if known[name]:
                in_short, in_all = uses.get(name, (0, 0))
                uses[name] = (in_short + short, in_all + 1)
    told = [name for name, (short, _) in uses.items() if short or not name.isidentifier()]
    return sorted(told, key=lambda name: [-count for count in uses[name]])


def _used(message: Message) -> dict[str, bool]:
    """Return the names in the arguments of a message's calls: whether they stand in a short one."""
    found: dict[str, bool] = {}
    for call in message.calls:
        for value in call.function.parsed().values():
            for text in (value,) if isinstance(value, str) else leaves(value):
                short = len(text) <= _SHORT
                for name in identifiers_in(text):
                    found[name] = found.get(name, False) or short
    return found


def _can_be_asked(history: History, name: str, item: ExpectedFact) -> bool:
    """Return whether a name stands in the compressed part only, and could not be guessed."""
    if history.kept(item.forms) or not item.evidence or hasattr(builtins, name):
        return False
    if "/" in name or not mentioned_files(name):
        return True
    # ``record.ts`` may be an attribute; it is a file if a call touched it.
    return any(posixpath.basename(path) == name for path in history.inventory.states)


def _fact(history: History, name: str) -> ExpectedFact:
    if mentioned_files(name):
        path = history.reading_path(name)
        item = path_fact(history, path, history.compressed)
        if path != name:
            more = [*item.any_of, name]
            return fact(path, item.evidence, more)
        return item
    return fact(name, evidence(history, [name], history.compressed))
