"""Follow a shell command: what each of its programs did to files, as far as the words tell.

Every command is taken to start in the project folder; ``cd`` is followed within it.
"""

import itertools
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from compression_eval.file_ops.calls import Outcome
from compression_eval.file_ops.ledger import Ledger
from compression_eval.file_ops.programs import Argument, Invocation, run, unwrapped
from compression_eval.file_ops.shell_script import (
    SUBSTITUTIONS,
    Command,
    Loop,
    Script,
    ShellSyntaxError,
    here_text,
    hides_output,
    operator_of,
    parse,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_EXPANDED = 40
_MAX_NESTED = 4
_MAX_SCANNED = 20_000
_MAX_ERRORS = 100
_UNKNOWN = Argument(None)
_PATTERN = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r"\\([\n\"\\$`])")
_ANSI = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"', "r": "\r"}
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?:\[[@*]\])?\}?")
_ERROR_LINE = re.compile(
    r"^(?:[\w/.-]*: line \d+: |[\w/.-]*: \d+: )?(\w[\w.-]*): (.*(?:cannot|can't|No such file"
    r"|not permitted|[Dd]enied|not found|missing|Is a directory|Not a directory|File exists"
    r"|unrecognized|invalid|unterminated|unknown|omitting|Kein|不存在|ありません).*)$",
    re.MULTILINE,
)
_SHELL_ERROR = re.compile(r"^[\w/.-]+: (?:line )?\d+: (.+?): .+$", re.MULTILINE)
_QUIET_FAILURES = ("grep", "egrep", "rg", "diff", "cmp", "test", "[", "false", "pgrep")
"""Programs whose exit code 1 is an answer and no failure."""

_Piece = tuple[list[str] | None, bool]
"""A part of a word: what it may stand for, None if unknown; and whether it is quoted."""


@dataclass
class _Scope:
    folder: str | None
    previous: str | None = None
    variables: dict[str, list[str] | None] = field(default_factory=dict)


@dataclass
class _Progress:
    """What is carried from command to command of a script."""

    last: Command | None
    strict: bool
    chain: int = 0
    failed: bool = False
    uncertain: bool = False


