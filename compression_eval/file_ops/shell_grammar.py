"""Parse shell scripts into syntax trees and expand their words; nothing is ever run.

The grammar is that of ``tree-sitter-bash``.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node

SIMPLE = (
    *("command", "declaration_command", "unset_command", "test_command"),
    *("variable_assignment", "variable_assignments"),
)
JOINED = ("list", "pipeline", "negated_command")
DECIDED = ("if_statement", "elif_clause", "else_clause", "case_item")
STATEMENTS = (
    *(*SIMPLE, *JOINED, *DECIDED, "redirected_statement", "compound_statement", "do_group"),
    *("while_statement", "for_statement", "c_style_for_statement", "case_statement"),
    *("subshell", "function_definition"),
)
SUBSTITUTIONS = ("command_substitution", "process_substitution")
"""Types of nodes that contain a script."""

_MAX_SCRIPT = 200_000
_MAX_MARKS = 3_000
"""Maximum parentheses and angle brackets: parsing time can be quadratic in their number."""
_MAX_NODES = 20_000
_MAX_DEPTH = 60
_MAX_EXPANDED = 40
_WRITING = (">", ">>", ">|", "&>", "&>>")
_UNKNOWN = (*SUBSTITUTIONS, "arithmetic_expansion", "brace_expression")
_HERE = "/dev/here/"
"""Prefix of the invented file names that hold the texts of here-documents."""
_HEREDOC = re.compile(r"(?<!<)<<(-?)[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?(\w[\w.-]*))")
_HERE_STRING = re.compile(r"(?<!<)<<<(?!<)[ \t]*")
_TIMED = re.compile(r"\btime[ \t]+(?=[({])")
_PATTERN = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r"\\([\n\"\\$`])")
_ANSI = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"', "r": "\r"}
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?:\[[@*]\])?\}?")

Variables = Mapping[str, list[str] | None]
"""Possible values of variables; None if unknown."""
_Piece = tuple[list[str] | None, bool]
"""A part of a word: its possible values, None if unknown; and whether it is quoted."""


@dataclass(frozen=True)
class Argument:
    """One word of a command after expansion; `text` is None if only running could determine it."""

    text: str | None
    pattern: bool = False


class ShellSyntaxError(Exception):
    """The text is no complete shell command, or too large."""


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
    if root.has_error or root.descendant_count > _MAX_NODES:
        raise ShellSyntaxError
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        inside = node.named_children
        # The grammar accepts words before a parenthesis, the shell does not.
        strange = node.type in SIMPLE and any(child.type == "subshell" for child in inside)
        if strange or depth > _MAX_DEPTH:
            raise ShellSyntaxError
        waiting += [(child, depth + (child.type != "list")) for child in inside]
    return root


@cache
def _language() -> "Language":
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _heredocs_as_files(script: str) -> str:
    """Replace a script's here-documents by input files whose names are their texts.

    The grammar parses here-documents only if their line holds little else.
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
    """Return whether a redirection hides the output."""
    for node in redirects:
        if node.type == "file_redirect" and operator_of(node) in _WRITING:
            descriptor = node.child_by_field_name("descriptor")
            if descriptor is None or descriptor.text == b"1":
                return True
    return False


def all_known(nodes: "Sequence[Node]", variables: Variables) -> list[str] | None:
    """Return the expanded words; None if one is unknown or a pattern."""
    expanded = [word for node in nodes for word in expand(node, variables)]
    texts = [word.text for word in expanded if word.text is not None and not word.pattern]
    return texts if texts and len(texts) == len(expanded) else None


def expand(node: "Node", variables: Variables) -> list[Argument]:
    """Return the expansion of a word, at most a few dozen words."""
    choices: list[list[str]] = []
    pattern = False
    plain = ""  # the unquoted text so far, in which braces and patterns count
    end: list[_Piece] = [([""], True)]
    for texts, quoted in [*_pieces(node, variables), *end]:
        if texts is None:
            return [Argument(None)]
        if quoted:
            pattern = pattern or bool(_PATTERN.search(plain))
            choices += [_braces(plain), texts]
            plain = ""
        else:
            plain += texts[0]
    combined = itertools.islice(itertools.product(*choices), _MAX_EXPANDED)
    return [Argument("".join(texts), pattern) for texts in combined]


def _pieces(node: "Node", variables: Variables) -> Iterator[_Piece]:
    """Yield the parts of a word."""
    text = text_of(node)
    match node.type:
        case "concatenation":
            for child in node.children:
                yield from _pieces(child, variables)
        case "string":
            yield from _quoted_pieces(node, variables)
        case "raw_string":
            yield [text[1:-1]], True
        case "ansi_c_string":
            yield [_ESCAPE.sub(lambda match: _ANSI.get(match[1], match[0]), text[2:-1])], True
        case "simple_expansion" | "expansion":
            name = _VARIABLE.fullmatch(text)
            yield (variables.get(name[1]) if name else None), True
        case kind if kind in _UNKNOWN:
            yield None, True
        case _:
            for position, part in enumerate(_ESCAPE.split(text)):
                yield [part.replace("\n", "") if position % 2 else part], position % 2 == 1


def _quoted_pieces(node: "Node", variables: Variables) -> Iterator[_Piece]:
    """Yield the parts of a text in double quotes."""
    source = node.text or b""
    start = source.index(b'"') + 1
    for child in [*node.children[1:-1], None]:
        # Text between expansions comes from the source: the tree omits some blanks.
        if child is None or child.type not in ("string_content", '"'):
            end = child.start_byte - node.start_byte if child else len(source) - 1
            text = source[start:end].decode(errors="replace")
            yield [_ESCAPED_IN_QUOTES.sub(lambda m: m[1].strip("\n"), text)], True
            if child:
                yield from _pieces(child, variables)
                start = child.end_byte - node.start_byte


def _braces(text: str) -> list[str]:
    """Expand one level of ``{a,b}``."""
    match = _BRACES.search(text)
    if not match:
        return [text]
    before, after = text[: match.start()], text[match.end() :]
    return [f"{before}{choice}{after}" for choice in match[1].split(",")][:_MAX_EXPANDED]
