"""The shell commands of a history that can be quoted in a question, with what they printed."""

import re
from dataclasses import dataclass

from compression_eval.authoring.history import History
from compression_eval.fixtures.artifacts.events import Call
from compression_eval.fixtures.artifacts.outcomes import Outcome, command_outcome
from compression_eval.fixtures.artifacts.tools import command_of, deed_of

_LONGEST = 110
_SCANNED = 20_000
_ENTERS = re.compile(r"^cd \S+ ?&& ?")
_TRIMS = re.compile(
    r"\s*(?:2>&1|\|\s*(?:tail|head|cat|grep|sed|awk|sort|uniq|cut|wc|less|tee)\b.*)\s*$"
)
_SEVERAL = ("&&", "||", ";", "<<", "`", "\n", "“", "”")


@dataclass(frozen=True)
class Run:
    """One command that was run."""

    message: int
    """Index of the message that made the call."""
    command: str
    """The command without what only changed the folder or shortened the output."""
    outcome: Outcome
    places: tuple[int, ...]
    """The message and its results: where evidence may be."""
    only: bool
    """Whether no other call ran the command as a part of something longer."""
    latest: bool
    """Whether no later call did."""


def quotable(command: str) -> str | None:
    """Return a command as a question can quote it; None if it is long or several commands."""
    text = _ENTERS.sub("", command.strip())
    while (shorter := _TRIMS.sub("", text)) != text:
        text = shorter
    if not text or len(text) > _LONGEST or not text.isprintable():
        return None
    return None if any(part in text for part in _SEVERAL) else text


def runs_of(history: History) -> list[Run]:
    """Return the single commands before the cut, in their order."""
    found: list[Run] = []
    shells = [(call, shell_of(call)) for call in history.calls if deed_of(call.name) == "shell"]
    for call, given in shells:
        command = quotable(given)
        if command is None or call.result is None:
            continue
        within = [
            other.message for other, text in shells if command in text and quotable(text) != command
        ]
        outcome = command_outcome(call.result, call.error)
        text = outcome.text
        if len(text) > 2 * _SCANNED:
            text = f"{text[:_SCANNED]}\n{text[-_SCANNED:]}"
        outcome = Outcome(text, outcome.exit_code, outcome.failed)
        places = (call.message, *history.results_of(call))
        latest = all(message < call.message for message in within)
        found.append(Run(call.message, command, outcome, places, not within, latest))
    return found


def shell_of(call: Call) -> str:
    """Return the command line of a shell call, bounded; empty for any other call."""
    if deed_of(call.name) != "shell":
        return ""
    command = command_of(call.arguments)
    if isinstance(command, list):
        wrapped = len(command) == 3 and command[1] in ("-c", "-lc")
        command = command[2] if wrapped else " ".join(command)
    return (command or "")[:_SCANNED]
