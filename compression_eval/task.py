"""Put the parts together: from task arguments to an Inspect task."""

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, cast

import click
from inspect_ai import Epochs, Task, task_with
from inspect_ai.dataset import Dataset
from inspect_ai.log import HeadlineMetric
from inspect_ai.model import Model, get_model, model_roles

from compression_eval._version import __version__
from compression_eval.arguments import CheckedArguments, TaskArguments, checked
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import prompts_digest
from compression_eval.compressors.spec import CompressorSpec
from compression_eval.compressors.tokens import token_counter
from compression_eval.compressors.yours import source_digest
from compression_eval.dataset import PlannedDataset, planned_dataset
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.errors import (
    MAX_NAMED,
    DataError,
    passed_over,
    unknown_arguments,
)
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.grading.compression import compression as compression_scorer
from compression_eval.grading.fact_retention import fact_retention
from compression_eval.grading.metrics import MEAN
from compression_eval.grading.rubric import KNOWLEDGE
from compression_eval.grading.six_dimensions import six_dimensions
from compression_eval.grading.verdicts import VERDICT, qualification
from compression_eval.offline.registration import EMBEDDED_MODEL
from compression_eval.run_hooks import MAX_FAILED
from compression_eval.solver import preamble_digest, probe_solver
from compression_eval.versioning import made_from, result_version
from compression_eval.viewer import viewer_config

logger = logging.getLogger(__name__)

DEFAULT_EPOCHS = 3

MAX_ARM_NAME = 60
"""Characters of an arm in a task's name; its tags and arguments hold the rest."""


def task_from(given: Mapping[str, Any]) -> Task:
    """Return the task for arguments as they came from a command line.

    Raises:
        DataError: As `compression_task`, and for a name that is not an argument: Inspect only
            warns of those, so a misspelt one would be ignored.
    """
    try:
        if error := unknown_arguments(given, TaskArguments.__dataclass_fields__):
            raise error
        return compression_task(TaskArguments(**given))
    except DataError as error:
        raise CommandLineError(str(error)) from error


class CommandLineError(DataError, click.ClickException):
    """A `DataError` that Inspect's command line shows as one line instead of a traceback."""

    def __init__(self, message: str) -> None:
        click.ClickException.__init__(self, message)


def compression_task(arguments: TaskArguments) -> Task:
    """Return the task that measures what a compression kept.

    Args:
        arguments: Checked here, before any model is called.

    Raises:
        DataError: An argument or a file is not what it must be; the text names it.
    """
    ready = checked(arguments)
    spec = ready.spec
    dataset = planned_dataset(
        ready,
        cycles=arguments.cycles,
        language=arguments.language,
        min_removed=arguments.min_removed,
    )
    if dataset.passed_over:
        _warn_once(passed_over(dataset.passed_over))
    if arguments.anchors > len(dataset.samples):
        raise DataError(
            f"anchors: {arguments.anchors} is more than the {len(dataset.samples)} samples of an "
            "epoch, each of which takes one"
        )
    parts = _parts(ready, dataset)
    version = result_version(parts.values())
    answerer = _active_model()
    nothing_chosen = answerer == "none/none"
    answerer = EMBEDDED_MODEL if nothing_chosen else answerer
    models = _models(answerer)
    _check_compressor_model(spec, answerer)
    _check_reader(arguments, models)
    verdicts = _verdicts(dataset.samples)
    about = _about_models(models)
    return Task(
        dataset=dataset.samples,
        solver=probe_solver(
            dataset.plans,
            compressor=spec.name,
            compressor_args=spec.arguments.model_dump(mode="json"),
            cycles=arguments.cycles,
            answers=arguments.answers,
            version=version,
        ),
        scorer=[
            six_dimensions(
                criteria=arguments.criteria,
                grader_context=arguments.grader_context,
                anchors=arguments.anchors,
            ),
            fact_retention(state_facts=arguments.state_facts),
            compression_scorer(),
            *([qualification()] if verdicts else []),
        ],
        # A default that stands in Task(model=...) would win over --model.
        model=EMBEDDED_MODEL if nothing_chosen else None,
        model_roles={"grader": EMBEDDED_MODEL} if nothing_chosen else None,
        epochs=Epochs(DEFAULT_EPOCHS * arguments.answers, "mean"),
        headline_metric=HeadlineMetric(scorer="six_dimensions", score=KNOWLEDGE, metric=MEAN),
        name=_task_name(ready.arm),
        version=version,
        metadata=_metadata(spec)
        | made_from(version, parts)
        | about.metadata
        | {"min_removed": arguments.min_removed, MAX_FAILED: arguments.max_failed}
        | (
            {"passed_over": [str(error) for error in dataset.passed_over[:MAX_NAMED]]}
            if dataset.passed_over
            else {}
        )
        | ({"probes_by_verdict": verdicts} if verdicts else {}),
        tags=[*ready.arm, *about.tags],
        viewer=viewer_config(
            verdicts=bool(verdicts),
            trusted=_shipped(arguments, ready),
            read=arguments.state_facts != "match" and models.grades[0] != EMBEDDED_MODEL,
        ),
    )


@cache
def _warn_once(text: str) -> None:
    """Warn, but not again for every arm of a sweep."""
    logger.warning("%s", text)


