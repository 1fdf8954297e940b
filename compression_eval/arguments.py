"""The arguments of the task, and what they mean once they are checked.

`ArgumentFields` is the one place where they are described. A new one is a field here, a parameter
of `task.compression` and of ``tasks/compression.py`` (a test compares them), and what it does in
`task.py`; sweeps and their options follow from the field.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from compression_eval.compressors.registry import COMPRESSORS, compressor_spec
from compression_eval.compressors.strategy import CompressorSpec
from compression_eval.compressors.validity import DEFAULT_MIN_REMOVED
from compression_eval.errors import DataError, did_you_mean, one_line, unknown_arguments
from compression_eval.fetching.answering import FetchLimits
from compression_eval.fixtures.banks import ProbeType
from compression_eval.fixtures.cuts import CutArgument
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.finding_files import invoked_path, is_address
from compression_eval.fixtures.loading import FixtureSource, find_sources, shard
from compression_eval.fixtures.models import Language

MAX_LABEL_PART = 40
"""Characters of one setting in the name of an arm."""


def _checked_by(holds: Callable[[Any], bool], expected: str) -> PlainValidator:
    """Return a validator that takes a value as it is, or says what was expected.

    pydantic's own would turn what YAML made of an argument (``true``, ``1.0``) into numbers.
    """

    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError(f"{value!r} is not {expected}")
        return value

    return PlainValidator(check)


def _whole(least: int) -> PlainValidator:
    return _checked_by(
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
        f"a whole number of at least {least}",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str | Path)


def _are_cuts(value: Any) -> bool:
    cuts = value if isinstance(value, list | tuple) else [value]
    return bool(cuts) and all(isinstance(cut, int | float | str) for cut in cuts)


def _are_limits(value: Any) -> bool:
    try:
        FetchLimits.model_validate(value)
    except ValidationError:
        return False
    return True


Texts = Annotated[
    str | Sequence[str] | None,
    _checked_by(
        lambda value: all(map(_is_text, value if isinstance(value, list | tuple) else [value])),
        "a text or a list of texts",
    ),
]
FilePath = Annotated[str | None, _checked_by(_is_text, "a path")]


NOT_OF_CONTROLS = object()
"""Marks an argument that the controls of an arm do not share with it."""


class ArgumentFields(BaseModel):
    """The task's arguments with their checks."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    fixtures: Texts = None
    """Names of shipped fixtures, paths, globs, Parquet files, addresses (``s3://…``,
    ``hf:ORG/NAME``), ``core`` or ``all``; a list or one of them. The four default ones if not
    given."""
    probes: FilePath = None
    """A probe bank (or a folder of banks) that is not next to the fixture."""
    probe_types: Texts = None
    """Only these types: recall, artifact, continuation, decision."""
    shard: Annotated[
        str | None,
        _checked_by(
            lambda value: value is None or isinstance(value, str), "a part; expected I/N, as 2/8"
        ),
    ] = None
    """``I/N`` takes every Nth fixture by name, from the Ith on."""
    cut: Annotated[
        CutArgument | Sequence[CutArgument],
        _checked_by(
            _are_cuts,
            "a cut or a list of cuts; each is a number of messages, a share between 0 and 1, "
            "'auto', 'recorded' or 'end'",
        ),
    ] = "auto"
    """Where history ends: ``auto`` is the cut that each probe names, the end if it names none;
    ``recorded`` every place where the recorded agent compacted; or a number of messages, a share
    of the conversation (0 to 1), or ``end``; a list evaluates each."""
    compressor: Annotated[str, PlainValidator(str), NOT_OF_CONTROLS] = "anchored"
    """Name of the strategy: anchored, regenerative, summary, edit, trim, or a control: full, none,
    tail."""
    compressor_args: Annotated[
        Mapping[str, Any] | None,
        _checked_by(
            lambda value: value is None or isinstance(value, Mapping),
            "a mapping; write it as -T 'compressor_args={tail_tokens: 2000}'",
        ),
        NOT_OF_CONTROLS,
    ] = None
    """Its arguments, budgets among them."""
    prompt: Annotated[FilePath, NOT_OF_CONTROLS] = None
    """A file whose text replaces the instructions of a summarising strategy."""
    focus_topic: Annotated[
        str | None,
        PlainValidator(lambda value: None if value is None else str(value)),
        NOT_OF_CONTROLS,
    ] = None
    """A topic that a summarising strategy gives the most room."""
    cycles: Annotated[int, _whole(1), NOT_OF_CONTROLS] = 1
    """How many compressions the conversation goes through, one after another."""
    answers: Annotated[int, _whole(1), NOT_OF_CONTROLS] = 1
    """How many answers are taken from each state."""
    min_removed: Annotated[
        float,
        _checked_by(
            lambda value: _is_number(value) and 0 <= value < 1,
            "a share of at least 0 and less than 1",
        ),
        NOT_OF_CONTROLS,
    ] = DEFAULT_MIN_REMOVED
    """Share of the tokens (0 to 1, the system prompt not counted) that each compression must
    remove; one that removes less has failed."""
    max_failed: Annotated[
        float,
        _checked_by(lambda value: _is_number(value) and 0 <= value <= 1, "a share between 0 and 1"),
        NOT_OF_CONTROLS,
    ] = 1.0
    """Share of the samples (0 to 1) that may stay without a grade, because a compression, an
    answer or a grading failed; more make the run an error, and so does a run without a single
    grade."""
    criteria: Literal["by_type", "all"] = "by_type"
    """``by_type`` grades the criteria that fit a probe's type, ``all`` every one."""
    grader_context: Literal["state", "none"] = "state"
    """``state`` shows the grader the compressed state, ``none`` does not."""
    state_facts: Annotated[Literal["reader", "match"] | None, NOT_OF_CONTROLS] = None
    """``reader`` has the grader say which facts each state contains, in one call per state;
    ``match`` looks facts up only. If not given, ``reader`` where the grader is a language
    model."""
    language: Language | None = None
    """Language of the rubric: en, zh or ja; that of each fixture if not given."""
    refetch: Annotated[
        bool | Mapping[str, int],
        _checked_by(
            lambda value: isinstance(value, bool) or _are_limits(value),
            "true, false, or limits as {calls: 8, tokens: 20000}, each a whole number of at "
            "least 1",
        ),
        NOT_OF_CONTROLS,
    ] = False
    """Whether the model then answers once more with tools that look at the history and its files
    before the cut; or the limits, as ``{calls: 8, tokens: 20000}``."""

    @field_validator("criteria", "grader_context", "state_facts", "language", mode="before")
    @classmethod
    def _one_of(cls, value: Any, info: ValidationInfo) -> Any:
        kind = cls.model_fields[str(info.field_name)].annotation
        expected = choices(kind)
        # YAML on the command line reads a bare `none` as a string and `null` as None.
        if value not in expected and not (value is None and NoneType in get_args(kind)):
            raise ValueError(
                f"unknown value {value!r}{did_you_mean(str(value), expected)} "
                f"(expected one of {', '.join(expected)})"
            )
        return value

    @property
    def fetch_limits(self) -> FetchLimits | None:
        """How much may be fetched again; None for nothing."""
        if isinstance(self.refetch, bool):
            return FetchLimits() if self.refetch else None
        return FetchLimits(**self.refetch)


