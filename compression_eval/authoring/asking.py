"""From what stands in a history to a question about it: names, facts with evidence, wordings.

The questions that need no model stand in ``mechanical.yaml``, a row each.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from compression_eval.authoring.history import History
from compression_eval.file_ops.naming import mentioned_files
from compression_eval.fixtures.banks import AnswerKey, ExpectedFact, Probe, ProbeType
from compression_eval.fixtures.models import Language
from compression_eval.text.lookup import normalise, other_paths

DRAFT = "draft"
"""The id of a probe before it has its place in a bank."""

_MAX_EVIDENCE = 6
_PLACE = re.compile(r"\{(\w+)\}")

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_HASH = r"(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}"
_CODE = r"[A-Z][A-Z0-9]{1,9}-\d{2,6}|[A-Z]{1,5}\d{3,6}"
_SNAKE = r"_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+"
_CAMEL = r"[a-z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]+){2,}"
_PORT = r"(?<=localhost:)\d{4,5}|(?<=127\.0\.0\.1:)\d{4,5}|(?<=port=)\d{4,5}|(?<=port )\d{4,5}"
_ISSUE = r"(?<=\s)#\d{2,6}"
_NAME = re.compile(
    rf"(?<![\w.-])(?:{_UUID}|{_HASH}|{_CODE}|{_SNAKE}|{_CAMEL})(?![\w-])|(?:{_PORT})(?!\w)|{_ISSUE}\b"
)
_COMMON = frozenset([
    "TypeScript", "JavaScript", "Node.js", "GitHub", "GitLab", "CoffeeScript", "PowerShell",
    "WebSocket", "PostgreSQL", "MySQL", "SQLite", "NodeJS", "OpenAI", "ChatGPT", "DevOps", "LaTeX",
    "YouTube", "LinkedIn", "MacOS", "IntelliJ", "PyCharm", "JetBrains",
])  # fmt: skip
"""Names that everybody knows."""
_MIN_NAME, _MAX_NAME = 4, 80
_MIN_TELLING = 6
_MAX_READ = 200_000

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+(?:\.\d+)*|[^\W\d_A-Za-z]")
_GENERIC = frozenset([
    "test", "tests", "spec", "specs", "index", "main", "init", "readme", "setup", "config",
    "conf", "utils", "util", "helper", "helpers", "type", "types", "id", "name", "value",
    "values", "data", "file", "files", "item", "items", "package", "json", "yaml", "yml",
    "toml", "go", "mod", "make", "makefile", "dockerfile", "license", "changelog", "src",
    "lib", "py", "js", "ts", "tsx", "jsx", "md", "txt", "rs", "java", "sh", "html", "css",
    "the", "of", "in", "is", "to", "a", "an", "new", "get", "set", "run", "do",
])  # fmt: skip
"""Pieces of names that follow from convention."""


def identifiers_in(text: str) -> list[str]:
    """Return what stands for one thing in a text, each once: files, then symbols, codes, ports.

    Args:
        text: Any text; only its first 200,000 characters are read.
    """
    text = text[:_MAX_READ]
    names = [*mentioned_files(text), *(match[0] for match in _NAME.finditer(text))]
    return [
        name
        for name in dict.fromkeys(names)
        if _MIN_NAME <= len(name) <= _MAX_NAME and name.isprintable() and name not in _COMMON
    ]


def tells(name: str) -> bool:
    """Return whether a name of the code says something: two words at least, one not generic."""
    pieces = _pieces(name)
    named = len(name) >= _MIN_TELLING and not name[0].isdigit()
    return named and len(pieces) > 1 and not _GENERIC.issuperset(pieces)


def guessable(forms: Iterable[str], question: str) -> bool:
    """Return whether a form follows from convention, or from the words of a question.

    Of a path the base name counts; ``main.py`` and ``tests/test_x.py`` beside ``x`` say nothing.
    """
    given = set(_pieces(question)) | _GENERIC
    for form in forms:
        own = _pieces(form if " " in form else posixpath.basename(form.rstrip("/")))
        if own and all(piece in given or piece.removesuffix("s") in given for piece in own):
            return True
    return False


def _pieces(name: str) -> list[str]:
    """Return the words and numbers that a name is made of, in lower case."""
    return [piece.lower() for piece in _PIECE.findall(name)]


def fact(
    text: str, evidence: Iterable[int], any_of: Iterable[str] = (), superseded: Iterable[str] = ()
) -> ExpectedFact:
    """Return an expected fact; only fields with a value are set, so only they are written."""
    fields: dict[str, object] = {"fact": text, "evidence": sorted(set(evidence))}
    if forms := list(dict.fromkeys(form for form in any_of if form != text)):
        fields["any_of"] = forms
    if earlier := list(dict.fromkeys(superseded)):
        fields["superseded"] = earlier
    return ExpectedFact.model_validate(fields)


def draft(
    history: History,
    kind: ProbeType,
    question: str,
    facts: Sequence[ExpectedFact],
    answer: str,
    origin: str,
    key: AnswerKey | None = None,
) -> Probe:
    """Return a probe without an id; only fields with a value are set, so only they are written."""
    more = {"answer_key": key} if key is not None else {}
    return Probe(
        id=DRAFT,
        type=kind,
        question=question,
        expected_facts=list(facts),
        reference_answer=answer,
        cut=history.cut,
        origin=origin,
        **more,
    )


class _Row(BaseModel):
    """A question that needs no model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: ProbeType
    origin: str
    like: str = ""
    answers: Literal["texts", "files"] = "texts"
    min: int = 1
    max: int | None = None
    keys: tuple[str, ...] = ()
    en: str
    zh: str
    ja: str


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    texts: dict[str, dict[Language, str]]
    probes: dict[str, _Row] = Field(min_length=1)


