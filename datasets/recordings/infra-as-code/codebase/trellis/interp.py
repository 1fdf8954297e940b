"""``${...}`` in configuration.

What can be known is put in at once. What another resource has to say (``${ref...}``) stays as a token
``@{ADDRESS|ATTRIBUTE}`` until plan or apply know it.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from trellis import TrellisError
from trellis.settings import Settings

_EXPRESSION = re.compile(r"\$\{([^}]+)\}")
_TOKEN = re.compile(r"@\{([^|}]+)\|([^}]+)\}")
_REF = re.compile(r"ref\.(?P<type>\w+)\.(?P<name>[\w-]+)(?:\[(?P<key>[^\]]+)\])?\.(?P<attr>\w+)$")

UNKNOWN = "(known after apply)"


class Scope:
    """What expressions may speak of."""

    def __init__(self, settings: Settings, env: dict[str, Any], alias: str = "", where: str = "") -> None:
        self.settings = settings
        self.env = env
        self.alias = alias
        self.where = where
        self.variables: dict[str, Any] = {}
        self.outputs: dict[str, dict[str, Any]] = {}
        self.keys: dict[tuple[str, str], list[str] | None] = {}
        self.each: tuple[str, Any] | None = None

    def lookup(self, expression: str) -> Any:
        """Return the value of one expression."""
        head, _, rest = expression.partition(".")
        if head == "var" and rest in self.variables:
            return self.variables[rest]
        if head == "env" and rest in self.env:
            return self.env[rest]
        if head == "each" and self.each:
            return self.each[0] if rest == "key" else self.each[1]
        if head == "use":
            alias, _, output = rest.partition(".")
            if output in self.outputs.get(alias, {}):
                return self.outputs[alias][output]
        if head == "file":
            path = self.settings.path(rest)
            if path.is_file():
                return json.dumps(json.loads(path.read_text()), sort_keys=True, separators=(",", ":"))
        if head == "ref":
            return self._reference(expression)
        if head == "zip":  # zip.TYPE.NAME.ATTRIBUTE: a table from key to attribute
            kind, _, attribute = rest.rpartition(".")
            kind, _, name = kind.partition(".")
            if self.keys.get((kind, name)):
                return {key: f"@{{{self.alias}.{kind}.{name}[{key}]|{attribute}}}" for key in self.keys[kind, name] or []}
        raise TrellisError(f"{self.where}: ${{{expression}}} means nothing here")

    def _reference(self, expression: str) -> Any:
        match = _REF.match(expression)
        if match is None or (match["type"], match["name"]) not in self.keys:
            raise TrellisError(f"{self.where}: ${{{expression}}} is no resource of this module")
        keys = self.keys[match["type"], match["name"]]
        base = f"{self.alias}.{match['type']}.{match['name']}"
        if match["key"] == "*":
            return [f"@{{{base}[{key}]|{match['attr']}}}" for key in keys or []]
        if (keys is None) != (match["key"] is None):
            raise TrellisError(f"{self.where}: ${{{expression}}} {'needs' if keys else 'has no'} [key]")
        key = match["key"]
        if key == "each":
            key = self.each[0] if self.each else key
        return f"@{{{base}{f'[{key}]' if key else ''}|{match['attr']}}}"


def interpolate(value: Any, scope: Scope) -> Any:
    """Put in what the scope knows; a text that is one expression takes its type."""
    if isinstance(value, dict):
        return {key: interpolate(each, scope) for key, each in value.items()}
    if isinstance(value, list):
        found = []
        for each in value:
            result = interpolate(each, scope)
            found += result if isinstance(result, list) and isinstance(each, str) else [result]
        return found
    if not isinstance(value, str):
        return value
    whole = _EXPRESSION.fullmatch(value)
    if whole:
        return scope.lookup(whole[1])
    return _EXPRESSION.sub(lambda match: str(scope.lookup(match[1])), value)


def tokens(value: Any) -> Iterator[tuple[str, str]]:
    """Yield address and attribute of every token in a value."""
    if isinstance(value, dict):
        for each in value.values():
            yield from tokens(each)
    elif isinstance(value, list):
        for each in value:
            yield from tokens(each)
    elif isinstance(value, str):
        for match in _TOKEN.finditer(value):
            yield match[1], match[2]


def resolve(value: Any, known: Callable[[str, str], Any]) -> Any:
    """Put in what ``known`` says about each token; None means not yet."""
    if isinstance(value, dict):
        return {key: resolve(each, known) for key, each in value.items()}
    if isinstance(value, list):
        return [resolve(each, known) for each in value]
    if not isinstance(value, str):
        return value
    whole = _TOKEN.fullmatch(value)
    if whole:
        answer = known(whole[1], whole[2])
        return UNKNOWN if answer is None else answer

    def text(match: re.Match[str]) -> str:
        answer = known(match[1], match[2])
        return UNKNOWN if answer is None else str(answer)

    return _TOKEN.sub(text, value)