def with_models(task: Task, answers: str, roles: Mapping[str, Sequence[str]]) -> Task:
    """Return a task that was made outside of an eval with what its log says about its models.

    Args:
        task: A task of `compression_task`; it is changed in place.
        answers: Name of the model under test.
        roles: Names of the models by role: several graders, one compressor.
    """
    about = _about_models(
        _Models(
            answers,
            list(roles.get("grader") or [answers]),
            next(iter(roles.get("compressor", ())), answers),
        )
    )
    kept = {key: value for key, value in (task.metadata or {}).items() if key != _NOTE}
    tags = [tag for tag in task.tags or [] if tag != _OFFLINE_TAG]
    return task_with(task, tags=[*tags, *about.tags], metadata=kept | about.metadata)


def _task_name(arm: Sequence[str]) -> str:
    """Return a name that tells arms apart in the viewer's list; the log's file is called by it."""
    short = [part.replace("_tokens=", "=").removeprefix("prompt=") for part in arm]
    plain = re.sub(r"[^\w.+=@-]+", "-", " ".join(short), flags=re.ASCII)
    return f"compression-{plain[:MAX_ARM_NAME].strip('-')}"


def _parts(ready: CheckedArguments, dataset: PlannedDataset) -> dict[str, str]:
    """Return digests of all that decides the results and is not an argument, by what it is."""
    return {
        **dataset.digests,
        "text before each question": preamble_digest(),
        "token counter": token_counter().name,
        "compressor's arguments, prompt included": digest(str(ready.spec.described())),
        "compressor's source": source_digest(ready.spec) or "",
        "compression_eval": __version__,
        "compressors' prompts": prompts_digest(),
    }


def _shipped(arguments: TaskArguments, ready: CheckedArguments) -> bool:
    """Return whether every conversation and bank comes with this project."""
    files = {str(path) for path in shipped_fixtures().values()}
    return arguments.probes is None and all(source.origin in files for source in ready.sources)


def _verdicts(samples: Dataset) -> dict[str, int]:
    """Count the samples by the verdict on their probe; nothing if no probe has one."""
    found = Counter(str((sample.metadata or {})[VERDICT]) for sample in samples)
    return dict(found) if set(found) != {"unknown"} else {}


def _active_model() -> str | None:
    """Return the model that Inspect is about to evaluate: ``none/none`` if none was chosen.

    None means that it cannot be known yet: the task is made in Python, outside of an eval.
    """
    try:
        return str(get_model())
    except ValueError:
        return None


@dataclass(frozen=True)
class _Models:
    """Names of the models by what they do; None where that cannot be known yet."""

    answers: str | None
    grades: list[str | None]
    compresses: str | None

    @property
    def all(self) -> list[str | None]:
        return [self.answers, *self.grades, self.compresses]


def _models(answerer: str | None) -> _Models:
    roles = model_roles()
    compressor = roles.get("compressor")
    if isinstance(compressor, list):
        raise DataError("--model-role compressor: one model, not a list")
    grader = roles.get("grader")
    bound = grader if isinstance(grader, list) else [grader]
    graders: list[str | None] = [str(model) for model in bound if model] or [answerer]
    return _Models(answerer, graders, str(compressor) if compressor else answerer)


def _check_compressor_model(spec: CompressorSpec, answerer: str | None) -> None:
    """Refuse a model that the strategy cannot work with; outside of an eval it is not known yet."""
    check = spec.compressor.check_model
    if check is None or answerer is None:
        return
    bound = model_roles().get("compressor")
    # A model that is bound or active is never made anew.
    found = bound or get_model(answerer if answerer == EMBEDDED_MODEL else None)
    try:
        check(cast(Model, found))
    except CompressionError as error:
        raise DataError(f"compressor: {spec.name}: {error.reason}") from error


def _check_reader(arguments: TaskArguments, models: _Models) -> None:
    """Refuse to have states read by a model that cannot; by default they are looked up then."""
    reader = models.grades[0]
    if arguments.state_facts == "reader" and reader == EMBEDDED_MODEL:
        raise DataError(
            f"state_facts: reader needs a language model, and the grader is {reader}; bind "
            "another with --model-role grader=…, or give match"
        )


def _metadata(spec: CompressorSpec) -> dict[str, Any]:
    return {
        "compression_eval": __version__,
        "compressor": spec.described(),
        "token_counter": token_counter().name,
    }


_OFFLINE_TAG = "no-language-model"

_NOTE = "note"
"""Key of the metadata that stands only where no language model is involved."""


@dataclass(frozen=True)
class _AboutModels:
    """What a log says about the models that take part."""

    metadata: dict[str, Any]
    tags: list[str]


def _about_models(models: _Models) -> _AboutModels:
    offline = all(name is not None and name.startswith("embedded/") for name in models.all)
    metadata: dict[str, Any] = {
        "models": asdict(models),
        "self_graded": models.answers in models.grades
        and not str(models.answers).startswith("embedded/"),
    }
    if not offline:
        return _AboutModels(metadata, [])
    metadata[_NOTE] = "The embedded lexical model did everything: no language model was involved."
    return _AboutModels(metadata, [_OFFLINE_TAG])
