"""The arguments of the task, as a command line gives them, and their checks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from compression_eval.compressors.registry import COMPRESSORS, compressor_spec
from compression_eval.compressors.spec import CompressorSpec
from compression_eval.compressors.validity import DEFAULT_MIN_REMOVED
from compression_eval.fixtures.addresses import is_address
from compression_eval.fixtures.banks import ProbeType
from compression_eval.fixtures.cuts import CutArgument
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.errors import DataError, did_you_mean, one_line
from compression_eval.fixtures.finding_files import DEFAULT_FIXTURES
from compression_eval.fixtures.invoked_paths import invoked_path
from compression_eval.fixtures.loading import FixtureSource, find_sources, shard
from compression_eval.fixtures.models import Language

MAX_LABEL_PART = 40
"""Characters of one setting in the name of an arm."""

Several = str | Sequence[str]


@dataclass(frozen=True)
class TaskArguments:
    """The arguments of the task; `compression_eval.tasks.compression` documents them."""

    fixtures: Several = DEFAULT_FIXTURES
    probes: str | None = None
    probe_types: Several | None = None
    shard: str | None = None
    cut: CutArgument | Sequence[CutArgument] = "auto"
    compressor: str = "anchored"
    compressor_args: Mapping[str, Any] | None = None
    prompt: str | None = None
    focus_topic: str | None = None
    cycles: int = 1
    answers: int = 1
    min_removed: float = DEFAULT_MIN_REMOVED
    max_failed: float = 1.0
    criteria: Literal["by_type", "all"] = "by_type"
    grader_context: Literal["state", "none"] = "state"
    state_facts: Literal["reader", "match"] | None = None
    language: Language | None = None
    anchors: int = 0


@dataclass(frozen=True)
class CheckedArguments:
    """What the arguments mean, once they are checked and the fixtures are found."""

    spec: CompressorSpec
    sources: list[FixtureSource]
    sharded: bool
    """Whether more fixtures stand in other shards."""
    cuts: list[CutArgument]
    types: frozenset[ProbeType] | None
    arm: list[str]
    """What tells this arm from others: the compressor, then each setting of it, for people."""


def checked(arguments: TaskArguments) -> CheckedArguments:
    """Check the arguments and find the fixtures they name.

    Raises:
        DataError: An argument or a file is not what it must be; the text names it.
    """
    _check(arguments)
    spec = _spec(arguments)
    sources = find_sources(_found(arguments.fixtures), _found_path(arguments.probes))
    return CheckedArguments(
        spec=spec,
        sources=sources if arguments.shard is None else shard(sources, arguments.shard),
        sharded=arguments.shard is not None and len(sources) > 1,
        cuts=_cuts(arguments.cut),
        types=_probe_types(arguments.probe_types),
        arm=_arm(arguments, spec),
    )


def _check(arguments: TaskArguments) -> None:
    _check_types(arguments)
    for name, least in (("cycles", 1), ("answers", 1), ("anchors", 0)):
        value = getattr(arguments, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise DataError(f"{name}: {value!r} is not a whole number of at least {least}")
    share = arguments.min_removed
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
        raise DataError(f"min_removed: {share!r} is not a share of at least 0 and less than 1")
    share = arguments.max_failed
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise DataError(f"max_failed: {share!r} is not a share between 0 and 1")
    for name, allowed in (
        ("criteria", ("by_type", "all")),
        ("grader_context", ("state", "none")),
        ("state_facts", (None, "reader", "match")),
        ("language", (None, *get_args(Language))),
    ):
        value = getattr(arguments, name)
        # YAML on the command line reads a bare `none` as a string and `null` as None.
        if value not in allowed:
            expected = [str(item) for item in allowed if item is not None]
            raise DataError(
                f"{name}: unknown value {value!r}, expected one of {', '.join(expected)}"
                + did_you_mean(str(value), expected)
            )


def _cuts(given: CutArgument | Sequence[CutArgument]) -> list[CutArgument]:
    """Return the cuts; of ``0.6,0.8`` Inspect's command line makes two texts, and a file one."""
    items = [given] if isinstance(given, int | float | str) else given
    found: list[CutArgument] = []
    for item in items:
        if not isinstance(item, str):
            found.append(item)
            continue
        for text in map(str.strip, item.split(",")):
            try:
                found.append(int(text) if text.isdecimal() else float(text))
            except ValueError:
                found.append(text)  # a name of a cut, or what `resolve_cut` refuses
    return found


def _check_types(arguments: TaskArguments) -> None:
    """Refuse what YAML made of an argument where a text, a path or a cut is meant."""
    for name in ("fixtures", "probe_types", "probes", "prompt"):
        value = getattr(arguments, name)
        several = name in ("fixtures", "probe_types")
        items = value if several and isinstance(value, list | tuple) else [value]
        if value is not None and not all(isinstance(item, str | Path) for item in items):
            expected = "a text or a list of texts" if several else "a path"
            raise DataError(f"{name}: {value!r} is not {expected}")
    if arguments.shard is not None and not isinstance(arguments.shard, str):
        raise DataError(f"shard: {arguments.shard!r} is not a part; expected I/N, as 2/8")
    cuts = arguments.cut if isinstance(arguments.cut, list | tuple) else [arguments.cut]
    if not cuts or not all(isinstance(cut, int | float | str) for cut in cuts):
        raise DataError(
            f"cut: {arguments.cut!r} is not a cut or a list of cuts; each is a number of messages, "
            "a share between 0 and 1, 'auto', 'recorded' or 'end'"
        )


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


def _arm(arguments: TaskArguments, spec: CompressorSpec) -> list[str]:
    """Return the compressor and what is set otherwise than by default, budgets first."""
    name = spec.name if "@" not in spec.name else spec.name.replace("\\", "/").rpartition("/")[2]
    given = spec.arguments.model_dump(mode="json", exclude_defaults=True)
    if "prompt" in given:
        given["prompt"] = Path(arguments.prompt).name if arguments.prompt else "own"
    if arguments.cycles > 1:
        given["cycles"] = arguments.cycles
    numbers_first = sorted(given.items(), key=lambda item: not isinstance(item[1], int | float))
    return [
        one_line(part, MAX_LABEL_PART)
        for part in (name, *(f"{key}={_shown(spec, key, value)}" for key, value in numbers_first))
    ]


def _shown(spec: CompressorSpec, key: str, value: Any) -> str:
    """Return a setting as a name or tag may show it: file listings and terminals hold those.

    What a user gives to code of theirs may be a path or a key, so only numbers of it are shown.
    """
    if isinstance(value, bool | int | float) or value is None:
        return json.dumps(value)
    if key == "command" and isinstance(value, list) and value:
        return Path(str(value[0])).name
    if spec.name in COMPRESSORS and isinstance(value, str):
        return value.replace("\\", "/").rpartition("/")[2]
    return f"#{digest(json.dumps(value, sort_keys=True))[:6]}"


def _prompt_text(path: str | None) -> str | None:
    if path is None:
        return None
    file = invoked_path(str(path))
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
                + did_you_mean(name, known)
            )
    return frozenset(name for name in known if name in names)


def _found(fixtures: Several) -> list[str]:
    names = [fixtures] if isinstance(fixtures, str) else [str(item) for item in fixtures]
    return [_found_path(name) or name for name in names]


def _found_path(path: str | None) -> str | None:
    """Return a path or glob as seen from where the user is; a bare name stays as it is."""
    if path is None or not any(mark in str(path) for mark in "/\\*?.") or Path(path).is_absolute():
        return path
    if is_address(str(path)):
        return path
    return str(invoked_path(str(path)))