class ShellReader:
    """Reads one command into a ledger.

    Args:
        ledger: Takes what is found.
        outcome: How the command ended.
    """

    def __init__(self, ledger: Ledger, outcome: Outcome) -> None:
        self._ledger = ledger
        self._outcome = outcome
        output = outcome.text[:_MAX_SCANNED]
        self._errors = _ERROR_LINE.findall(output)[:_MAX_ERRORS]
        self._shell_errors = _SHELL_ERROR.findall(output)[:_MAX_ERRORS]
        self._functions: set[str] = set()
        """Names that the script defines; what they do was read where they are defined."""
        self._lists = False
        self._nested = 0
        self._last_program = ""

    def read(self, script: str, folder: str | None = "") -> None:
        """Read a whole command and its failure."""
        self._script(script, folder)
        quiet = self._outcome.exit_code == 1 and self._last_program in _QUIET_FAILURES
        if self._outcome.failed and not quiet:
            self._ledger.failed(script, self._outcome.exit_code)
        if self._lists:
            self._ledger.listing(self._outcome.text)

    def _script(self, script: "str | Node", folder: str | None) -> None:
        """Read a script: the whole, one that is given to another shell, or a substitution."""
        if self._nested >= _MAX_NESTED:
            return
        try:
            parsed = Script(parse(script) if isinstance(script, str) else script)
        except ShellSyntaxError:
            text = script if isinstance(script, str) else text_of(script)
            self._ledger.unknown("syntax", text)
            return
        self._nested += 1
        self._functions |= parsed.functions
        commands = parsed.commands
        strict = any(step.node and text_of(step.node).startswith("set -e") for step in commands)
        progress = _Progress(commands[-1] if commands else None, strict)
        scopes = [_Scope(folder)]
        for step in parsed.steps:
            if step == "enter":
                scopes.append(replace(scopes[-1], variables=dict(scopes[-1].variables)))
            elif step == "leave":
                scopes.pop()
            elif isinstance(step, Loop):
                scopes[-1].variables[step.name] = _all_known(step.words, scopes[-1])
            elif isinstance(step, Command):
                self._command(step, scopes[-1], progress)
        self._nested -= 1

    def _command(self, step: Command, scope: _Scope, progress: _Progress) -> None:
        if step.joined != "&&":
            progress.failed = False
        if step.chain != progress.chain and not progress.strict:
            progress.uncertain = False
        progress.chain = step.chain
        for node in [*([step.node] if step.node else []), *step.place.redirects]:
            for inside in _substitutions(node):
                self._script(inside, scope.folder)
        call = self._invocation(step, scope)
        is_last = step is progress.last
        in_last_list = progress.last and step.chain == progress.last.chain
        call.doubtful = step.place.doubtful or bool(
            (self._outcome.failed and progress.uncertain and not is_last)
            and (progress.strict or in_last_list)
        )
        call.last = is_last and self._nested == 1
        call.failed = call.failed_at_some or (call.last and self._outcome.failed)
        call.failed = call.failed or progress.failed
        if progress.failed:
            return
        for redirect in step.place.redirects:
            self._redirect(redirect, scope, call)
        if call.program == "cd":
            folder = scope.previous if call.texts == ["-"] else self._changed_folder(call)
            scope.folder, scope.previous = folder, scope.folder
        elif call.program in self._functions:
            progress.uncertain = True
        elif call.program:
            run(call)
            progress.uncertain = progress.uncertain or not call.certain
            self._lists = self._lists or call.lists
        if call.last:
            self._last_program = call.program
        progress.failed = call.failed

    def _invocation(self, step: Command, scope: _Scope) -> Invocation:
        words = _words(step.node, scope)
        given: str | None = None
        input_file: Argument | None = None
        for redirect in step.place.redirects:
            targets = redirect.children_by_field_name("destination")
            # The grammar takes words after a redirection for more targets of it.
            words += [word for node in targets[1:] for word in _expand(node, scope)]
            if operator_of(redirect) == "<" and targets:
                (source, *_) = _expand(targets[0], scope) or [_UNKNOWN]
                text = here_text(source.text)
                given, input_file = (given, source) if text is None else (text, input_file)
        program, arguments = unwrapped(words)
        return Invocation(
            program,
            arguments,
            scope.folder,
            self._ledger,
            self._outcome,
            [line for name, line in self._errors if name == program],
            self._script,
            standard_input=given,
            input_file=input_file,
            shown=step.place.shown and not hides_output(step.place.redirects),
        )

    def _redirect(self, redirect: "Node", scope: _Scope, call: Invocation) -> None:
        target = redirect.child_by_field_name("destination")
        operator = operator_of(redirect)
        if target is None or operator.startswith("<"):
            return
        (argument, *more) = _expand(target, scope) or [_UNKNOWN]
        if more or (operator == ">&" and re.fullmatch(r"\d+|-", argument.text or "")):
            return
        for path in call.paths(argument):
            if any(path in error for error in self._shell_errors):
                continue
            if call.doubtful:
                self._ledger.unknown("outcome", f"> {path}")
            elif operator in (">>", "&>>"):
                self._ledger.appended(path)
            else:
                self._ledger.written(path, call.standard_input if call.program == "cat" else None)

    def _changed_folder(self, call: Invocation) -> str | None:
        target = call.arguments[-1].text if call.arguments else None
        if target is None or target == "-" or target.startswith("~"):
            return None
        if call.folder is None and not target.startswith("/"):
            return None
        joined = posixpath.normpath(posixpath.join(call.folder or "", target))
        return "" if joined in (".", self._ledger.reading.root) else joined


def _substitutions(node: "Node") -> "Iterator[Node]":
    """Yield the outermost substitutions inside a command, in their order."""
    waiting = [node]
    while waiting:
        inside = waiting.pop()
        if inside.type in SUBSTITUTIONS:
            yield inside
        else:
            waiting.extend(reversed(inside.named_children))


