"""The ``compression-eval`` command: what Inspect's own commands do not do."""

from importlib import import_module

import click

from compression_eval._version import __version__

COMMANDS = {
    "audit": (
        "conversations.scrubbing.commands:audit_command",
        "Look for anything that scrubbing would still change; exits with 1 if there is something.",
    ),
    "compare": (
        "analysis.commands:compare",
        "Say whether the arm of the NEW logs is better than that of the BASE logs, or worse.",
    ),
    "compressors": (
        "compressors.commands:compressors",
        "List the strategies, and prepare what some of them need.",
    ),
    "continuations": (
        "resumption.drafting:continuations",
        "Draft continuation tasks from what sessions went on with.",
    ),
    "estimate": (
        "sweeping.commands:estimate_command",
        "Say what a sweep would cost and what it could tell, before anything is spent.",
    ),
    "facts": (
        "analysis.commands:facts",
        "Tell what became of every expected fact, and at which stage it was lost.",
    ),
    "fixtures": ("fixtures.commands:fixtures", "List, check, record and pack fixtures."),
    "grader": (
        "calibration.commands:grader",
        "Say how well graders agree with a careful reader.",
    ),
    "import": (
        "conversations.commands:import_command",
        "Make fixtures of recorded conversations.",
    ),
    "probes": (
        "authoring.commands:probes",
        "Make probe banks, check them, qualify them, and say after runs what they tell apart.",
    ),
    "quickstart": (
        "quickstart:quickstart_command",
        "Evaluate compression on your own sessions: import, scrub, ask, run, report.",
    ),
    "report": (
        "analysis.commands:report",
        "Make a report of logs: what each arm kept, where facts were lost, and what it cost.",
    ),
    "scrub": (
        "conversations.scrubbing.commands:scrub_command",
        "Scrub fixtures, and the banks that lie beside them, into a folder.",
    ),
    "sweep": (
        "sweeping.commands:sweep_command",
        "Run several arms with several models on the same fixtures.",
    ),
}
"""Where each command is, and its first sentence: most of them import Inspect, which takes seconds,
so that no more than the one that was asked for is imported."""


class _LateGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"compression_eval.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        listed = (click.Command(name, help=text) for name, (_, text) in COMMANDS.items())
        click.Group(commands=list(listed)).format_commands(ctx, formatter)


@click.group(cls=_LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="compression-eval")
def main() -> None:
    """Measure what a coding agent still knows after its context was compressed."""


if __name__ == "__main__":
    main()
