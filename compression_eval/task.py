"""Put the parts together: from task arguments to an Inspect task."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain as joined
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, get_args

from inspect_ai import Epochs, Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import HeadlineMetric
from inspect_ai.model import get_model, model_roles

from compression_eval._version import __version__
from compression_eval.compressors.facts import track
from compression_eval.compressors.registry import CompressorSpec, compressor_spec
from compression_eval.compressors.running import CompressionPlan
from compression_eval.fixtures.conversation import declared_tools
from compression_eval.fixtures.cuts import CutArgument, chain, resolve_cut
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.loading import DEFAULT_FIXTURES, FixtureWithBank, load_pairs
from compression_eval.fixtures.models import Fixture, Language, Probe, ProbeType
from compression_eval.grading.compression import compression as compression_scorer
from compression_eval.grading.fact_retention import fact_retention
from compression_eval.grading.rubric import rubric_digest
from compression_eval.grading.six_dimensions import six_dimensions
from compression_eval.probing.prompts import preamble_digest
from compression_eval.probing.solver import ProbePlan, probe_solver
from compression_eval.versioning import result_version
from compression_eval.viewer import viewer_config

EMBEDDED_MODEL = "embedded/lexical"
DEFAULT_EPOCHS = 3

Several = str | Sequence[str]


@dataclass(frozen=True)
class TaskArguments:
    """The arguments of the task; `compression_task` documents them."""

    fixtures: Several = DEFAULT_FIXTURES
    probes: str | None = None
    probe_types: Several | None = None
    cut: CutArgument | Sequence[CutArgument] = "end"
    compressor: str = "anchored"
    compressor_args: Mapping[str, Any] | None = None
    prompt: str | None = None
    focus_topic: str | None = None
    cycles: int = 1
    answers: int = 1
    criteria: Literal["by_type", "all"] = "by_type"
    grader_context: Literal["state", "none"] = "state"
    language: Language | None = None


def task_from(given: Mapping[str, Any]) -> Task:
    """Return the task for arguments as they came from a command line.

    Raises:
        DataError: As `compression_task`, and for a name that is not an argument: Inspect only
            warns of those, so a misspelt one would be ignored.
    """
    unknown = sorted(set(given) - set(TaskArguments.__dataclass_fields__))
    if unknown:
        known = ", ".join(TaskArguments.__dataclass_fields__)
        raise DataError(f"unknown task argument: {', '.join(unknown)} (arguments: {known})")
    return compression_task(TaskArguments(**given))


def compression_task(arguments: TaskArguments) -> Task:
    """Return the task that measures what a compression kept.

    Args:
        arguments: Checked here, before any model is called.

    Raises:
        DataError: An argument or a file is not what it must be; the text names it.
    """
    spec = _spec(arguments)
    _check(arguments)
    types = _probe_types(arguments.probe_types)
    pairs = load_pairs(_found(arguments.fixtures), _found_path(arguments.probes))
    cuts = arguments.cut if isinstance(arguments.cut, list | tuple) else [arguments.cut]
    plans: dict[str, ProbePlan] = {}
    groups: list[list[Sample]] = []
    for pair in pairs:
        for cut in cuts:
            group = _plan(pair, cut, spec, types, arguments, several_cuts=len(cuts) > 1)
            plans.update({sample_id: plan for sample_id, plan, _ in group})
            groups.append([sample for _, _, sample in group])
    nothing_chosen = str(get_model()) == "none/none"
    offline = nothing_chosen or str(get_model()).startswith("embedded/")
    return Task(
        dataset=MemoryDataset(_round_robin(groups), name=_dataset_name(pairs)),
        solver=probe_solver(
            plans,
            compressor=spec.name,
            compressor_args=spec.arguments.model_dump(mode="json"),
            cycles=arguments.cycles,
            answers=arguments.answers,
        ),
        scorer=[
            six_dimensions(criteria=arguments.criteria, grader_context=arguments.grader_context),
            fact_retention(),
            compression_scorer(),
        ],
        # A default that stands in Task(model=...) would win over --model.
        model=EMBEDDED_MODEL if nothing_chosen else None,
        model_roles={"grader": EMBEDDED_MODEL} if nothing_chosen else None,
        epochs=Epochs(DEFAULT_EPOCHS * arguments.answers, "median"),
        headline_metric=HeadlineMetric(scorer="six_dimensions", score="overall", metric="mean"),
        name="compression",
        display_name="compression (no language model)" if offline else "compression",
        version=_version(pairs, spec, arguments),
        metadata=_metadata(spec, offline),
        tags=["no-language-model"] if offline else None,
        viewer=viewer_config(),
    )


def _check(arguments: TaskArguments) -> None:
    for name in ("cycles", "answers"):
        value = getattr(arguments, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise DataError(f"{name}: {value!r} is not a whole number of at least 1")
    for name, allowed in (
        ("criteria", ("by_type", "all")),
        ("grader_context", ("state", "none")),
        ("language", (None, *get_args(Language))),
    ):
        value = getattr(arguments, name)
        # YAML on the command line reads a bare `none` as a string and `null` as None.
        if value not in allowed:
            expected = ", ".join(str(item) for item in allowed if item is not None)
            raise DataError(f"{name}: unknown value {value!r}, expected one of {expected}")


def _spec(arguments: TaskArguments) -> CompressorSpec:
    given = arguments.compressor_args
    if given is not None and not isinstance(given, Mapping):
        raise DataError(
            f"compressor_args: {given!r} is not a mapping; write it as "
            "-T 'compressor_args={tail_tokens: 2000}'"
        )
    merged = dict(given or {})
    for name, value in (
        ("prompt", _prompt_text(arguments.prompt)),
        ("focus_topic", arguments.focus_topic),
    ):
        if value is None:
            continue
        if name in merged:
            raise DataError(f"{name}: given both by itself and in compressor_args")
        merged[name] = str(value)
    return compressor_spec(str(arguments.compressor), merged)


def _prompt_text(path: str | None) -> str | None:
    if path is None:
        return None
    file = _invoked_path(str(path))
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"prompt: {path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"prompt: {path}: not UTF-8 text") from error
    if not text.strip():
        raise DataError(f"prompt: {path}: the file is empty")
    return text


def _probe_types(value: Several | None) -> frozenset[ProbeType] | None:
    if value is None:
        return None
    names = [value] if isinstance(value, str) else [str(item) for item in value]
    known = get_args(ProbeType)
    for name in names:
        if name not in known:
            raise DataError(
                f"probe_types: unknown type {name!r}, expected one of {', '.join(known)}"
            )
    return frozenset(name for name in known if name in names)


def _plan(
    pair: FixtureWithBank,
    cut: CutArgument,
    spec: CompressorSpec,
    types: frozenset[ProbeType] | None,
    arguments: TaskArguments,
    *,
    several_cuts: bool,
) -> list[tuple[str, ProbePlan, Sample]]:
    """Return id, plan and sample of each probe that can be put to a fixture at a cut."""
    fixture = pair.fixture
    point = resolve_cut(fixture, cut)
    probes = [
        probe
        for probe in pair.bank.probes
        if (types is None or probe.type in types) and _fits(probe, point)
    ]
    if not probes:
        raise DataError(
            f"{pair.bank_path}: no probe to put at message {point} of {fixture.name!r}"
            + (f" (probe_types: {', '.join(sorted(types))})" if types else "")
        )
    language: Language = arguments.language or pair.bank.language or fixture.language
    compression = CompressionPlan(
        fixture=fixture,
        tools=declared_tools(fixture),
        cuts=chain(fixture, point, arguments.cycles),
        spec=spec,
        tracked=track(fixture, point, probes),
    )
    digests = {
        "fixture": digest(fixture),
        "bank": digest(pair.bank),
        "rubric": rubric_digest(language),
        "question_preamble": preamble_digest(),
    }
    result = []
    for probe in probes:
        sample_id = f"{fixture.name}/{probe.id}" + (f"@{point}" if several_cuts else "")
        plan = ProbePlan(probe, language, compression, digests)
        result.append((sample_id, plan, _sample(sample_id, fixture, probe, compression.cuts)))
    return result


def _fits(probe: Probe, cut: int) -> bool:
    """Return whether a probe can be answered from what lies before a cut."""
    if probe.cut is not None and probe.cut != cut:
        return False
    evidence = [index for fact in probe.expected_facts for index in fact.evidence]
    return all(index < cut for index in evidence)


def _sample(sample_id: str, fixture: Fixture, probe: Probe, cuts: tuple[int, ...]) -> Sample:
    # The input stays short: a transcript in it would be marked as input and never be compressed.
    return Sample(
        id=sample_id,
        input=probe.question,
        target=[fact.fact for fact in probe.expected_facts],
        metadata={
            "fixture": fixture.name,
            "probe_id": probe.id,
            "probe_type": probe.type,
            "task_type": fixture.task_type,
            "language": fixture.language,
            "length": _length(len(fixture.messages)),
            "cut": cuts[-1],
            "cycles": len(cuts),
        },
    )


def _length(messages: int) -> str:
    return "short" if messages < 50 else "medium" if messages < 150 else "long"


def _round_robin(groups: list[list[Sample]]) -> list[Sample]:
    """Take turns over the states, so that samples that wait for one do not fill all slots."""
    turns = zip_longest(*groups)
    return [sample for sample in joined.from_iterable(turns) if sample is not None]


def _dataset_name(pairs: Sequence[FixtureWithBank]) -> str:
    return ",".join(pair.fixture.name for pair in pairs)


def _version(
    pairs: Sequence[FixtureWithBank], spec: CompressorSpec, arguments: TaskArguments
) -> str:
    languages = {
        arguments.language or pair.bank.language or pair.fixture.language for pair in pairs
    }
    return result_version(
        [
            *(digest(pair.fixture) for pair in pairs),
            *(digest(pair.bank) for pair in pairs),
            *(rubric_digest(language) for language in sorted(languages)),
            preamble_digest(),
            str(spec.described()),
        ]
    )


def _metadata(spec: CompressorSpec, offline: bool) -> dict[str, Any]:
    roles = model_roles()
    grader = roles.get("grader")
    answerer = EMBEDDED_MODEL if str(get_model()) == "none/none" else str(get_model())
    graders = [str(item) for item in (grader if isinstance(grader, list) else [grader]) if item]
    if not graders:
        graders = [answerer]
    compressor = roles.get("compressor")
    if isinstance(compressor, list):
        raise DataError("--model-role compressor: one model, not a list")
    result: dict[str, Any] = {
        "compression_eval": __version__,
        "compressor": spec.described(),
        "models": {
            "answers": answerer,
            "grades": graders,
            "compresses": str(compressor) if compressor else answerer,
        },
        "self_graded": answerer in graders and not offline,
    }
    if offline:
        result["note"] = (
            "The embedded lexical model answered: no language model was involved in answering."
        )
    return result


def _found(fixtures: Several) -> list[str]:
    names = [fixtures] if isinstance(fixtures, str) else [str(item) for item in fixtures]
    return [_found_path(name) or name for name in names]


def _found_path(path: str | None) -> str | None:
    """Return a path or glob as seen from where the user is; a bare name stays as it is."""
    if path is None or not any(mark in str(path) for mark in "/\\*?.") or Path(path).is_absolute():
        return path
    return str(_invoked_path(str(path)))


def _invoked_path(path: str) -> Path:
    """Return a relative path from the folder that Inspect was called in.

    Inspect creates the tasks of a file in that file's own folder, so the current folder is not
    the one that the user meant. What is found first counts: from the shell's folder, from the
    current one, from the one above it.
    """
    candidates = [Path(os.environ["PWD"])] if "PWD" in os.environ else []
    candidates += [Path.cwd(), Path.cwd().parent]
    for folder in candidates:
        if any(folder.glob(path)) if not Path(path).is_absolute() else Path(path).exists():
            return folder / path
    return Path(path)
