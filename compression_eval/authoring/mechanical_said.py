"""Questions about what the user and the agent said: names, values, and what was to be replaced."""

import posixpath
import re
from collections.abc import Container, Iterator

from compression_eval.authoring.candidates import fact
from compression_eval.authoring.history import History
from compression_eval.authoring.identifiers import identifiers_in, tells
from compression_eval.authoring.making import evidence, made, path_fact
from compression_eval.fixtures.artifacts.naming import mentioned_files
from compression_eval.fixtures.banks import ExpectedFact, Probe
from compression_eval.fixtures.matching import normalise
from compression_eval.fixtures.models import Message, leaves

_ORIGIN = "said"
_MAX_NAMED = 5
_SHORT = 400
"""Characters of an argument that is no file's text."""
_SCANNED = 40_000
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_PASTED = re.compile(r":\d+:\d+|^\s*at \S+|^ {4,}\S|^\s*[➜$>%#] |^[+-] ?\d+ ")
_HASH = re.compile(r"[0-9a-f-]{7,}")
_CODE = re.compile(r"\b[A-Z][A-Z0-9]{1,9}-\d{2,6}\b|(?<!\w)#\d{2,5}\b")
"""A ticket. A hash that somebody pasted says nothing to go on with."""
_MAX_REQUEST = 2_000
"""Characters of a request; a longer one brings instructions and material along."""
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


def said_probes(history: History, used: Container[str]) -> Iterator[tuple[str, Probe]]:
    """Yield probes about what was said, each with the name of its template.

    Args:
        history: What is asked about.
        used: Names that the agent used again after the cut.
    """
    yield from _last_request(history, used)
    yield from _instead(history)
    yield from _given(history)
    yield from _named(history, used)


def said_fact(history: History, name: str, messages: list[int] | range) -> ExpectedFact:
    """Return a name as a fact; a file also by the path that the project has it under."""
    if not mentioned_files(name):
        return fact(name, evidence(history, [name], messages))
    path = history.reading_path(name)
    item = path_fact(history, path, messages)
    return fact(path, item.evidence, [*item.any_of, name]) if path != name else item


def _prose(text: str) -> str:
    """Return what somebody wrote, without code and what looks pasted from a terminal."""
    lines = _FENCED.sub(" ", text[:_SCANNED]).split("\n")
    return "\n".join(line for line in lines if not _PASTED.search(line))


def _names(history: History, text: str, message: int, used: Container[str]) -> list[str]:
    """Return the files and tickets in a text, or else its telling names, by the project's paths.

    All or none: one of them at least has to come up again, or they are examples.
    """
    names = {history.reading_path(name): None for name in mentioned_files(text)}
    names.update(dict.fromkeys(_CODE.findall(text)))
    told = (name for name in identifiers_in(text) if tells(name) and not _HASH.fullmatch(name))
    names = names or dict.fromkeys(told)
    again = any(
        name in used or any(index != message for index in history.stated_in([name]))
        for name in names
    )
    return list(names) if again and len(names) <= _MAX_NAMED else []


def _named(history: History, used: Container[str]) -> Iterator[tuple[str, Probe]]:
    """Ask which files a request of the user named beyond its first words."""
    for turn in history.turns:
        text = _prose(history.messages[turn.message].typed)
        names = _names(history, text, turn.message, used)
        files = [name for name in names if mentioned_files(name)]
        if turn.label and files:
            facts = [said_fact(history, name, [turn.message]) for name in files]
            values = {"asked": turn.label}
            yield "user_files", made(history, "recall", "user_files", facts, _ORIGIN, values)


def _last_request(history: History, used: Container[str]) -> Iterator[tuple[str, Probe]]:
    """Ask for what the user asked for last, by what they named."""
    for turn in reversed(history.turns):
        if not turn.request:
            continue
        prose = _prose(history.messages[turn.message].typed)
        names = _names(history, prose, turn.message, used) if len(prose) <= _MAX_REQUEST else []
        if names:
            facts = [said_fact(history, name, [turn.message]) for name in names]
            yield "last_request", made(history, "continuation", "last_request", facts, _ORIGIN)
        return


def _instead(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask what was to stand in the place of something, where one thing only was named."""
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    for index in history.compressed:
        message = history.messages[index]
        text = message.typed if message.role == "user" else message.text
        if message.role not in ("user", "assistant") or not text:
            continue
        prose = _prose(text)
        for pattern in (_INSTEAD, _REPLACED):
            for match in pattern.finditer(prose):
                if message.role == "assistant" and not _done(prose, match):
                    continue  # what it describes, or proposes
                old, new = (_bare(match[name]) for name in ("old", "new"))
                if all(_is_thing(match[name]) for name in ("old", "new")):
                    found.setdefault((message.role, old), {}).setdefault(new, []).append(index)
    for (role, old), news in found.items():
        ((new, at), *more) = news.items()
        if more or normalise(new) in normalise(old) or normalise(old) in normalise(new):
            continue
        template = "user_instead" if role == "user" else "agent_instead"
        facts = [said_fact(history, new, at)]
        yield template, made(history, "decision", template, facts, _ORIGIN, {"old": old})


def _done(prose: str, match: re.Match[str]) -> bool:
    """Return whether the agent says what it did or does; not what it describes or proposes."""
    if re.match(r"\w+ed\b", match[0]):
        return True
    return (
        re.search(
            r"\b(?:I(?:'ll| will)?|I've) (?:now )?use[ds]? (?:the )?$", prose[: match.start()]
        )
        is not None
    )


def _bare(thing: str) -> str:
    return thing.strip("`").rstrip(".,;:")


def _is_thing(thing: str) -> bool:
    """Return whether words stand for one thing of the project, by their quotes or their form."""
    bare = _bare(thing)
    quoted = thing.startswith("`") and len(bare) > 3
    return quoted or identifiers_in(bare) == [bare]


def _given(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask for the values that the user gave, each by the words before it."""
    found: dict[str, dict[str, list[int]]] = {}
    for turn in history.turns:
        for line in _prose(history.messages[turn.message].typed).split("\n"):
            for match in _GIVEN.finditer(line):
                words = _ARTICLE.split(match["key"])[-1].split()
                if len(words) > 1 and not _NO_KEY.intersection((words[0], words[-1])):
                    values = found.setdefault(" ".join(words), {})
                    values.setdefault(match["value"], []).append(turn.message)
    for key, values in found.items():
        ((value, at), *more) = values.items()
        if not more:
            facts = [fact(value, evidence(history, [value], at))]
            yield "user_value", made(history, "recall", "user_value", facts, _ORIGIN, {"name": key})


def used_again(history: History) -> list[str]:
    """Return the names that calls after the cut used before anything showed them.

    A name is shown by a tool result or a user's message. A symbol that stands only in written
    text is left out: it may be of the language, not of the project.
    """
    shown: list[str] = []
    used: dict[str, bool] = {}
    known: dict[str, bool] = {}
    for message in history.continuation:
        if message.role in ("tool", "user"):
            shown.append(message.text.casefold())
        for name, short in _used(message).items():
            if name not in known:
                bare = posixpath.basename(name).casefold()
                known[name] = not any(bare in text for text in shown)
            if known[name]:
                used[name] = used.get(name, False) or short or not name.isidentifier()
    return [history.reading_path(name) for name, told in used.items() if told]


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