@cache
def _table() -> _Table:
    text = (files(__package__) / "mechanical.yaml").read_text(encoding="utf-8")
    return _Table.model_validate(yaml.safe_load(text))


def wording(name: str, language: Language) -> str:
    """Return one of the texts beside the questions, in a language."""
    return _table().texts[name][language]


@dataclass(frozen=True)
class Answer:
    """One thing that a history tells, and the question that it answers or helps to answer."""

    row: str
    """The row of the question in ``mechanical.yaml``."""
    text: str
    messages: Iterable[int]
    """Where it may be stated; those that do state it are its evidence."""
    values: Mapping[str, str] = field(default_factory=dict)
    """What is put into the wording; from conversations, and never read as a place itself."""
    forms: Sequence[str] = ()
    """Other ways to state it."""
    also: Sequence[str] = ()
    """What counts as an answer too, but is no evidence of it."""
    key: str = ""
    """The list of the answer key that it stands in, where the row has several."""


def questions(history: History, answers: Iterable[Answer]) -> Iterator[tuple[Probe, str]]:
    """Yield a probe, and what it is made after, for each question with a fit number of answers.

    Answers to one question are those with the same row and values.

    Args:
        history: What they come from.
        answers: The most telling first; one that was found in several places may come repeatedly.
    """
    asked: dict[tuple[str, tuple[tuple[str, str], ...]], dict[str, list[Answer]]] = {}
    for answer in answers:
        same = asked.setdefault((answer.row, tuple(answer.values.items())), {})
        same.setdefault(answer.text, []).append(answer)
    for (name, items), found in asked.items():
        row, values = _table().probes[name], dict(items)
        if len(found) < row.min or (row.max is not None and len(found) > row.max):
            continue
        facts = [_fact_of(history, row, same) for same in found.values()]
        key = {
            part: [text for text, (one, *_) in found.items() if one.key in ("", part)]
            for part in row.keys
        }
        pieces = _PLACE.split(getattr(row, history.language))  # text and place in turn
        pieces[1::2] = [values[place] for place in pieces[1::2]]
        probe = draft(
            history,
            row.type,
            "".join(pieces),
            facts,
            wording("join", history.language).join(item.fact for item in facts),
            f"mechanical:{row.origin}",
            AnswerKey.model_validate(key) if key else None,
        )
        yield probe, row.like or name


def _fact_of(history: History, row: _Row, places: Sequence[Answer]) -> ExpectedFact:
    """Return an answer that was found in some places as an expected fact."""
    answer = places[0]
    text, forms, also = answer.text, list(answer.forms), list(answer.also)
    if row.answers == "files":
        also.append(text)
        text = history.project_path(text)
        # A file's bare name counts too where no other file has it.
        name = posixpath.basename(text)
        if text.startswith("/"):  # nobody knows where the project begins
            forms.extend(_endings(text, history.files))
        same = {known for known in history.files if posixpath.basename(known) == name}
        if name != text and same <= {text, name}:
            bare, paths = normalise(name), [normalise(text)]
            if not any(other_paths(bare, paths, known.normalised) for known in history.texts):
                forms.append(name)
    messages = {message for place in places for message in place.messages}
    stated = history.stated_in([text, *forms], messages)
    if len(stated) > _MAX_EVIDENCE:  # the first and the latest
        stated = [*stated[: _MAX_EVIDENCE // 2], *stated[-(_MAX_EVIDENCE // 2) :]]
    return fact(text, stated, [*forms, *also])


def _endings(path: str, files: Iterable[str]) -> Iterator[str]:
    """Yield the ends of an absolute path that are the end of no other file, from two parts on."""
    parts = path.strip("/").split("/")
    others = [f"/{known.lstrip('/')}" for known in files if known != path]
    for start in range(len(parts) - 2, 0, -1):
        ending = "/".join(parts[start:])
        if not any(other.endswith(f"/{ending}") for other in others):
            yield ending
