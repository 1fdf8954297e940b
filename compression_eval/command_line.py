"""What the subcommands of ``compression-eval`` share: clean errors, and examples in their help."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from compression_eval.fixtures.errors import DataError


@contextmanager
def clean_errors() -> Iterator[None]:
    """End with one clean message where a file or an argument is wrong, not with a traceback."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of a pipe has seen enough; click ends quietly
    except (DataError, OSError) as error:
        raise click.ClickException(str(error)) from error


class CleanCommand(click.Command):
    """A command under `clean_errors`."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        with clean_errors():
            return super().invoke(ctx)


class CleanGroup(click.Group):
    """A group whose commands all run under `clean_errors`."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        with clean_errors():
            return super().invoke(ctx)


def examples(*arguments: str) -> str:
    """Return an epilog of examples that click leaves unwrapped.

    Args:
        arguments: What stands behind ``compression-eval``, an example each.
    """
    lines = (f"  compression-eval {line}" for line in arguments)
    return "\b\n" + "\n".join(("Examples:", *lines))
