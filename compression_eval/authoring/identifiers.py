"""Names and numbers in a text that stand for one thing: files, symbols, codes, hashes, ports."""

import posixpath
import re
from collections.abc import Iterable

from compression_eval.fixtures.artifacts.naming import mentioned_files

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
_COMMON = frozenset(
    (
        "TypeScript",
        "JavaScript",
        "Node.js",
        "GitHub",
        "GitLab",
        "CoffeeScript",
        "PowerShell",
        "WebSocket",
        "PostgreSQL",
        "MySQL",
        "SQLite",
        "NodeJS",
        "OpenAI",
        "ChatGPT",
        "DevOps",
        "LaTeX",
        "YouTube",
        "LinkedIn",
        "MacOS",
        "IntelliJ",
        "PyCharm",
        "JetBrains",
    )
)
"""Names that everybody knows."""
_LONGEST = 80
_SHORTEST = 4
_SHORTEST_TELLING = 6
_SCANNED = 200_000


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


def pieces(name: str) -> list[str]:
    """Return the words that a name is made of, in lower case."""
    return [piece.lower() for piece in _PIECE.findall(name)]


def tells(name: str) -> bool:
    """Return whether a name of the code says something: two words at least, one not generic."""
    found = pieces(name)
    named = len(name) >= _SHORTEST_TELLING and not name[0].isdigit()
    return named and len(found) > 1 and not _GENERIC.issuperset(found)


def guessable(forms: Iterable[str], question: str) -> bool:
    """Return whether a form follows from convention, or from the words of a question.

    Of a path the base name counts; ``main.py`` and ``tests/test_x.py`` beside ``x`` say nothing.
    """
    given = set(pieces(question)) | _GENERIC
    return any(
        given.issuperset(piece.removesuffix("s") if piece not in given else piece for piece in own)
        for form in forms
        if (own := pieces(posixpath.basename(form.rstrip("/")) if " " not in form else form))
    )


def identifiers_in(text: str) -> list[str]:
    """Return the identifiers in a text, each once, files first.

    Args:
        text: Any text; only its first 200,000 characters are read.
    """
    text = text[:_SCANNED]
    found = dict.fromkeys(mentioned_files(text))
    found.update(dict.fromkeys(match[0] for match in _NAME.finditer(text)))
    return [
        name
        for name in found
        if _SHORTEST <= len(name) <= _LONGEST and name.isprintable() and name not in _COMMON
    ]
