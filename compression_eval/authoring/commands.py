"""``compression-eval probes …``: make probe banks, check them, qualify them."""

import click

from compression_eval.authoring.check_command import check_command
from compression_eval.authoring.generate_command import generate_command
from compression_eval.authoring.qualify_command import qualify_command
from compression_eval.command_line import CleanGroup


@click.group(cls=CleanGroup)
def probes() -> None:
    """Make probe banks, check them, qualify them."""


probes.add_command(check_command)
probes.add_command(qualify_command)
probes.add_command(generate_command)
