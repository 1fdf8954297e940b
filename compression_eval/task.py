"""The eval: from task arguments to an Inspect task.

`compression` is what Inspect registers. `compression_task` makes the dataset, the solver and the
scorers, and puts into the metadata digests of everything that decides the results. Models are
checked here, before a sample runs.
"""

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, cast

from inspect_ai import Epochs, Task, task, task_with
from inspect_ai.log import HeadlineMetric
from inspect_ai.model import Model, get_model, model_roles

from compression_eval._version import __version__
from compression_eval.arguments import CheckedArguments, TaskArguments, checked
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.registry import source_digest
from compression_eval.compressors.strategy import CompressorSpec
from compression_eval.compressors.tokens import token_counter
from compression_eval.compressors.validity import DEFAULT_MIN_REMOVED
from compression_eval.dataset import PlannedDataset, planned_dataset
from compression_eval.errors import MAX_NAMED, DataError, passed_over
from compression_eval.fetching.answering import fetching_digest
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.models import Language
from compression_eval.grading.metrics import MEAN, VERDICT
from compression_eval.grading.refetching import refetch as refetch_scorer
from compression_eval.grading.rubric import KNOWLEDGE
from compression_eval.grading.scorers import compression as compression_scorer
from compression_eval.grading.scorers import fact_retention, qualification, six_dimensions
from compression_eval.inspect_models import EMBEDDED_MODEL, unknown_role
from compression_eval.plans import preamble_digest
from compression_eval.run_hooks import MAX_FAILED, follow_runs
from compression_eval.solver import probe_solver
from compression_eval.terminal import command_line_errors
from compression_eval.versioning import SOURCE, TEXTS, made_from, result_version
from compression_eval.viewer import viewer_config

logger = logging.getLogger(__name__)

DEFAULT_EPOCHS = 3

MAX_ARM_NAME = 60
"""Maximum characters of an arm in a task's name; its tags and arguments contain the rest."""

OFFLINE_TAG = "no-language-model"
_OFFLINE_NOTE = "The embedded lexical model did everything: no language model was involved."


@task
def compression(
    fixtures: str | list[str] | None = None,
    probes: str | None = None,
    probe_types: str | list[str] | None = None,
    shard: str | None = None,
    cut: int | float | str | list[int | float | str] = "auto",
    compressor: str = "anchored",
    compressor_args: dict[str, Any] | None = None,
    prompt: str | None = None,
    focus_topic: str | None = None,
    cycles: int = 1,
    answers: int = 1,
    min_removed: float = DEFAULT_MIN_REMOVED,
    max_failed: float = 1.0,
    criteria: Literal["by_type", "all"] = "by_type",
    grader_context: Literal["state", "none"] = "state",
    state_facts: Literal["reader", "match"] | None = None,
    language: Language | None = None,
    refetch: bool | dict[str, int] = False,
    **unknown: Any,
) -> Task:
    """Measure what a coding agent still knows after its context was compressed.

    The arguments are the fields of `arguments.ArgumentFields`, which describes each of them.
    Others are refused, so that a misspelt one is not silently ignored.
    """
    return task_from(locals())


def task_from(parameters: Mapping[str, Any]) -> Task:
    """Return the task for the parameters of `compression`.

    Raises:
        CommandLineError: As `compression_task`, and for a name that is not an argument: Inspect
            only warns of those, so a misspelt one would be ignored.
    """
    named = {name: value for name, value in parameters.items() if name != "unknown"}
    with command_line_errors():
        return compression_task(TaskArguments(**named, **parameters.get("unknown", {})))


def compression_task(arguments: TaskArguments) -> Task:
    """Return the task that measures what a compression kept.

    Raises:
        DataError: A file or an argument is invalid; the text names it. No model has been called
            then.
    """
    ready = checked(arguments)
    dataset = planned_dataset(ready)
    if dataset.passed_over:
        _warn_once(passed_over(dataset.passed_over))
    answerer = active_model()
    nothing_chosen = answerer == "none/none"
    answerer = EMBEDDED_MODEL if nothing_chosen else answerer
    graders, compressing = bound_roles(answerer)
    check_models(arguments, ready.spec, answerer, graders)
    note, offline = _offline_marks(answerer, *graders, compressing)
    limits = arguments.fetch_limits
    parts = _parts(ready.spec, dataset) | ({"fetching": fetching_digest()} if limits else {})
    version = result_version(parts.values())
    verdicts = _verdicts(dataset)
    rare = {
        "refetch": limits and limits.model_dump(),
        "passed_over": [str(error) for error in dataset.passed_over[:MAX_NAMED]],
        "probes_by_verdict": verdicts,
    }
    follow_runs()
    return Task(
        dataset=dataset.samples,
        solver=probe_solver(
            dataset.plans,
            compressor=ready.spec.name,
            compressor_args=ready.spec.arguments.model_dump(mode="json"),
            cycles=arguments.cycles,
            answers=arguments.answers,
            version=version,
            refetch=limits,
        ),
        # In this order: `fact_retention` reads the grader's words in the score of `six_dimensions`.
        scorer=[
            six_dimensions(arguments.criteria, arguments.grader_context),
            fact_retention(state_facts=arguments.state_facts),
            compression_scorer(),
            *([refetch_scorer(arguments.criteria, arguments.grader_context)] if limits else []),
            *([qualification()] if verdicts else []),
        ],
        # A default that is in Task(model=...) would win over --model.
        model=EMBEDDED_MODEL if nothing_chosen else None,
        model_roles={"grader": EMBEDDED_MODEL} if nothing_chosen else None,
        epochs=Epochs(DEFAULT_EPOCHS * arguments.answers, "mean"),
        headline_metric=HeadlineMetric(scorer="six_dimensions", score=KNOWLEDGE, metric=MEAN),
        name=arm_task_name(ready.arm),
        version=version,
        metadata={
            "compression_eval": __version__,
            "compressor": ready.spec.described(),
            "token_counter": token_counter().name,
            **made_from(version, parts),
            **note,
            "min_removed": arguments.min_removed,
            MAX_FAILED: arguments.max_failed,
            **{name: value for name, value in rare.items() if value},
        },
        tags=[*ready.arm, *offline],
        viewer=viewer_config(
            verdicts=bool(verdicts),
            refetch=limits is not None,
            trusted=_shipped(ready),
            read=arguments.state_facts != "match" and graders[0] != EMBEDDED_MODEL,
        ),
    )


