"""One program that a shell command runs: its words, and which files they name.

`unwrapped` removes programs that run others, such as ``sudo`` and ``timeout``. An `Invocation`
separates options from operands by what ``programs.yaml`` says of the program, and records what it
does in the ledger.
"""

import itertools
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from compression_eval.file_ops.calls import Outcome
from compression_eval.file_ops.ledger import Ledger
from compression_eval.file_ops.shell_grammar import Argument

_NO_NAME = re.compile(r"-|\+\d+")
"""Standard input, and a line to start at."""
_ENVIRONMENT = re.compile(r"[A-Za-z_]\w*=")


@cache
def _vocabulary() -> dict[str, Any]:
    import yaml

    text = (files(__package__) / "programs.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


@cache
def programs(kind: str) -> frozenset[str]:
    """Return the names of one kind of program."""
    names = _vocabulary()[kind]
    return frozenset(names if isinstance(names, list) else names.split())


@cache
def _takes_value(program: str) -> re.Pattern[str]:
    """Return which options of a program take the word after them."""
    known = _vocabulary()["takes_value"].items()
    return re.compile(next((takes for names, takes in known if program in names.split()), "(?!)"))


@dataclass
class Invocation:
    """One program with its arguments, how certainly it ran, and the ledger of its effects.

    Attributes:
        program: Base name of the program.
        arguments: Its arguments.
        folder: Its working folder; None if unknown.
        ledger: Records its effects.
        outcome: How the whole command ended.
        errors: The program's error messages.
        run_script: Follows a script passed to another shell.
        standard_input: Text of a here-document; None without one.
        input_file: What standard input is redirected from.
        shown: Whether its output can be read in the result.
        doubtful: Whether it may not have run, or not completely.
        failed: Whether it ran and failed.
        last: Whether it is the last command of the script.
        certain: Set by `run`: whether the commands joined to it by ``&&`` can be taken to have
            run even though the whole command failed.
        lists: Set by `run`: whether its output lists paths of existing files.
    """

    program: str
    arguments: list[Argument]
    folder: str | None
    ledger: Ledger
    outcome: Outcome
    errors: Sequence[str]
    run_script: Callable[[str, str | None], object]
    standard_input: str | None = None
    input_file: Argument | None = None
    shown: bool = True
    doubtful: bool = False
    failed: bool = False
    last: bool = False
    certain: bool = True
    lists: bool = False

    @property
    def texts(self) -> list[str]:
        """The arguments that are known."""
        return [argument.text for argument in self.arguments if argument.text is not None]

    @property
    def label(self) -> str:
        """Its name if its effect is unknown: program and first word."""
        words = [argument.text or "?" for argument in self.arguments[:2]]
        named = words[: 2 if words[:1] in (["-m"], ["run"]) else 1]
        return " ".join(
            [self.program, *(named if self.arguments and self.arguments[0].text else [])]
        )

    def operands(self) -> list[Argument]:
        """Return the arguments that are neither options nor values of options."""
        operands: list[Argument] = []
        skip = ended = False
        for argument in self.arguments:
            text = argument.text
            if skip:
                skip = False
            elif ended or text is None or not text.startswith("-") or text == "-":
                operands.append(argument)
            elif text == "--":
                ended = True
            else:
                skip = bool(_takes_value(self.program).fullmatch(text))
        return [argument for argument in operands if not _NO_NAME.fullmatch(argument.text or "x")]

    def has(self, short: str, *long: str) -> bool:
        """Return whether it has one of the one-letter (perhaps combined) or long options."""
        return any(
            text.split("=")[0] in long
            or (text.startswith("-") and not text.startswith("--") and set(short) & set(text[1:]))
            for text in self.texts
        )

    def unknown_path(self, what: str, *, rewrites: bool = True) -> None:
        """Record that it may have touched unknown files; ``rewrites`` if it may change them."""
        self.ledger.unknown("path", what, rewrites=rewrites)

    def paths(self, argument: Argument, *, reads: bool = False) -> list[str]:
        """Return the files that an argument names; unknown ones are recorded as such.

        Args:
            argument: The argument.
            reads: Whether the program only reads them.
        """
        text = argument.text
        if text is None or (self.folder is None and not text.startswith("/")):
            what = "a name from a variable or folder" if text is None else text
            self.unknown_path(what, rewrites=text is None and not reads)
            return []
        if text.startswith("~"):
            return [text]
        cleaned = self.ledger.clean(text, self.folder or "")
        if cleaned is None or not argument.pattern:
            return [] if cleaned is None else [cleaned]
        matching = self.ledger.matching(cleaned)
        if not matching:
            self.unknown_path(text, rewrites=False)
        return matching

    def touched(self, arguments: Iterable[Argument]) -> Iterator[str]:
        """Yield the files to change, without those that it failed on or did not reach."""
        for argument in arguments:
            for path in self.paths(argument):
                if self.broke(argument.text):
                    continue
                if self.doubtful:
                    self.ledger.unknown("outcome", f"{self.program} {path}")
                else:
                    yield path

    def reads(self, arguments: Iterable[Argument], *, search: bool = False) -> None:
        """Record files whose text it printed, or what it found in them; folders are left out."""
        for argument in arguments if self.shown and not self.doubtful else ():
            if argument.text is None:
                self.unknown_path(f"{self.program} of a variable", rewrites=False)
                continue
            for path in self.paths(argument, reads=True):
                if not self.broke(argument.text):
                    self.ledger.read(path, search=search)

    def broke(self, operand: str | None) -> bool:
        """Return whether it failed on an operand: by its messages, else by the exit code."""
        if operand is not None and self._named_in_error(operand):
            return True
        return self.last and self.outcome.failed and not self.failed_at_some

    @property
    def failed_at_some(self) -> bool:
        """Whether its messages name an argument that it failed on."""
        return bool(self.errors) and any(map(self._named_in_error, self.texts))

    def _named_in_error(self, operand: str) -> bool:
        whole = rf"(?<![\w./-]){re.escape(operand)}(?![\w-])"
        return any(operand in line and re.search(whole, line) for line in self.errors)


def unwrapped(words: Sequence[Argument]) -> tuple[str, list[Argument]]:
    """Return the program behind ``sudo``, ``timeout 5``, ``env A=b`` and the like, and the rest."""
    rest = list(words)
    wrappers: dict[str, int] = _vocabulary()["wrappers"]
    while len(rest) > 1:
        program = posixpath.basename(rest[0].text or "")
        runs = program in programs("runners") and rest[1].text == "run"
        if program not in wrappers and not runs:
            break
        rest = rest[2 if runs else 1 :]
        rest = list(itertools.dropwhile(lambda word: (word.text or "").startswith("-"), rest))
        rest = rest[wrappers.get(program, 0) :]
        rest = list(itertools.dropwhile(lambda word: _ENVIRONMENT.match(word.text or ""), rest))
    if not rest:
        return "", []
    name = rest[0].text
    return "?" if name is None else posixpath.basename(name), rest[1:]
