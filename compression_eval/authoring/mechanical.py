"""Probes that need no model: what the tool calls, and the recorded continuation, tell."""

from collections.abc import Iterator

from compression_eval.authoring.candidate_checks import faults, warnings
from compression_eval.authoring.candidates import Candidate, Dropped, Harvest, third_of
from compression_eval.authoring.history import History
from compression_eval.authoring.mechanical_commands import command_probes
from compression_eval.authoring.mechanical_files import file_probes
from compression_eval.authoring.mechanical_git import git_probes
from compression_eval.authoring.mechanical_said import said_probes, used_again
from compression_eval.authoring.mechanical_tasks import choice_probes, task_probes
from compression_eval.authoring.mechanical_values import value_probes
from compression_eval.authoring.templates import wordings
from compression_eval.fixtures.banks import Probe


def mechanical(history: History) -> Harvest:
    """Return what can be asked about a history without a model; the same for the same history."""
    harvest = Harvest()
    again = set(used_again(history))
    for template, made in _made(history, again):
        probe = _to_go_on(history, made, again)
        # Nobody reads these before they are used, so a doubt is enough.
        if wrong := faults(probe, history) or warnings(probe, history):
            harvest.dropped.append(Dropped(probe.type, probe.origin, probe.question, tuple(wrong)))
        else:
            harvest.candidates.append(Candidate(probe, template, third_of(probe, history)))
    return harvest


def _made(history: History, again: set[str]) -> Iterator[tuple[str, Probe]]:
    """Yield candidates, of each type those first that are the most telling."""
    yield from task_probes(history)
    yield from command_probes(history)
    yield from said_probes(history, again)
    yield from file_probes(history)
    yield from value_probes(history)
    yield from choice_probes(history)
    yield from git_probes(history)


def _to_go_on(history: History, probe: Probe, again: set[str]) -> Probe:
    """Make a question for one thing that was needed after the cut one about going on.

    What an agent really needed again is the best evidence that a compression has to keep it.
    """
    if len(probe.expected_facts) != 1 or probe.type not in ("recall", "artifact"):
        return probe
    forms = probe.expected_facts[0].forms
    if not again.intersection(forms) or history.kept(forms):
        return probe
    changes = {
        "type": "continuation",
        "question": wordings(history.language).future + probe.question,
        "origin": "mechanical:future",
    }
    return probe.model_copy(update=changes)