def _words(node: "Node | None", scope: _Scope) -> list[Argument]:
    """Return the words of a command after expansion, and set the variables that it assigns."""
    if node is None:
        return []
    if node.type == "test_command":
        return [Argument("[")]
    if node.type == "variable_assignment":
        _assign(node, scope)
        return []
    words: list[Argument] = []
    for child in node.children:
        if child.type == "variable_assignment":
            if node.type != "command":  # what stands before a command is for it alone
                _assign(child, scope)
        elif child.type == "command_name":
            words += _expand(child.children[0], scope)
        elif child.type != "file_redirect":
            words += _expand(child, scope)
    return words


def _assign(node: "Node", scope: _Scope) -> None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or name.type != "variable_name":
        return
    added = any(child.type == "+=" for child in node.children)
    nodes = value.named_children if value and value.type == "array" else [value] if value else []
    scope.variables[text_of(name)] = None if added else _all_known(nodes, scope)


def _all_known(nodes: "Sequence[Node]", scope: _Scope) -> list[str] | None:
    """Return what some words stand for; None if one is not known or is a pattern."""
    found = [word for node in nodes for word in _expand(node, scope)]
    texts = [word.text for word in found if word.text is not None and not word.pattern]
    return texts if texts and len(texts) == len(found) else None


def _expand(node: "Node", scope: _Scope) -> list[Argument]:
    """Return the words that a word becomes; at most a few dozen."""
    choices: list[list[str]] = []
    pattern = False
    plain = ""  # the text so far that is not quoted, in which braces and patterns count
    end: list[_Piece] = [([""], True)]
    for texts, quoted in [*_pieces(node, scope), *end]:
        if texts is None:
            return [_UNKNOWN]
        if quoted:
            pattern = pattern or bool(_PATTERN.search(plain))
            choices += [_braces(plain), texts]
            plain = ""
        else:
            plain += texts[0]
    combined = itertools.islice(itertools.product(*choices), _MAX_EXPANDED)
    return [Argument("".join(texts), pattern) for texts in combined]


def _pieces(node: "Node", scope: _Scope) -> Iterator[_Piece]:
    """Yield the parts of a word."""
    text = text_of(node)
    match node.type:
        case "concatenation":
            for child in node.children:
                yield from _pieces(child, scope)
        case "string":
            yield from _quoted_pieces(node, scope)
        case "raw_string":
            yield [text[1:-1]], True
        case "ansi_c_string":
            yield [_ESCAPE.sub(lambda match: _ANSI.get(match[1], match[0]), text[2:-1])], True
        case "simple_expansion" | "expansion":
            name = _VARIABLE.fullmatch(text)
            yield (scope.variables.get(name[1]) if name else None), True
        case "arithmetic_expansion" | "brace_expression":
            yield None, True
        case kind if kind in SUBSTITUTIONS:
            yield None, True
        case _:
            for position, part in enumerate(_ESCAPE.split(text)):
                yield [part.replace("\n", "") if position % 2 else part], position % 2 == 1


def _quoted_pieces(node: "Node", scope: _Scope) -> Iterator[_Piece]:
    """Yield the parts of a text in double quotes."""
    source = node.text or b""
    start = source.index(b'"') + 1
    for child in [*node.children[1:-1], None]:
        # What stands between expansions is taken from the source: the tree leaves out some blanks.
        if child is None or child.type not in ("string_content", '"'):
            end = child.start_byte - node.start_byte if child else len(source) - 1
            text = source[start:end].decode(errors="replace")
            yield [_ESCAPED_IN_QUOTES.sub(lambda m: m[1].strip("\n"), text)], True
            if child:
                yield from _pieces(child, scope)
                start = child.end_byte - node.start_byte


def _braces(text: str) -> list[str]:
    """Expand one level of ``{a,b}``."""
    match = _BRACES.search(text)
    if not match:
        return [text]
    before, after = text[: match.start()], text[match.end() :]
    return [f"{before}{choice}{after}" for choice in match[1].split(",")][:_MAX_EXPANDED]
