"""The commands of a shell script in order, each with what decides whether it ran.

The grammar is that of ``tree-sitter-bash``; nothing is ever run.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_MAX_SCRIPT = 200_000
_MAX_MARKS = 3_000
"""Parentheses and angle brackets that are parsed; its time can rise with their square."""
_MAX_WORDS = 5_000
_MAX_DEPTH = 60

SUBSTITUTIONS = ("command_substitution", "process_substitution")
"""Types of nodes that hold a script of their own."""

_SIMPLE = (
    *("command", "declaration_command", "unset_command", "test_command"),
    *("variable_assignment", "variable_assignments"),
)
_JOINED = ("list", "pipeline", "negated_command")
_DECIDED = ("if_statement", "elif_clause", "else_clause", "case_item")
_STATEMENTS = (
    *(*_SIMPLE, *_JOINED, *_DECIDED, "redirected_statement", "compound_statement", "do_group"),
    *("while_statement", "for_statement", "c_style_for_statement", "case_statement"),
    *("subshell", "function_definition"),
)
_SEPARATORS = (";", "&", ";;", ";&", ";;&", "then", "do")
_WRITING = (">", ">>", ">|", "&>", "&>>")

_HERE = "/dev/here/"
"""Below this name stands, as a file that is read, what a command is given in the script itself."""
_HEREDOC = re.compile(r"(?<!<)<<(-?)[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?(\w[\w.-]*))")
_HERE_STRING = re.compile(r"(?<!<)<<<(?!<)[ \t]*")
_TIMED = re.compile(r"\btime[ \t]+(?=[({])")


class ShellSyntaxError(Exception):
    """The text is no complete shell command, or too much of one."""


@dataclass(frozen=True)
class Place:
    """Where a statement stands.

    Attributes:
        doubtful: Whether a condition or a ``||`` decides if it runs.
        shown: Whether what it prints reaches the result.
        redirects: Redirections around it.
    """

    doubtful: bool = False
    shown: bool = True
    redirects: "Sequence[Node]" = ()


@dataclass(frozen=True)
class Command:
    """One simple command.

    Attributes:
        node: Its words and assignments; None for redirections alone.
        place: Where it stands, with its own redirections.
        joined: The operator between it and the command before it; empty for the first.
        chain: Number of the list it belongs to; ``;`` and line breaks begin a new one.
    """

    node: "Node | None"
    place: Place
    joined: str
    chain: int


@dataclass(frozen=True)
class Loop:
    """What follows is done for each of some words."""

    name: str
    words: "Sequence[Node]"


Step = Command | Loop | Literal["enter", "leave"]
"""Folder and variables come back after what stands between ``enter`` and ``leave``."""


def parse(script: str) -> "Node":
    """Return the syntax tree of a script.

    Raises:
        ShellSyntaxError: It cannot be parsed, or not in reasonable time.
    """
    from tree_sitter import Parser

    if len(script) > _MAX_SCRIPT:
        raise ShellSyntaxError
    script = _TIMED.sub("", _HERE_STRING.sub(f"< {_HERE}", _heredocs_as_files(script)))
    if sum(map(script.count, "<>()")) > _MAX_MARKS:
        raise ShellSyntaxError
    root = Parser(_language()).parse(script.encode(errors="replace")).root_node
    if root.has_error:
        raise ShellSyntaxError
    return root


@cache
def _language() -> "Language":
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _heredocs_as_files(script: str) -> str:
    """Return a script whose here-documents are files that are read, with their texts as names.

    The grammar knows here-documents only where little else stands on their line.
    """
    lines = script.split("\n")
    last = {line.lstrip("\t"): number for number, line in enumerate(lines)}
    kept: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        for match in _HEREDOC.finditer(line):
            delimiter = match[2] or match[3] or match[4]
            body: list[str] = []
            for given in lines[at : last.get(delimiter, -1) + 1]:
                text = given.lstrip("\t") if match[1] else given
                if text == delimiter:
                    name = "".join(body).encode(errors="replace").hex()
                    line = line.replace(match[0], f"< {_HERE}0x{name}", 1)
                    at += len(body) + 1
                    break
                body.append(f"{text}\n")
        kept.append(line)
    return "\n".join(kept)


def here_text(file: str | None) -> str | None:
    """Return the text of a here-document or here-string; None for any other file."""
    if file is None or not file.startswith(_HERE):
        return None
    text = file.removeprefix(_HERE)
    try:
        return bytes.fromhex(text[2:]).decode(errors="replace") if text[:2] == "0x" else text
    except ValueError:
        return text


def text_of(node: "Node") -> str:
    """Return the source of a node."""
    source: bytes = node.text or b""
    return source.decode(errors="replace")


def operator_of(redirect: "Node") -> str:
    """Return the operator of a redirection."""
    operators: list[str] = [child.type for child in redirect.children if not child.is_named]
    return operators[0] if operators else ""


def hides_output(redirects: "Sequence[Node]") -> bool:
    """Return whether one of some redirections takes the output away."""
    for node in redirects:
        if node.type == "file_redirect" and operator_of(node) in _WRITING:
            descriptor = node.child_by_field_name("descriptor")
            if descriptor is None or descriptor.text == b"1":
                return True
    return False


@dataclass
class Script:
    """The steps of a script in their order, and the functions that it defines.

    Args:
        root: The syntax tree, or a substitution in one.

    Raises:
        ShellSyntaxError: It is too long or too deep.
    """

    root: "Node"
    steps: list[Step] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    _words: int = 0
    _depth: int = 0
    _joined: str = ""
    _chain: int = 0

    def __post_init__(self) -> None:
        self._compound(self.root, Place())

    @property
    def commands(self) -> list[Command]:
        """The steps that are commands."""
        return [step for step in self.steps if isinstance(step, Command)]

    def _add(self, node: "Node", place: Place) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ShellSyntaxError
        own = [child for child in node.children if child.type == "file_redirect"]
        if node.type in _SIMPLE:
            if any(child.type == "subshell" for child in node.children):
                raise ShellSyntaxError  # the grammar takes words before one, the shell does not
            self._append(node, replace(place, redirects=[*own, *place.redirects]))
        elif node.type == "redirected_statement":
            place = replace(place, redirects=[*own, *place.redirects])
            body = node.child_by_field_name("body")
            if body is None:
                self._append(None, place)
            else:
                self._add(body, place)
        elif node.type in _JOINED:
            self._parts(node, place)
        else:
            shown = place.shown and not hides_output(place.redirects)
            self._compound(node, replace(place, shown=shown, redirects=()))
            if place.redirects:
                self._append(None, place)
        self._depth -= 1

    def _append(self, node: "Node | None", place: Place) -> None:
        self._words += len(place.redirects) + (node.named_child_count if node else 0)
        if self._words > _MAX_WORDS:
            raise ShellSyntaxError
        self.steps.append(Command(node, place, self._joined, self._chain))

    def _parts(self, node: "Node", place: Place) -> None:
        """Take in what ``&&``, ``||`` or ``|`` join; what redirects it all redirects its last."""
        rows = [node.children]
        while rows[-1][0].type == "list":  # a list holds the list of all but its last part
            rows.append(rows[-1][0].children)
        children = [child for row in reversed(rows) for child in row if child.type != "list"]
        last = children[-1]
        shown = place.shown
        if node.type == "pipeline" and hides_output([*place.redirects, *last.children]):
            shown = False
        for child in children:
            if child.type in ("&&", "||", "|", "|&"):
                self._joined = child.type[0] if child.type == "|&" else child.type
            elif child.type in _STATEMENTS:
                doubtful = place.doubtful or self._joined == "||"
                redirects = place.redirects if child == last else ()
                self._add(child, Place(doubtful, shown, redirects))

    def _compound(self, node: "Node", place: Place) -> None:
        """Take in statements that follow each other, and those inside of conditions and loops."""
        children = node.children
        scoped = node.type in ("subshell", "function_definition")
        if scoped:
            self.steps.append("enter")
        if node.type == "function_definition" and (name := node.child_by_field_name("name")):
            self.functions.add(text_of(name))
        elif node.type == "for_statement" and (name := node.child_by_field_name("variable")):
            self.steps.append(Loop(text_of(name), node.children_by_field_name("value")))
        elif node.type == "c_style_for_statement":
            children = node.children_by_field_name("body")
        conditions = node.children_by_field_name("condition")
        for child in children:
            if child.type in _SEPARATORS:
                self._joined = ";"
            elif child.type in _STATEMENTS:
                decided = node.type in _DECIDED and child not in conditions
                self._chain += 1
                self._add(child, replace(place, doubtful=place.doubtful or decided))
                self._joined = ";"
        if scoped:
            self.steps.append("leave")
