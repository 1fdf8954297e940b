"""Probes that need no model: what the tool calls, and the recorded continuation, tell."""

from collections.abc import Iterator

from compression_eval.authoring.candidate_checks import faults, warnings
from compression_eval.authoring.candidates import Candidate, Dropped, Harvest, third_of
from compression_eval.authoring.gaps import Lines
from compression_eval.authoring.history import History
from compression_eval.authoring.mechanical_commands import command_probes
from compression_eval.authoring.mechanical_files import file_probes
from compression_eval.authoring.mechanical_git import git_probes
from compression_eval.authoring.mechanical_names import future_probes, name_probes
from compression_eval.authoring.mechanical_tasks import choice_probes, task_probes
from compression_eval.authoring.mechanical_values import value_probes
from compression_eval.fixtures.banks import Probe


def mechanical(history: History) -> Harvest:
    """Return what can be asked about a history without a model; the same for the same history."""
    harvest = Harvest()
    for template, probe in _made(history):
        # Nobody reads these before they are used, so a doubt is enough.
        if wrong := faults(probe, history) or warnings(probe, history):
            harvest.dropped.append(Dropped(probe.type, probe.origin, probe.question, tuple(wrong)))
        else:
            harvest.candidates.append(Candidate(probe, template, third_of(probe, history)))
    return harvest


def _made(history: History) -> Iterator[tuple[str, Probe]]:
    """Yield candidates, of each type those first that are the most telling."""
    lines = Lines(history)
    yield from future_probes(history, lines)
    yield from task_probes(history)
    yield from git_probes(history)
    yield from command_probes(history)
    yield from file_probes(history)
    yield from value_probes(history)
    yield from choice_probes(history)
    yield from name_probes(history, lines)
