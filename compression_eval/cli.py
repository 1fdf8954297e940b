"""The ``compression-eval`` command: what Inspect's own commands do not do."""

import click

from compression_eval._version import __version__
from compression_eval.analysis.commands import facts
from compression_eval.analysis.compare_command import compare
from compression_eval.analysis.report.command import report
from compression_eval.authoring.commands import probes
from compression_eval.calibration.commands import grader
from compression_eval.compressors.commands import compressors
from compression_eval.conversations.commands import import_command
from compression_eval.conversations.scrubbing.commands import audit_command, scrub_command
from compression_eval.fixtures.commands import fixtures
from compression_eval.quickstart import quickstart_command
from compression_eval.sweeping.commands import estimate_command, sweep_command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="compression-eval")
def main() -> None:
    """Measure what a coding agent still knows after its context was compressed."""


main.add_command(quickstart_command)
main.add_command(fixtures)
main.add_command(compressors)
main.add_command(facts)
main.add_command(grader)
main.add_command(compare)
main.add_command(report)
main.add_command(probes)
main.add_command(import_command)
main.add_command(estimate_command)
main.add_command(sweep_command)
main.add_command(scrub_command)
main.add_command(audit_command)


if __name__ == "__main__":
    main()
