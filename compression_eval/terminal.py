"""What the subcommands share: clean errors, output paths, examples, models by name, progress.

`CleanCommand` and its relatives turn errors about files and arguments into one line with an exit
code. `LateGroup` imports a command only when it is called. `Output` checks, before any work, that
a result can be written.
"""

import os
import re
import shlex
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from compression_eval.errors import (
    DataError,
    NotFoundError,
    PassedOverError,
    nothing_left,
    passed_over,
    shorten,
)
from compression_eval.text.printable import clean

if TYPE_CHECKING:
    from inspect_ai.model import Model
    from rich.progress import Progress

F = TypeVar("F", bound=Callable[..., object])

_MARKUP = re.compile(r"\[/?[a-z]+(?: [a-z]+)*\]")
"""Inspect's markup of terminal colours."""

MAX_ERROR = 300
"""Maximum characters of a third-party error."""

LINE_SECONDS = (15, 30, 60, 120, 300)
"""Seconds between lines of progress without a terminal; the last one is repeated."""


class _NotFoundError(click.ClickException):
    """Ends as click does itself where a path does not exist."""

    exit_code = 2


class StoppedError(click.ClickException):
    """Ctrl-C: the message says what stands, and how to go on."""

    exit_code = 130

    def show(self, file: Any = None) -> None:
        """Print the message."""
        click.echo(f"\n{self.message}", err=True, file=file)


class CommandLineError(DataError, click.ClickException):
    """A `DataError` that Inspect's command line shows as one line instead of a traceback."""

    def __init__(self, message: str) -> None:
        click.ClickException.__init__(self, message)


_MAX_PATH = 500
"""Characters of a file's name in an error."""


def refusal(error: DataError | OSError) -> str:
    """Return what is wrong with a file or an argument, whose name may be anything."""
    text, longest = str(error), 1_000 if isinstance(error, OSError) else 20_000
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        name, reason = str(error.filename), error.strerror[0].lower() + error.strerror[1:]
        text = f"{name if len(name) <= _MAX_PATH else name[:_MAX_PATH] + '…'}: {reason}"
    return clean(text if len(text) <= longest else text[:longest] + "…", longest + 1)


@contextmanager
def command_line_errors() -> Iterator[None]:
    """Have Inspect's command line say in a line what is wrong with a file or an argument."""
    try:
        yield
    except (DataError, OSError) as error:
        raise CommandLineError(refusal(error)) from error


@contextmanager
def clean_errors() -> Iterator[None]:
    """End with one clean message where a file or an argument is wrong, not with a traceback."""
    try:
        yield
    except BrokenPipeError:
        raise  # the pipe was closed; click ends quietly
    except KeyboardInterrupt:
        raise StoppedError("Interrupted.") from None
    except (DataError, OSError) as error:
        missing = isinstance(error, NotFoundError)
        raise (_NotFoundError if missing else click.ClickException)(refusal(error)) from error


class CleanCommand(click.Command):
    """A command under `clean_errors`."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command under `clean_errors`."""
        with clean_errors():
            return super().invoke(ctx)


class CleanGroup(CleanCommand, click.Group):
    """A group whose commands all run under `clean_errors`."""


class LateGroup(CleanGroup):
    """A group that imports a command when it is called: most import Inspect, which takes seconds.

    Args:
        sections: Where each command is (``module:name``), and its first sentence, under the titles
            that a help lists them by.
    """

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, Mapping[str, tuple[str, str]]],
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.sections = sections
        self.late = {name: each for own in sections.values() for name, each in own.items()}
        # What click lists in a help, and holds a misspelt name against.
        self.commands = {
            name: click.Command(name, help=text) for name, (_, text) in self.late.items()
        }

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command; None if there is none of that name."""
        if cmd_name not in self.late:
            return None
        module, _, name = self.late[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"compression_eval.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands, section by section."""
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])


def is_stream(path: Path) -> bool:
    """Return whether a path is a pipe, a device or a descriptor, which are written into."""
    if path.is_symlink() and str(path.absolute()).startswith(("/dev/", "/proc/")):
        return True  # such as /dev/stdout, wherever it leads
    return path.exists() and not path.is_file() and not path.is_dir()


