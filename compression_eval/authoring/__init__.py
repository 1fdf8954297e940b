"""``compression-eval probes``: make probe banks, check them, qualify them by runs, analyse them."""

import click

from compression_eval.terminal import LateGroup

_COMMANDS = {
    "analyse": (
        "authoring.analyse:analyse_command",
        "Say which probes tell arms apart, and which could be left out.",
    ),
    "check": (
        "authoring.check:check_command",
        "Check probe banks; without PATH, those of all fixtures that come with this project.",
    ),
    "generate": (
        "authoring.generate:generate_command",
        "Make a probe bank for each FIXTURE, from the history before its cuts.",
    ),
    "qualify": (
        "authoring.qualify:qualify_command",
        "Put every probe to a model with the full history, with nothing, and with the kept tail.",
    ),
}


@click.group(cls=LateGroup, sections={"Commands": _COMMANDS})
def probes() -> None:
    """Generate probe banks, check and qualify them, and analyse what they distinguish."""
