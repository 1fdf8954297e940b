"""The ``compression-eval`` command: what Inspect's own commands do not do."""

import click

from compression_eval._version import __version__
from compression_eval.terminal import LateGroup

COMMANDS = {
    "ab": (
        "sweeping.ab:ab_command",
        "Say whether the summary prompt NEW is better than OLD.",
    ),
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
        "Draft continuation tasks from what sessions went on with, and qualify finished ones.",
    ),
    "estimate": (
        "sweeping.estimate:estimate_command",
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
    "label": (
        "calibration.labels:label",
        "Let people judge what readers and graders judged, and compare.",
    ),
    "predict": (
        "analysis.commands:predict",
        "Say whether what states hold and answer predicts the work that goes on from them.",
    ),
    "postmortem": (
        "analysis.postmortem:postmortem_command",
        "Say what agents fetched again after compactions of their own sessions.",
    ),
    "probes": (
        "authoring:probes",
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
"""Where each command is, and its first sentence."""


@click.group(cls=LateGroup, late=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="compression-eval")
def main() -> None:
    """Measure what a coding agent still knows after its context was compressed."""


if __name__ == "__main__":
    main()
