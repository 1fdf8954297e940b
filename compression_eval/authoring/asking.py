"""From what stands in a history to a question about it: names, facts with evidence, wordings.

The questions that need no model stand in ``mechanical.yaml``, a row each.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict, Field

from compression_eval.authoring.history import History
from compression_eval.file_ops.naming import mentioned_files
from compression_eval.fixtures.banks import AnswerKey, ExpectedFact, Probe, ProbeType
from compression_eval.fixtures.models import Language
from compression_eval.text.matching import normalise, other_paths

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

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]")
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
    """Return the words that a name is made of, in lower case."""
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


def stated_fact(
    history: History,
    text: str,
    among: Iterable[int],
    any_of: Sequence[str] = (),
    superseded: Iterable[str] = (),
) -> ExpectedFact:
    """Return a fact whose evidence is those of some messages that state one of its forms."""
    return fact(text, evidence(history, [text, *any_of], among), any_of, superseded)


def path_fact(history: History, path: str, among: Iterable[int]) -> ExpectedFact:
    """Return a file as a fact; its bare name counts too where no other file has it."""
    name = posixpath.basename(path)
    same = {known for known in history.files if posixpath.basename(known) == name}
    unique = name != path and same <= {path, name}
    if unique:
        bare, paths = normalise(name), [normalise(path)]
        unique = not any(other_paths(bare, paths, text.normalised) for text in history.texts)
    return stated_fact(history, path, among, [name] if unique else [])


def evidence(history: History, forms: Iterable[str], among: Iterable[int]) -> list[int]:
    """Return which messages state one of some forms; of many the first and the latest."""
    stated = history.stated_in(forms, among)
    half = _MAX_EVIDENCE // 2
    return stated if len(stated) <= _MAX_EVIDENCE else [*stated[:half], *stated[-half:]]


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
class Ask:
    """A question that a history gives rise to, before it is worded."""

    row: str
    """Its row in ``mechanical.yaml``."""
    facts: Sequence[ExpectedFact]
    values: Mapping[str, str] = field(default_factory=dict)
    """What is put into the wording; from conversations, and never read as a place itself."""
    key: AnswerKey | None = None

    @property
    def template(self) -> str:
        """What rows that ask the same have in common."""
        return _table().probes[self.row].like or self.row

    def probe(self, history: History) -> Probe:
        """Return the question in the language of a history."""
        row = _table().probes[self.row]
        template: str = getattr(row, history.language)
        question = _PLACE.sub(lambda match: self.values[match[1]], template)
        answer = wording("join", history.language).join(item.fact for item in self.facts)
        origin = f"mechanical:{row.origin}"
        return draft(history, row.type, question, self.facts, answer, origin, self.key)
