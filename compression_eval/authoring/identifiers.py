"""Names and numbers in a text that stand for one thing: files, symbols, codes, hashes, ports."""

import re

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
_SCANNED = 200_000


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
