"""Parse shell scripts into syntax trees and expand their words; nothing is ever run.

The grammar is that of ``tree-sitter-bash``. `parse` returns the tree of a script within a counted
amount of work. `expand` returns the words that an argument can become; what only running could tell
is None.
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
_PIECE = 1_000
"""Bytes of a script that the parser is given at a time."""
_MAX_DEPTH = 60
_MAX_EXPANDED = 40
_MAX_VALUE = 10_000
"""Maximum characters of a variable's value that is known."""
_MAX_WORD = 100_000
"""Maximum characters of a word after expansion."""
_WRITING = (">", ">>", ">|", "&>", "&>>")
_UNKNOWN = (*SUBSTITUTIONS, "arithmetic_expansion", "brace_expression")
_HERE = "/dev/here/"
"""Prefix of the invented file names that contain the texts of here-documents."""
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


@dataclass
class Work:
    """What the parser may still do. It is counted, not timed: the result is the same everywhere.

    Attributes:
        steps: Steps, about a hundred operations each; commands of real sessions take at most 13.
            What the parser does at an error takes time quadratic in the steps before it.
        reads: Pieces of the text to ask for. A single operation may look ahead to the end.
    """

    steps: int = 400
    reads: int = 10_000

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self.steps < 0 or self.reads < 0


def parse(script: str, work: Work | None = None) -> "Node":
    """Return the syntax tree of a script.

    Args:
        script: The script.
        work: What parsing it and other scripts may take in all; by default what one may.

    Raises:
        ShellSyntaxError: It cannot be parsed, or not in reasonable time.
    """
    if len(script) > _MAX_SCRIPT:
        raise ShellSyntaxError
    script = _TIMED.sub("", _HERE_STRING.sub(f"< {_HERE}", _heredocs_as_files(script)))
    root = _tree(script.encode(errors="replace"), work or Work())
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


def _tree(source: bytes, work: Work) -> "Node":
    """Return the syntax tree of a text without errors."""
    from tree_sitter import Parser

    def read(start: int, _: object) -> bytes:
        work.reads -= 1
        return b"" if work.is_done else source[start : start + _PIECE]

    def is_over(_: int, has_error: bool) -> bool:
        work.steps -= 1
        return has_error or work.is_done

    parser = Parser(_language())
    try:
        tree = parser.parse(read, progress_callback=is_over)
    except ValueError as error:
        raise ShellSyntaxError from error
    if tree.root_node.has_error or work.is_done:
        raise ShellSyntaxError
    # Again, as nodes of the first tree would get their texts from the callback.
    return parser.parse(source).root_node


@cache
def _language() -> "Language":
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _heredocs_as_files(script: str) -> str:
    """Replace a script's here-documents by input files whose names are their texts.

    The grammar parses here-documents only if their line contains little else.
    """
    lines = script.split("\n")
    last = {line: number for number, line in enumerate(lines)}
    last_indented = {line.lstrip("\t"): number for number, line in enumerate(lines)}
    kept: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        parts, end = [], 0
        for match in _HEREDOC.finditer(line):
            delimiter = match[2] or match[3] or match[4]
            if (last_indented if match[1] else last).get(delimiter, -1) < at:
                continue
            body: list[str] = []
            while (text := lines[at].lstrip("\t") if match[1] else lines[at]) != delimiter:
                body.append(f"{text}\n")
                at += 1
            at += 1
            name = "".join(body).encode(errors="replace").hex()
            parts += [line[end : match.start()], f"< {_HERE}0x{name}"]
            end = match.end()
        kept.append("".join([*parts, line[end:]]))
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
    """Return the expanded words; None if one is unknown or a pattern, or they are too long."""
    expanded = [word for node in nodes for word in expand(node, variables)]
    texts = [word.text for word in expanded if word.text is not None and not word.pattern]
    are_known = len(texts) == len(expanded) and sum(map(len, texts)) <= _MAX_VALUE
    return texts if texts and are_known else None


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
    if sum(max(map(len, texts)) for texts in choices) > _MAX_WORD:
        return [Argument(None)]
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
