"""``compression-eval probes …``: make probe banks, check them, qualify them."""

import click

from compression_eval.authoring.check_command import check_command
from compression_eval.authoring.generate_command import generate_command
from compression_eval.authoring.qualify_command import qualify_command
from compression_eval.fixtures.errors import DataError


class CleanErrors(click.Group):
    """Ends with one clean message where a file or an argument is wrong, not with a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader of a pipe has seen enough; click ends quietly
        except (DataError, OSError) as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=CleanErrors)
def probes() -> None:
    """Make probe banks, check them, qualify them."""


probes.add_command(check_command)
probes.add_command(qualify_command)
probes.add_command(generate_command)
