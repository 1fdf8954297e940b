"""``compression-eval probes …``: make probe banks, check them, qualify them."""

import click

from compression_eval.authoring.check import check_command
from compression_eval.authoring.generate import generate_command
from compression_eval.authoring.qualify import qualify_command
from compression_eval.terminal import CleanGroup


@click.group(cls=CleanGroup)
def probes() -> None:
    """Make probe banks, check them, qualify them."""


for command in (generate_command, check_command, qualify_command):
    probes.add_command(command)