class TaskArguments(ArgumentFields):
    """The arguments of the task.

    Raises:
        DataError: One is unknown or not what it must be; the text names it.
    """

    def __init__(self, **given: Any) -> None:
        if error := unknown_arguments(given, type(self).model_fields):
            raise error
        try:
            super().__init__(**given)
        except ValidationError as invalid:
            first = invalid.errors(include_url=False)[0]
            problem = str(first["msg"]).removeprefix("Value error, ")
            raise DataError(f"{first['loc'][0]}: {problem}") from invalid


def choices(kind: Any) -> list[str]:
    """Return the texts that a type of literals allows; none if it is another type."""
    if isinstance(kind, str):
        return [kind]
    return [text for part in get_args(kind) for text in choices(part)]


@dataclass(frozen=True)
class CheckedArguments:
    """What the arguments mean, once the fixtures are found."""

    given: TaskArguments
    spec: CompressorSpec
    sources: list[FixtureSource]
    sharded: bool
    """Whether more fixtures are in other shards."""
    cuts: list[CutArgument]
    types: frozenset[ProbeType] | None
    arm: list[str]
    """What tells this arm from others: the compressor, then each setting of it, for people."""


def checked(arguments: TaskArguments) -> CheckedArguments:
    """Find what the arguments name.

    Raises:
        DataError: There is no such thing, or a file is not what it must be; the text names it.
    """
    spec = _spec(arguments)
    named = arguments.fixtures
    fixtures = [named] if isinstance(named, str | Path) else named
    sources = find_sources(
        None if fixtures is None else [_found_path(str(name)) for name in fixtures],
        None if arguments.probes is None else _found_path(str(arguments.probes)),
    )
    return CheckedArguments(
        given=arguments,
        spec=spec,
        sources=sources if arguments.shard is None else shard(sources, arguments.shard),
        sharded=arguments.shard is not None and len(sources) > 1,
        cuts=_cuts(arguments.cut),
        types=_probe_types(arguments.probe_types),
        arm=_arm(arguments, spec),
    )


