"""Graded answers as an Inspect task.

Each answer of a set becomes a sample whose solver gives the written answer, so that only the
grader's model is called. With ``variants`` each answer is graded again in forms that should get the
same score.
"""

from collections.abc import Mapping
from typing import Any, Literal

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.log import HeadlineMetric
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, model_roles
from inspect_ai.solver import Generate, Solver, TaskState, solver

from compression_eval._version import __version__
from compression_eval.calibration.answers import (
    ORIGINAL,
    CalibrationSet,
    GradedAnswer,
    Variant,
    load_sets,
    shown_state,
    variants_of,
    varied_answer,
)
from compression_eval.calibration.scoring import Reference
from compression_eval.calibration.scoring import grader_calibration as calibration_scorer
from compression_eval.dataset import sample_id
from compression_eval.errors import DataError, unknown_arguments
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.models import Language
from compression_eval.grading.metrics import CLUSTER
from compression_eval.grading.request import GraderContext
from compression_eval.grading.rubric import rubric_digest
from compression_eval.inspect_models import EMBEDDED_MODEL, unknown_role
from compression_eval.record import AnswerRecord, SampleRecord, write_record
from compression_eval.run_hooks import follow_runs
from compression_eval.task import active_model
from compression_eval.terminal import command_line_errors
from compression_eval.versioning import result_version

MARK = "grader_calibration"
"""Key of a log's metadata that marks logs of this task."""


@task
def grader_calibration(
    answers: str | list[str] | None = None,
    variants: bool = False,
    grader_context: Literal["state", "none"] = "state",
    language: Language | None = None,
    **unknown: Any,
) -> Task:
    """Measure how well a grader agrees with a careful reader, and which traps it falls for.

    Args:
        answers: Names of shipped sets of graded answers (each is named after its fixture) or
            paths of files; all shipped ones if not given.
        variants: Grade every answer again with the criteria in another order, padded, with a
            method named in it, and by the rubric of another language: no score should move.
        grader_context: ``state`` shows the grader the summary of the set, ``none`` does not.
        language: Language of the rubric: en, zh or ja; that of each fixture if not given.
        unknown: Refused, so that a misspelt argument is not silently ignored.

    Returns:
        The task.
    """
    return calibration_task_from(locals())


def calibration_task_from(parameters: Mapping[str, Any]) -> Task:
    """Return the task for the parameters of `grader_calibration`.

    Raises:
        CommandLineError: As `calibration_task`, and for a name that is not an argument.
    """
    given = {name: value for name, value in parameters.items() if name != "unknown"}
    with command_line_errors():
        if error := unknown_arguments(given | parameters.get("unknown", {}), given):
            raise error
        return calibration_task(**given)


def calibration_task(
    answers: str | list[str] | None = None,
    variants: bool = False,
    grader_context: GraderContext = "state",
    language: Language | None = None,
) -> Task:
    """Return the task that has the grader grade the answers; see `grader_calibration`.

    No answering model is called: the answers are part of the sets. Without a chosen model, the
    embedded one grades.

    Raises:
        DataError: An argument or a set is invalid.
    """
    if not isinstance(variants, bool):
        raise DataError(f"variants: {variants!r} is not true or false")
    scorer = calibration_scorer(grader_context, language)
    sets = load_sets(answers)
    nothing_chosen = active_model() == "none/none"
    if error := unknown_role(model_roles()):
        raise error
    records: dict[str, SampleRecord] = {}
    samples: list[InspectSample] = []
    for group in sets:
        for item in group.answers.answers:
            varied = variants_of(group.probes[item.probe], item.kind) if variants else []
            for variant in (ORIGINAL, *varied):
                sample, record = _sample(group, item, variant)
                samples.append(sample)
                records[str(sample.id)] = record
    contexts = {group.answers.fixture: group.answers.context for group in sets}
    follow_runs()
    return Task(
        dataset=MemoryDataset(samples, name="graded answers"),
        solver=written_answers(records, contexts),
        scorer=scorer,
        model=EMBEDDED_MODEL if nothing_chosen else None,
        model_roles={"grader": EMBEDDED_MODEL} if nothing_chosen else None,
        headline_metric=HeadlineMetric(scorer="grader_calibration", metric="error"),
        name="grader_calibration",
        version=_version(sets),
        metadata={MARK: __version__},
    )


def written_answers(records: Mapping[str, SampleRecord], contexts: Mapping[str, str]) -> Solver:
    """Return the solver that gives each probe its written answer.

    Args:
        records: The record of each sample, by its id.
        contexts: The summary that the grader is shown, by fixture.
    """

    @solver(name="written_answers")
    def written() -> Solver:  # without parameters, which the log would hold
        async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
            record = records[str(state.sample_id)]
            write_record(state.store, record)
            assert record.answer is not None  # noqa: S101
            state.messages = [
                ChatMessageUser(content=contexts[record.fixture]),
                ChatMessageUser(content=record.probe.question),
                ChatMessageAssistant(content=record.answer.text),
            ]
            return state

        return solve

    return written()


def _sample(
    group: CalibrationSet, item: GradedAnswer, variant: Variant
) -> tuple[InspectSample, SampleRecord]:
    fixture = group.answers.fixture
    probe = group.probes[item.probe]
    name = f"{fixture}/{item.id}"
    reference = Reference(
        item=name,
        fixture=fixture,
        kind=item.kind,
        variant=variant,
        language=group.language,
        scores=item.scores,
        second_scores=item.second_scores,
        why=item.why,
    )
    record = SampleRecord(
        fixture=fixture,
        cut=1,
        replicate=0,
        language=group.language,
        probe=probe,
        state=shown_state(fixture),
        # No model gave it, so no grader judges its own answer.
        answer=AnswerRecord(text=varied_answer(item.answer, variant, group.language)),
        digests={"answers": digest(group.answers)},
    )
    sample = InspectSample(
        id=sample_id(fixture, item.id if variant == ORIGINAL else f"{item.id}+{variant}"),
        input=probe.question,
        metadata={**reference.model_dump(mode="json"), CLUSTER: fixture},
    )
    return sample, record


def _version(sets: list[CalibrationSet]) -> str:
    parts = [digest(group.answers) for group in sets]
    probes = [digest(probe) for group in sets for probe in group.probes.values()]
    return result_version([*parts, *probes, *(rubric_digest(name) for name in ("en", "zh", "ja"))])