@cache
def _warn_once(text: str) -> None:
    """Warn once, not for every arm of a sweep."""
    logger.warning("%s", text)


def arm_task_name(arm: Sequence[str], kind: str = "compression") -> str:
    """Return a name that tells arms apart in the viewer's list; the log's file is called by it."""
    short = [part.replace("_tokens=", "=").removeprefix("prompt=") for part in arm]
    plain = re.sub(r"[^\w.+=@-]+", "-", " ".join(short), flags=re.ASCII)
    return f"{kind}-{plain[:MAX_ARM_NAME].strip('-')}"


def _parts(spec: CompressorSpec, dataset: PlannedDataset) -> dict[str, str]:
    """Return named digests of everything that decides the results next to the arguments."""
    return {
        **dataset.digests,
        "text before each question": preamble_digest(),
        "token counter": token_counter().name,
        "compressor's arguments, prompt included": digest(str(spec.described())),
        SOURCE: source_digest(spec) or "",
        TEXTS: spec.texts_digest(),
    }


def _shipped(ready: CheckedArguments) -> bool:
    """Return whether every conversation and bank comes with this project."""
    files = {str(path) for path in shipped_fixtures().values()}
    return ready.given.probes is None and all(source.origin in files for source in ready.sources)


def _verdicts(dataset: PlannedDataset) -> dict[str, int]:
    """Count the samples by the verdict on their probe; nothing if no probe has one."""
    counts = Counter(str((sample.metadata or {})[VERDICT]) for sample in dataset.samples)
    return dict(counts) if set(counts) != {"unknown"} else {}


def active_model() -> str | None:
    """Return the model that Inspect is about to evaluate: ``none/none`` if none was chosen.

    None means that it cannot be known yet: the task is made in Python, outside of an eval.
    """
    try:
        return str(get_model())
    except ValueError:
        return None


def bound_roles(answerer: str | None) -> tuple[list[str | None], str | None]:
    """Return the names of the graders and of the model that compresses.

    Raises:
        DataError: There is a role that nothing here has, or several models are to compress.
    """
    roles = model_roles()
    if error := unknown_role(roles):
        raise error
    grader, compressor = roles.get("grader"), roles.get("compressor")
    if isinstance(compressor, list):
        raise DataError("--model-role compressor: one model, not a list")
    bound = grader if isinstance(grader, list) else [grader]
    graders: list[str | None] = [str(model) for model in bound if model]
    return graders or [answerer], str(compressor) if compressor else answerer


def check_models(
    arguments: TaskArguments,
    spec: CompressorSpec,
    answerer: str | None,
    graders: Sequence[str | None],
) -> None:
    """Refuse an unsuitable model; outside of an eval it is unknown."""
    check = spec.compressor.kind.check_model
    if check is not None and answerer is not None:
        # A bound or active model is never created again.
        model = model_roles().get("compressor") or get_model(
            answerer if answerer == EMBEDDED_MODEL else None
        )
        try:
            check(cast(Model, model))
        except CompressionError as error:
            raise DataError(f"compressor: {spec.name}: {error.reason}") from error
    if arguments.state_facts == "reader" and graders[0] == EMBEDDED_MODEL:
        raise DataError(
            f"state_facts: reader needs a language model, and the grader is {graders[0]}; bind "
            "another with --model-role grader=…, or give match"
        )


def _offline_marks(*models: str | None) -> tuple[dict[str, str], list[str]]:
    """Return a log's note and tag if no language model takes part; a name is None if unknown."""
    if all(str(name).startswith("embedded/") for name in models):
        return {"note": _OFFLINE_NOTE}, [OFFLINE_TAG]
    return {}, []


def with_models(created: Task, answers: str, roles: Mapping[str, Sequence[str]]) -> Task:
    """Return a task created outside of an eval with the note and tag about its models.

    Args:
        created: A task of `compression_task`; it is changed in place.
        answers: Name of the model under test.
        roles: Names of the models by role: several graders, one compressor.
    """
    helpers = (name for role in ("grader", "compressor") for name in roles.get(role) or [answers])
    note, offline = _offline_marks(answers, *helpers)
    kept = {name: value for name, value in (created.metadata or {}).items() if name != "note"}
    tags = [tag for tag in created.tags or [] if tag != OFFLINE_TAG]
    return task_with(created, tags=[*tags, *offline], metadata=kept | note)
