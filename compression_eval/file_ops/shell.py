"""Follow a shell command: the effects of its programs on files, as far as its words show them.

Every command is assumed to start in the project folder; ``cd`` is followed within it.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from compression_eval.file_ops.calls import Outcome
from compression_eval.file_ops.invocation import Invocation, unwrapped
from compression_eval.file_ops.ledger import Ledger, RanCommand
from compression_eval.file_ops.programs import run
from compression_eval.file_ops.shell_grammar import (
    DECIDED,
    JOINED,
    SIMPLE,
    STATEMENTS,
    SUBSTITUTIONS,
    Argument,
    ShellSyntaxError,
    Work,
    all_known,
    expand,
    here_text,
    hides_output,
    operator_of,
    parse,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_NESTED = 4
_MAX_SCANNED = 20_000
_MAX_ERRORS = 100
_MAX_ERROR_LINE = 1_000
_ERROR_LINE = re.compile(
    r"^(?:[\w/.-]*: line \d+: |[\w/.-]*: \d+: )?(\w[\w.-]*): (.*(?:cannot|can't|No such file"
    r"|not permitted|[Dd]enied|not found|missing|Is a directory|Not a directory|File exists"
    r"|unrecognized|invalid|unterminated|unknown|omitting|Kein|不存在|ありません).*)$",
    re.MULTILINE,
)
_SHELL_ERROR = re.compile(r"^[\w/.-]+: (?:line )?\d+: (.+?): .+$", re.MULTILINE)
_QUIET_FAILURES = ("grep", "egrep", "rg", "diff", "cmp", "test", "[", "false", "pgrep")
"""Programs whose exit code 1 is a result, not a failure."""

_SEPARATORS = (";", "&", ";;", ";&", ";;&", "then", "do")
_STRICT = re.compile(r"(?m)(?:^|[;&({])[ \t]*set -\w*e")


@dataclass
class _Scope:
    folder: str | None
    fixed: bool
    previous: str | None = None
    variables: dict[str, list[str] | None] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    """The context of a statement.

    Attributes:
        scope: Its folder and variables.
        chain: The list that it belongs to; ``;`` and line breaks begin a new one.
        doubtful: Whether a condition or a ``||`` decides if it runs.
        shown: Whether its output reaches the result.
        redirects: Redirections around it.
    """

    scope: _Scope
    chain: int = 0
    doubtful: bool = False
    shown: bool = True
    redirects: "Sequence[Node]" = ()


@dataclass
class _Progress:
    """State carried between the commands of a script."""

    last: int
    last_chain: int
    strict: bool
    chain: int = 0
    joined: str = ""
    """The operator before the next command."""
    failed: bool = False
    uncertain: bool = False


class ShellReader:
    """Reads one command into a ledger.

    Args:
        ledger: Records the effects.
        outcome: How the command ended.
    """

    def __init__(self, ledger: Ledger, outcome: Outcome) -> None:
        self._ledger = ledger
        self._outcome = outcome
        output = outcome.text[:_MAX_SCANNED]
        lines = _ERROR_LINE.findall(output)[:_MAX_ERRORS]
        self._errors = [(name, line[:_MAX_ERROR_LINE]) for name, line in lines]
        self._shell_errors = _SHELL_ERROR.findall(output)[:_MAX_ERRORS]
        self._fixed = False
        """Whether the folder does not depend on where the shell was before; see `RanCommand`."""
        self._functions: set[str] = set()
        """Functions that the script defines; their effects are read at the definition."""
        self._progress = _Progress(0, 0, strict=False)
        self._lists = False
        self._nested = 0
        self._work = Work()
        self._last_program = ""

    def read(self, script: str, folder: str = "", *, fixed: bool = False) -> None:
        """Read a whole command, and record its failure; ``fixed`` if the call names its folder."""
        self._fixed = fixed
        end = self._script(script, folder)
        self._ledger.reading.ended = RanCommand(script, end.folder, end.fixed)
        quiet = self._outcome.exit_code == 1 and self._last_program in _QUIET_FAILURES
        if self._outcome.failed and not quiet:
            self._ledger.failed(script, self._outcome.exit_code)
        if self._lists:
            self._ledger.listing(self._outcome.text)

    def _script(self, script: "str | Node", folder: str | None) -> _Scope:
        """Read a script: the whole one, one passed to another shell, or a substitution."""
        scope = _Scope(folder, self._fixed)
        if self._nested >= _MAX_NESTED:
            return scope
        try:
            root = self._parsed(script) if isinstance(script, str) else script
        except ShellSyntaxError:
            self._ledger.unknown("syntax", str(script))
            self._ledger.reading.commands.append(RanCommand(str(script), None, fixed=False))
            return _Scope(None, fixed=False)
        outer, self._progress = (
            self._progress,
            _Progress(*_last_command(root), strict=bool(_STRICT.search(text_of(root)))),
        )
        self._nested += 1
        self._statements(root, _Place(scope))
        self._nested -= 1
        self._progress = outer
        return scope

    def _parsed(self, script: str) -> "Node":
        if not self._ledger.may_take(len(script)):
            raise ShellSyntaxError
        return parse(script, self._work)

    def _statements(self, node: "Node", place: _Place) -> None:
        """Follow statements in sequence, including those inside conditions and loops."""
        scope, children = place.scope, node.children
        name = node.child_by_field_name("name")
        if node.type in ("subshell", "function_definition"):
            scope = replace(scope, variables=dict(scope.variables))
        if node.type == "function_definition" and name:
            self._functions.add(text_of(name))
        elif node.type == "c_style_for_statement":
            children = node.children_by_field_name("body")
        elif variable := node.child_by_field_name("variable"):
            values = all_known(node.children_by_field_name("value"), scope.variables)
            scope.variables[text_of(variable)] = values
        conditions = node.children_by_field_name("condition")
        for child in children:
            if child.type in STATEMENTS:
                decided = node.type in DECIDED and child not in conditions
                doubtful = place.doubtful or decided
                self._statement(child, _Place(scope, child.id, doubtful, place.shown))
            if child.type in STATEMENTS or child.type in _SEPARATORS:
                self._progress.joined = ";"

    def _statement(self, node: "Node", place: _Place) -> None:
        own = [child for child in node.children if child.type == "file_redirect"]
        place = replace(place, redirects=[*own, *place.redirects])
        body = node.child_by_field_name("body") if node.type == "redirected_statement" else None
        if body is not None:
            self._statement(body, place)
        elif node.type in SIMPLE:
            self._command(node, place)
        elif node.type in JOINED:
            self._parts(node, place)
        else:
            if place.redirects:
                self._command(None, place)
            shown = place.shown and not hides_output(place.redirects)
            self._statements(node, replace(place, shown=shown))

    def _parts(self, node: "Node", place: _Place) -> None:
        """Follow commands joined by ``&&``, ``||`` or ``|``; a redirection applies to the last."""
        rows = [node.children]
        while rows[-1][0].type == "list":  # a list node nests the list of all but its last part
            rows.append(rows[-1][0].children)
        children = [child for row in reversed(rows) for child in row if child.type != "list"]
        last = children[-1]
        shown = place.shown
        if node.type == "pipeline" and hides_output([*place.redirects, *last.children]):
            shown = False
        for child in children:
            if child.type in ("&&", "||", "|", "|&"):
                self._progress.joined = "|" if child.type == "|&" else child.type
            elif child.type in STATEMENTS:
                doubtful = place.doubtful or self._progress.joined == "||"
                redirects = place.redirects if child == last else ()
                part = replace(place, doubtful=doubtful, shown=shown, redirects=redirects)
                self._statement(child, part)

    def _command(self, node: "Node | None", place: _Place) -> None:
        progress, scope = self._progress, place.scope
        self._fixed = scope.fixed
        if progress.joined != "&&":
            progress.failed = False
        if place.chain != progress.chain and not progress.strict:
            progress.uncertain = False
        progress.chain = place.chain
        for each in [*([node] if node else []), *place.redirects]:
            for inside in _substitutions(each):
                self._script(inside, scope.folder)
        call = self._invocation(node, place)
        is_last = node is not None and node.id == progress.last
        reached = not self._outcome.failed or not progress.uncertain or is_last
        if not progress.strict and place.chain != progress.last_chain:
            reached = True
        call.doubtful = place.doubtful or not reached
        call.last = is_last and self._nested == 1
        call.failed = call.failed_at_some or (call.last and self._outcome.failed)
        if progress.failed:
            return
        for redirect in place.redirects:
            self._redirect(redirect, scope, call)
        if call.program == "cd":
            folder = scope.previous if call.texts == ["-"] else self._changed_folder(call)
            scope.folder, scope.previous = folder, scope.folder
            (target, *_) = call.texts[-1:] or [""]
            scope.fixed = target.startswith("/") or (scope.fixed and target != "-")
        elif node is not None:
            command = RanCommand(text_of(node), scope.folder, scope.fixed)
            self._ledger.reading.commands.append(command)
        if call.program in self._functions:
            progress.uncertain = True
        elif call.program and call.program != "cd":
            run(call)
            progress.uncertain = progress.uncertain or not call.certain
            self._lists = self._lists or call.lists
        if call.last:
            self._last_program = call.program
        progress.failed = call.failed

    def _invocation(self, node: "Node | None", place: _Place) -> Invocation:
        """Return the program of a command after expansion, with its input."""
        scope = place.scope
        words = _words(node, scope)
        here_document: str | None = None
        input_file: Argument | None = None
        for redirect in place.redirects:
            targets = redirect.children_by_field_name("destination")
            # The grammar takes words after a redirection for further targets.
            words += [word for node in targets[1:] for word in expand(node, scope.variables)]
            if operator_of(redirect) == "<" and targets:
                (source, *_) = expand(targets[0], scope.variables) or [Argument(None)]
                text = here_text(source.text)
                here_document, input_file = (
                    (here_document, source) if text is None else (text, input_file)
                )
        program, arguments = unwrapped(words)
        return Invocation(
            program,
            arguments,
            scope.folder,
            self._ledger,
            self._outcome,
            [line for name, line in self._errors if name == program],
            self._script,
            standard_input=here_document,
            input_file=input_file,
            shown=place.shown and not hides_output(place.redirects),
        )

    def _redirect(self, redirect: "Node", scope: _Scope, call: Invocation) -> None:
        target = redirect.child_by_field_name("destination")
        operator = operator_of(redirect)
        if target is None or operator.startswith("<"):
            return
        (argument, *more) = expand(target, scope.variables) or [Argument(None)]
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


def _last_command(node: "Node") -> tuple[int, int]:
    """Return the ids of the last command of a script, and of its list."""
    last = chain = 0
    while parts := [child for child in node.children if child.type in STATEMENTS]:
        if node.type not in JOINED and node.type != "redirected_statement":
            chain = parts[-1].id
        node = parts[-1]
        last = node.id
    return last, chain


def _substitutions(node: "Node") -> "Iterator[Node]":
    """Yield the outermost substitutions inside a command, in order."""
    waiting = [node]
    while waiting:
        inside = waiting.pop()
        if inside.type in SUBSTITUTIONS:
            yield inside
        else:
            waiting.extend(reversed(inside.named_children))


def _words(node: "Node | None", scope: _Scope) -> list[Argument]:
    """Return the expanded words of a command, and set the variables that it assigns."""
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
            if node.type != "command":  # an assignment before a command applies to it alone
                _assign(child, scope)
        elif child.type == "command_name":
            words += expand(child.children[0], scope.variables)
        elif child.type != "file_redirect":
            words += expand(child, scope.variables)
    return words


def _assign(node: "Node", scope: _Scope) -> None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or name.type != "variable_name":
        return
    added = any(child.type == "+=" for child in node.children)
    nodes = value.named_children if value and value.type == "array" else [value] if value else []
    scope.variables[text_of(name)] = None if added else all_known(nodes, scope.variables)
