"""The second task: does an agent finish the work from a compressed state, and at what cost.

The samples are continuation tasks of fixtures; those at one cut share a state. A task's constraints
become a probe, so that the state is searched for their facts as in the first task.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import HeadlineMetric
from inspect_ai.viewer import ScoreColorScale, TaskSamplesColumn, ViewerConfig

from compression_eval._version import __version__
from compression_eval.arguments import CheckedArguments, TaskArguments, checked
from compression_eval.compressors.registry import source_digest
from compression_eval.compressors.running import CompressionPlan
from compression_eval.compressors.tokens import token_counter
from compression_eval.compressors.validity import DEFAULT_MIN_REMOVED
from compression_eval.errors import (
    DataError,
    PassedOverError,
    did_you_mean,
    nothing_left,
    passed_over,
    unknown_arguments,
)
from compression_eval.facts.records import track
from compression_eval.fixtures.banks import ExpectedFact, Probe
from compression_eval.fixtures.continuations import (
    Continuation,
    TaskFile,
    codebase_digest,
    continuations_of,
    cut_of,
    load_continuations,
    message_of,
    task_digest,
)
from compression_eval.fixtures.conversation import declared_tools
from compression_eval.fixtures.cuts import chain
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.finding_files import invoked_path, shipped_fixtures
from compression_eval.fixtures.loading import FixtureSource, refuse_shared_names
from compression_eval.fixtures.models import Fixture
from compression_eval.grading.metrics import MEAN
from compression_eval.grading.scorers import compression as compression_scorer
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.plans import ProbePlan
from compression_eval.resumption.agent import (
    NO_MODEL,
    Resumption,
    SandboxKind,
    resumption_solver,
    text_for_agent,
)
from compression_eval.resumption.bubblewrap import missing
from compression_eval.resumption.scoring import MARK, finishing
from compression_eval.run_hooks import MAX_FAILED, follow_runs
from compression_eval.task import active_model, arm_task_name, bound_roles
from compression_eval.task import check_models as check_compressor_model
from compression_eval.terminal import command_line_errors
from compression_eval.versioning import SOURCE, TEXTS, made_from, result_version
from compression_eval.viewer import rows

logger = logging.getLogger(__name__)

MAX_TURNS = 60
MAX_WORKING_SECONDS = 1800
IN_RUN_THRESHOLD = 0.9
_AS_COMPRESSION = (
    *("fixtures", "shard", "compressor", "compressor_args", "prompt", "focus_topic", "cycles"),
    *("min_removed", "max_failed"),
)
"""Arguments that mean what they mean for the task `compression`."""
_OWN = ("continuations", "sandbox", "unsafe", "in_run")
_TEXTS = ("note.md", "local.md", "away.md", "Dockerfile", "compose.yaml")

_UNSAFE_WARNING = (
    "unsafe=true: the agent's commands run on this machine as you, with your files, your network "
    "and your environment; nothing stops them. Use it only in a container or on a machine that may "
    "be thrown away."
)


@task
def resumption(
    fixtures: str | list[str] | None = None,
    continuations: str | None = None,
    shard: str | None = None,
    compressor: str = "anchored",
    compressor_args: dict[str, Any] | None = None,
    prompt: str | None = None,
    focus_topic: str | None = None,
    cycles: int = 1,
    min_removed: float = DEFAULT_MIN_REMOVED,
    max_failed: float = 1.0,
    sandbox: Literal["docker", "local"] = "docker",
    unsafe: bool = False,
    in_run: bool | float = False,
    **unknown: Any,
) -> Task:
    """Measure whether, and at what cost, an agent finishes the work from a compressed state.

    Args:
        fixtures: As for the task ``compression``; those without continuation tasks are skipped.
        continuations: A file of tasks, or a folder with ``NAME.yaml``; by default
            ``../continuations/`` next to the fixture's folder.
        shard: As for the task ``compression``, and so the following down to ``max_failed``.
        compressor: Name of the strategy.
        compressor_args: Its arguments, budgets among them.
        prompt: A file whose text replaces the instructions of a summarising strategy.
        focus_topic: A topic that a summarising strategy gives the most room.
        cycles: How many compressions the conversation goes through before the work goes on.
        min_removed: Share of the tokens that each compression must remove.
        max_failed: Share of the samples that may stay without a score.
        sandbox: ``docker``, or ``local`` for a folder on this machine under bubblewrap.
        unsafe: Whether ``local`` runs the agent's commands as you, without bubblewrap; nothing
            stops them then.
        in_run: Whether the agent compresses by the same strategy on the way: true for at 90 % of
            its window, or a share (below 1.0) or number of tokens.
        unknown: Refused, so that a misspelt argument is not silently ignored.

    Returns:
        The task.
    """
    return resumption_task_from(locals())


def resumption_task_from(parameters: Mapping[str, Any]) -> Task:
    """Return the task for the parameters of `resumption`.

    Raises:
        CommandLineError: An argument or a file is invalid, or no suitable model is chosen.
    """
    named = {name: value for name, value in parameters.items() if name != "unknown"}
    named |= parameters.get("unknown", {})
    with command_line_errors():
        if error := unknown_arguments(named, (*_AS_COMPRESSION, *_OWN)):
            raise error
        return _task(
            TaskArguments(**{name: named[name] for name in _AS_COMPRESSION if name in named}),
            named.get("continuations"),
            _sandbox_kind(named.get("sandbox", "docker"), named.get("unsafe", False)),
            _threshold(named.get("in_run", False)),
        )


def _sandbox_kind(value: Any, unsafe: Any) -> SandboxKind:
    if value not in ("docker", "local"):
        raise DataError(
            f"sandbox: unknown value {value!r}{did_you_mean(str(value), ('docker', 'local'))} "
            "(expected one of docker, local)"
        )
    if not isinstance(unsafe, bool):
        raise DataError(f"unsafe: {unsafe!r} is not true or false")
    if value == "docker":
        if unsafe:
            raise DataError("unsafe: only sandbox=local can be without bubblewrap")
        return "docker"
    if not unsafe and (reason := missing()):
        raise DataError(
            f"sandbox: local needs bubblewrap, and {reason}; use sandbox=docker, or let the "
            "agent's commands run as you, with all your files and your network: -T unsafe=true"
        )
    return "local" if unsafe else "bubblewrap"


def _threshold(value: Any) -> float | None:
    if isinstance(value, bool):
        return IN_RUN_THRESHOLD if value else None
    if not isinstance(value, int | float) or value <= 0:
        raise DataError(f"in_run: {value!r} is not true, false, a share or a number of tokens")
    return value


def _task(
    arguments: TaskArguments, continuations: str | None, sandbox: SandboxKind, in_run: float | None
) -> Task:
    answerer = active_model()
    if answerer in ("none/none", EMBEDDED_MODEL):
        raise DataError(NO_MODEL)
    ready = checked(arguments)
    kind = ready.spec.compressor.kind
    if in_run is not None and (kind.exempt or kind.unsupported):
        raise DataError(f"in_run: {ready.spec.name} cannot compress while an agent works")
    bound_roles(answerer)
    check_compressor_model(arguments, ready.spec, answerer, [answerer])
    found = _found(ready, None if continuations is None else invoked_path(str(continuations)))
    if sandbox == "local":
        logger.warning("%s", _UNSAFE_WARNING)
    version = result_version(found.parts.values())
    folder = Path(__file__).parent
    threshold = [] if in_run is None else [f"in_run={in_run}"]
    follow_runs()
    return Task(
        dataset=MemoryDataset(found.samples, name=",".join(found.names[:8])),
        solver=resumption_solver(
            found.resumptions,
            compressor=ready.spec.name,
            compressor_args=ready.spec.arguments.model_dump(mode="json"),
            cycles=arguments.cycles,
            sandbox_kind=sandbox,
            in_run=in_run,
            version=version,
        ),
        scorer=[finishing(), compression_scorer()],
        sandbox=("docker", str(folder / "compose.yaml")) if sandbox == "docker" else sandbox,
        epochs=Epochs(1, "mean"),
        turn_limit=MAX_TURNS,
        working_limit=MAX_WORKING_SECONDS,
        headline_metric=HeadlineMetric(scorer="finishing", score="solved", metric=MEAN),
        name=arm_task_name([*ready.arm, *threshold], "resumption"),
        version=version,
        metadata={
            MARK: __version__,
            "compressor": ready.spec.described(),
            "token_counter": token_counter().name,
            **made_from(version, found.parts),
            "min_removed": arguments.min_removed,
            MAX_FAILED: arguments.max_failed,
        },
        tags=[*ready.arm, *threshold],
        viewer=_viewer(trusted=continuations is None and _all_shipped(ready)),
    )


@dataclass
class _Found:
    """Samples and what to do for each."""

    samples: list[Sample] = field(default_factory=list)
    resumptions: dict[str, Resumption] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)
    """Digests of everything that decides the results next to the arguments."""


def _found(ready: CheckedArguments, given: Path | None) -> _Found:
    found = _Found(
        parts={
            "agent's texts and sandbox": digest("\0".join(map(text_for_agent, _TEXTS))),
            "token counter": token_counter().name,
            "compressor's arguments, prompt included": digest(str(ready.spec.described())),
            SOURCE: source_digest(ready.spec) or "",
            TEXTS: ready.spec.texts_digest(),
        }
    )
    skipped: list[PassedOverError] = []
    names: dict[str, str] = {}
    for source in ready.sources:
        path, there = continuations_of(source, given)
        if not there:
            reason = "no continuation tasks"
            skipped.append(PassedOverError(f"{source.origin}: {reason}", source.origin, reason))
            continue
        fixture = source.read_fixture()
        refuse_shared_names(fixture, source.origin, names)
        file = load_continuations(source, path, fixture)
        found.names.append(fixture.name)
        found.parts[f"fixture {fixture.name}"] = digest(fixture)
        found.parts[f"continuations of {fixture.name}"] = digest(file.content)
        if codebase := codebase_digest(file):
            found.parts[f"code base of {fixture.name}"] = codebase
        _add(found, ready, source, fixture, file)
    if not found.samples:
        raise nothing_left(skipped)
    if skipped:
        logger.warning("%s", passed_over(skipped))
    if len(found.names) == 1 and not ready.sharded:
        for sample in found.samples:  # an error over one cluster would be 0
            sample.metadata = (sample.metadata or {}) | {"cluster": sample.id}
    return found


def _add(
    found: _Found,
    ready: CheckedArguments,
    source: FixtureSource,
    fixture: Fixture,
    file: TaskFile,
) -> None:
    """Add the tasks of one fixture; those at one cut share a state."""
    for cut in sorted({cut_of(item, fixture) for item in file.content.tasks}):
        tasks = [item for item in file.content.tasks if cut_of(item, fixture) == cut]
        probes = {item.id: _as_probe(item, cut, fixture, file) for item in tasks}
        cuts = chain(fixture, cut, ready.given.cycles)
        if reason := ready.spec.unsupported(fixture, cuts):
            raise DataError(f"compressor: {ready.spec.name}: {source.origin}: {reason}")
        plan = CompressionPlan(
            fixture=fixture,
            tools=declared_tools(fixture, cut),
            cuts=cuts,
            spec=ready.spec,
            tracked=track(fixture, cut, [probes[item.id] for item in tasks if item.constraints]),
            min_removed=ready.given.min_removed,
        )
        for item in tasks:
            name = f"{fixture.name}/{item.id}"
            own = ProbePlan(probes[item.id], fixture.language, plan, {"fixture": digest(fixture)})
            found.resumptions[name] = Resumption(own, item, file)
            found.samples.append(
                Sample(
                    id=name,
                    input=probes[item.id].question,
                    target=[check.what for check in (*item.checks, *item.constraints)],
                    metadata={
                        "fixture": fixture.name,
                        "cluster": fixture.name,
                        "task_type": fixture.task_type,
                        "language": fixture.language,
                        "cut": cut,
                        "cycles": len(cuts),
                        "message": "written" if item.message else "recorded",
                        "task_digest": task_digest(item, file.probes, fixture),
                    },
                )
            )


def _as_probe(item: Continuation, cut: int, fixture: Fixture, file: TaskFile) -> Probe:
    """Return a task as a probe, so that its constraints are looked up in the state."""
    facts = [fact for probe in file.probes_of(item) for fact in probe.expected_facts]
    return Probe(
        id=item.id,
        type="continuation",
        question=message_of(item, fixture),
        expected_facts=facts or [ExpectedFact(fact=item.id)],
        cut=cut,
    )


def _all_shipped(ready: CheckedArguments) -> bool:
    files = {str(path) for path in shipped_fixtures().values()}
    return all(source.origin in files for source in ready.sources)


def _viewer(*, trusted: bool) -> ViewerConfig:
    """Return one row per task: what was finished, what it cost, what was done again."""
    share = ScoreColorScale(palette="good-high", min=0, max=1)
    few = ScoreColorScale(palette="good-low", min=0, max=3)
    labels = {
        "solved": "solved",
        "finished": "finished",
        "constraints_broken": "broken",
        "constraints_asked": "asked",
        "tokens_used": "tokens",
        "turns": "turns",
        "files_read_again": "read again",
        "commands_run_again": "run again",
        "questions": "questions",
    }
    left = {
        "tokens_removed": "removed",
        "tokens_retained": "tokens left",
        "failed_states": "failed",
    }
    return rows(
        "Tasks",
        [
            *(TaskSamplesColumn.score("finishing", name) for name in labels),
            *(TaskSamplesColumn.score("compression", name) for name in left),
            TaskSamplesColumn(id="limit"),
        ],
        labels=labels | left,
        scales={
            **dict.fromkeys(("solved", "finished"), share),
            **dict.fromkeys(("constraints_broken", "questions"), few),
            "tokens_removed": ScoreColorScale(palette="neutral", min=0, max=1),
        },
        trusted=trusted,
    )