def check_output(path: Path, *, folder: bool = False, parents: bool = False) -> None:
    """Check that something can be written, before there is any work or money in it.

    Args:
        path: A file, which is written as a whole from a temporary one next to it; where a link
            leads, that; a pipe or a device is written into.
        folder: Whether it is a folder of files instead.
        parents: Whether folders that are missing will be made.

    Raises:
        DataError: It cannot.
    """
    if is_stream(path) and not folder:
        if not os.access(path, os.W_OK):
            raise DataError(f"{path}: cannot be written to")
        return
    if path.exists() and path.is_dir() != folder:
        found, expected = ("file", "folder") if folder else ("folder", "file")
        raise DataError(f"{path} is a {found}; name a {expected}")
    place = path if path.is_dir() else Path(os.path.realpath(path)).parent
    while parents and not place.exists():
        place = place.parent
    if not place.is_dir():
        raise DataError(f"{place}: {'not a' if place.exists() else 'no such'} folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise DataError(f"{place}: the folder cannot be written to")


def refuse_to_overwrite(path: Path, option: str, *, force: bool) -> None:
    """Raise a `DataError` if a file is there already, unless that is wanted."""
    if path.exists() and not is_stream(path) and not force:
        raise DataError(f"{option}: {path} is there already; --force overwrites it")


class Output(click.Path):
    """The path of what a command writes; the arguments are those of `check_output`."""

    def __init__(self, *, folder: bool = False, parents: bool = False) -> None:
        super().__init__(path_type=Path)
        self._kind = {"folder": folder, "parents": parents}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        path = cast(Path, super().convert(value, param, ctx))
        try:
            check_output(path, **self._kind)
        except (DataError, OSError) as error:
            self.fail(str(error), param, ctx)
        return path


def examples(*arguments: str) -> str:
    """Return an epilog of examples that click leaves unwrapped."""
    lines = (f"  compression-eval {line}" for line in arguments)
    return "\b\n" + "\n".join(("Examples:", *lines))


def go_on(*commands: Sequence[str]) -> None:
    """Print what can be done next, as commands to copy."""
    click.echo("\n".join(("Go on with:", *(f"  {shlex.join(words)}" for words in commands))))


def aligned(rows: Sequence[Sequence[str]], right: Container[str] = ()) -> list[str]:
    """Return a table as lines of text.

    Args:
        rows: The heads, then the rows.
        right: Heads of the columns that are set to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if head in right else cell.ljust(width)
            for head, cell, width in zip(rows[0], row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def duration(seconds: float) -> str:
    """Return a time in words, with the precision of an estimate."""
    if seconds < 90:
        return f"{max(round(seconds, -1), 10):.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class Display:
    """The progress of a command on stderr: a bar in a terminal, elsewhere occasional lines.

    Args:
        label: Name of the bar.
        total: Number of units.
        left: Returns what is shown next to the bar, such as the remaining time.
        line: Returns what to print without a terminal.
    """

    def __init__(
        self, label: str, total: int, left: Callable[[], str], line: Callable[[], str]
    ) -> None:
        self._label, self._total = label, total
        self._left, self._line = left, line
        self._ended = Event()
        self._thread = Thread(target=self._say_lines, daemon=True)
        self._bar: Progress | None = None

    def __enter__(self) -> "Display":
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._bar = self._shown()
            self._bar.start()
        else:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        else:
            self._ended.set()
            self._thread.join()

    def advance(self) -> None:
        """Count one more unit as done."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], advance=1, left=self._left())

    def _shown(self) -> "Progress":
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.table import Column

        label = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        bar = Progress(
            TextColumn("{task.description}", markup=False, table_column=label),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}", markup=False, table_column=Column(no_wrap=True)),
            console=Console(file=sys.stderr),
            expand=True,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # what goes to a file stays there
        )
        bar.add_task(self._label, total=self._total, left="")
        return bar

    def _say_lines(self) -> None:
        number = 0
        while not self._ended.wait(LINE_SECONDS[min(number, len(LINE_SECONDS) - 1)]):
            click.echo(self._line(), err=True)
            number += 1


def say_passed_over(reasons: Sequence[PassedOverError], left: Sized) -> None:
    """List on stderr what was skipped."""
    if not left:
        raise nothing_left(reasons)
    if reasons:
        click.echo(passed_over(reasons), err=True)


def model_options(command: F) -> F:
    """Add a model's options to a command; `model_by_name` takes their values."""
    options = (
        click.option(
            "--max-connections", type=click.IntRange(min=1), help="Calls at the same time."
        ),
        click.option("--temperature", type=click.FloatRange(min=0), help="Sampling temperature."),
        click.option(
            "--model-args", "-M", multiple=True, metavar="NAME=VALUE", help="Argument of the model."
        ),
        click.option("--model-base-url", help="Address of the model's API."),
    )
    for option in options:
        command = option(command)
    return command


def model_by_name(name: str, options: dict[str, Any]) -> "Model":
    """Return a model by its name and the values of `model_options`."""
    import yaml
    from inspect_ai.model import GenerateConfig

    arguments: dict[str, Any] = {}
    for item in options["model_args"]:
        key, separator, value = item.partition("=")
        if not separator or not key.isidentifier():
            raise DataError(f"-M: expected NAME=VALUE, got {shorten(item)}")
        try:
            arguments[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise DataError(f"-M: {key}: not a YAML value") from error
    config = GenerateConfig(
        temperature=options["temperature"], max_connections=options["max_connections"]
    )
    arguments |= {"config": config, "base_url": options["model_base_url"]}
    return named_model(name, f"model {shorten(name)}: cannot be used", **arguments)


def named_model(name: str, place: str, **options: Any) -> "Model":
    """Return a model by its name; an error of it begins with ``place``."""
    from inspect_ai.model import get_model

    try:
        return get_model(name, **options)
    except Exception as error:
        # Inspect and every provider have their own errors for a missing key, package or name.
        raise DataError(f"{place}: {plain_error(error)}") from error


def plain_error(error: Exception) -> str:
    """Return a third-party error on one line, without Inspect's markup."""
    return " ".join(_MARKUP.sub("", str(error)).split())[:MAX_ERROR] or type(error).__name__