def _spec(arguments: TaskArguments) -> CompressorSpec:
    merged = dict(arguments.compressor_args or {})
    beside = {"prompt": _prompt_text(arguments.prompt), "focus_topic": arguments.focus_topic}
    for name, value in beside.items():
        if value is not None and name in merged:
            raise DataError(f"{name}: given both by itself and in compressor_args")
    merged |= {name: value for name, value in beside.items() if value is not None}
    return compressor_spec(arguments.compressor, merged)


def _prompt_text(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        text = invoked_path(str(path)).read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"prompt: {path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"prompt: {path}: not UTF-8 text") from error
    if not text.strip():
        raise DataError(f"prompt: {path}: the file is empty")
    return text


def _found_path(path: str) -> str:
    """Return a path or glob as seen from where the user is; a bare name stays as it is."""
    bare = not any(mark in path for mark in "/\\*?.")
    return path if bare or is_address(path) else str(invoked_path(path))


def _cuts(value: CutArgument | Sequence[CutArgument]) -> list[CutArgument]:
    """Return the cuts; of ``0.6,0.8`` Inspect's command line makes two texts, and a file one."""
    items = [value] if isinstance(value, int | float | str) else value
    cuts: list[CutArgument] = []
    for item in items:
        if not isinstance(item, str):
            cuts.append(item)
            continue
        for text in map(str.strip, item.split(",")):
            try:
                cuts.append(int(text) if text.isdecimal() else float(text))
            except ValueError:
                cuts.append(text)  # a name of a cut, or what `resolve_cut` refuses
    return cuts


def _probe_types(value: str | Sequence[str] | None) -> frozenset[ProbeType] | None:
    if value is None:
        return None
    names = [value] if isinstance(value, str) else [str(item) for item in value]
    known = get_args(ProbeType)
    for name in names:
        if name not in known:
            raise DataError(
                f"probe_types: unknown type {name!r}{did_you_mean(name, known)} "
                f"(expected one of {', '.join(known)})"
            )
    return frozenset(name for name in known if name in names)


def _arm(arguments: TaskArguments, spec: CompressorSpec) -> list[str]:
    """Return the compressor and what is set otherwise than by default, budgets first."""
    name = spec.name if "@" not in spec.name else _file_name(spec.name)
    settings = spec.arguments.model_dump(mode="json", exclude_defaults=True)
    if "prompt" in settings:
        settings["prompt"] = Path(arguments.prompt).name if arguments.prompt else "own"
    if arguments.cycles > 1:
        settings["cycles"] = arguments.cycles
    if limits := arguments.fetch_limits:
        settings["refetch"] = limits.calls
    numbers_first = sorted(settings.items(), key=lambda item: not isinstance(item[1], int | float))
    return [
        one_line(part, MAX_LABEL_PART)
        for part in (name, *(f"{key}={_shown(spec, key, value)}" for key, value in numbers_first))
    ]


def _shown(spec: CompressorSpec, key: str, value: Any) -> str:
    """Return a setting as a name or tag may show it: file listings and terminals contain those.

    What a user gives to code of theirs may be a path or a key, so only numbers of it are shown.
    """
    if isinstance(value, bool | int | float) or value is None:
        return json.dumps(value)
    if key == "command" and isinstance(value, list) and value:
        return Path(str(value[0])).name
    if spec.name in COMPRESSORS and isinstance(value, str):
        return _file_name(value)
    return f"#{digest(json.dumps(value, sort_keys=True))[:6]}"


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
