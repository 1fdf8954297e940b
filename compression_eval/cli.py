"""The ``compression-eval`` command: what Inspect's own commands do not do."""

import click

from compression_eval._version import __version__
from compression_eval.terminal import LateGroup

COMMANDS = {
    "Start": {
        "quickstart": (
            "quickstart:quickstart_command",
            "Evaluate compression on your own sessions: import, scrub, ask, run, report.",
        ),
        "postmortem": (
            "analysis.postmortem:postmortem_command",
            "Show what agents fetched again after compactions in your own sessions.",
        ),
    },
    "Compare": {
        "ab": (
            "sweeping.ab:ab_command",
            "Compare two summary prompts: estimate, run both, give a verdict.",
        ),
        "sweep": (
            "sweeping.commands:sweep_command",
            "Run several strategies and budgets with several models on the same fixtures.",
        ),
        "estimate": (
            "sweeping.estimate:estimate_command",
            "Estimate the cost of a sweep and the smallest difference it can find.",
        ),
        "compare": (
            "analysis.commands:compare",
            "Test whether one arm is worse than another, with an exit code for CI.",
        ),
        "report": (
            "analysis.commands:report",
            "Write a report of logs: scores, lost facts, costs, charts.",
        ),
        "facts": (
            "analysis.commands:facts",
            "List every expected fact and the stage at which it was lost.",
        ),
    },
    "Your conversations": {
        "import": (
            "conversations.commands:import_command",
            "Convert recorded conversations to fixtures.",
        ),
        "scrub": (
            "conversations.scrubbing.commands:scrub_command",
            "Replace secrets and personal values in fixtures.",
        ),
        "audit": (
            "conversations.scrubbing.commands:audit_command",
            "Report what scrubbing would still change in fixtures; exits with 1 if it finds any.",
        ),
        "fixtures": ("fixtures.commands:fixtures", "List, check, record and pack fixtures."),
    },
    "Questions and tasks": {
        "probes": (
            "authoring:probes",
            "Generate probe banks, check and qualify them, and analyse what they distinguish.",
        ),
        "continuations": (
            "resumption.drafting:continuations",
            "Draft and qualify tasks in which an agent continues a session.",
        ),
        "predict": (
            "analysis.commands:predict",
            "Test whether facts and answers predict the work that follows.",
        ),
    },
    "Strategies": {
        "compressors": (
            "compressors.commands:compressors",
            "List the strategies, and set up those that need it.",
        ),
    },
    "Trust": {
        "grader": (
            "calibration.commands:grader",
            "Measure how well graders agree with a careful reader.",
        ),
        "label": (
            "calibration.labels:label",
            "Draw a blind sample for people to label, and compare labels with readers and graders.",
        ),
    },
}
"""By what people want: where each command is, and its first sentence."""


@click.group(
    cls=LateGroup, sections=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="compression-eval")
def main() -> None:
    """Measure what a coding agent still knows after its context was compressed."""


if __name__ == "__main__":
    main()
