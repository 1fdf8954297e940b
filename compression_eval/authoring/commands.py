"""``compression-eval probes …``: make probe banks, check, qualify and analyse them."""

import click

from compression_eval.authoring.analyse import analyse_command
from compression_eval.authoring.check import check_command
from compression_eval.authoring.generate import generate_command
from compression_eval.authoring.qualify import qualify_command
from compression_eval.terminal import CleanGroup


@click.group(cls=CleanGroup)
def probes() -> None:
    """Make probe banks, check them, qualify them, and say after runs what they tell apart."""


for command in (generate_command, check_command, qualify_command, analyse_command):
    probes.add_command(command)
