"""A sweep's folder: its manifest, its lock, and its current logs.

A killed run leaves a log with the status of a running one. While the folder is locked no other
sweep can be writing it, so a log that a later attempt has continued is set aside.
"""

import json
import os
import re
import socket
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from uuid import uuid4
from zipfile import BadZipFile

import click
from inspect_ai.log import (
    EvalLog,
    EvalSampleSummary,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample_summaries,
)
from inspect_ai.model import GenerateConfig
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from compression_eval._version import __version__
from compression_eval.analysis.logs import reading
from compression_eval.compressors.tokens import token_counter
from compression_eval.compressors.user_supplied.adapting import source_digest
from compression_eval.conversations.stores import Store
from compression_eval.errors import DataError, describe_validation_error
from compression_eval.fixtures.digests import digest, shown
from compression_eval.fixtures.finding_files import is_address, local_path
from compression_eval.fixtures.writing import write_whole
from compression_eval.plans import preamble_digest
from compression_eval.sweeping.arms import Arm, TaskKey, task_key
from compression_eval.sweeping.planning import SweepPlan
from compression_eval.terminal import plain_error

try:
    import fcntl as _fcntl

    fcntl: ModuleType | None = _fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None

MANIFEST = "sweep.json"
FORMAT = 1
SET_ASIDE = "superseded"
_LOCK = ".sweep.lock"
_ID_FILE = ".eval-set-id"

_QUOTED = re.compile("[#?]|%[0-9A-Fa-f]{2}")
"""In a path: what Inspect reads as part of an address."""

_BESIDE_RESULTS = (
    "max_retries",
    "timeout",
    "attempt_timeout",
    "stream_idle_timeout",
    "max_connections",
    "adaptive_connections",
    "batch",
    "cache",
    "cache_prompt",
)
"""Generation options that change how calls are made but not their results."""

_MAY_BE_SECRET = ("extra_headers", "extra_body")
"""Generation options that are written as digests."""

_KINDS = {
    "fixtures": "fixture",
    "banks": "probe bank of",
    "rubrics": "rubric",
    "prompts": "prompt",
    "arms": "arm",
    "roles": "role",
    "settings": "setting",
    "generate": "generation option",
    "code": "code of arm",
    "model_args": "model argument",
}
"""Display names of the manifest's mappings."""

_MAY_GROW = ("arms", "code")


class Manifest(BaseModel):
    """Everything that decides the results in a sweep's folder, so that it holds nothing else."""

    model_config = ConfigDict(extra="forbid")

    format: int = FORMAT
    compression_eval: str
    token_counter: str
    models: list[str]
    epochs: int
    """Fresh compressions per fixture and cut."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The task's arguments that all arms share, except the fixtures."""
    generate: dict[str, Any] = Field(default_factory=dict)
    model_args: dict[str, str] = Field(default_factory=dict)
    """Digest by name, since they may be secret."""
    roles: dict[str, list[str]] = Field(default_factory=dict)
    fixtures: dict[str, str] = Field(default_factory=dict)
    """Digest by name; likewise the following."""
    banks: dict[str, str] = Field(default_factory=dict)
    rubrics: dict[str, str] = Field(default_factory=dict)
    prompts: dict[str, str] = Field(default_factory=dict)
    arms: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Strategy and effective arguments by label; long texts as digests."""
    code: dict[str, str] = Field(default_factory=dict)
    """Digest of a user's own compressor by label."""

    @field_validator("generate")
    @classmethod
    def _digested(cls, value: dict[str, Any]) -> dict[str, Any]:
        # Manifests of earlier versions hold them as they are.
        return {
            name: _digest(each) if name in _MAY_BE_SECRET and isinstance(each, dict) else each
            for name, each in value.items()
        }

    def changes_since(self, earlier: "Manifest") -> list[str]:
        """Describe the changes since an earlier manifest, except added arms, models and epochs."""
        lines = [
            f"{name.replace('_', ' ')}: {before}, now {now}"
            for name in ("compression_eval", "token_counter")
            if (before := getattr(earlier, name)) != (now := getattr(self, name))
        ]
        lines.extend(f"model {name}: removed" for name in earlier.models if name not in self.models)
        if self.epochs < earlier.epochs:
            lines.append(f"epochs: {earlier.epochs}, now only {self.epochs}")
        for name, kind in _KINDS.items():
            before, now = getattr(earlier, name), getattr(self, name)
            changes = _changes(before, now, may_grow=name in _MAY_GROW)
            lines.extend(f"{kind} {change}" for change in changes)
        return lines


def _changes(before: Mapping[str, Any], now: Mapping[str, Any], *, may_grow: bool) -> Iterator[str]:
    """Yield the differences of two mappings: single values, and entries of nested mappings."""
    for name, value in before.items():
        if name not in now:
            yield f"{name}: removed"
        elif isinstance(value, dict) and isinstance(now[name], dict):
            yield from (f"{name}: {each}" for each in _changes(value, now[name], may_grow=False))
        elif value != now[name]:
            yield f"{name}: {value}, now {now[name]}"
    if not may_grow:
        yield from (f"{name}: added" for name in now if name not in before)


def manifest_of(plan: SweepPlan) -> Manifest:
    """Return the manifest of a plan."""
    settings = plan.settings
    probes = plan.dataset(plan.widest).plans.values()
    names = [each.compression.fixture.name for each in probes]
    shared = settings.task_arguments() | ({"parts": plan.parts} if plan.parts > 1 else {})
    generate = GenerateConfig.model_validate(settings.generate)
    prompts = [
        entry
        for entry in files("compression_eval.compressors.prompts").iterdir()
        if entry.name.endswith(".md")
    ]
    return Manifest(
        compression_eval=__version__,
        token_counter=token_counter().name,
        models=list(settings.models),
        epochs=settings.epochs,
        settings=json.loads(
            json.dumps({k: v for k, v in shared.items() if k not in ("fixtures", "probes")})
        ),
        generate=generate.model_dump(mode="json", exclude_none=True, exclude=set(_BESIDE_RESULTS)),
        model_args={name: _digest(value) for name, value in settings.model_args.items()},
        roles={role: list(names) for role, names in settings.roles.items()},
        fixtures={n: shown(p.digests["fixture"]) for n, p in zip(names, probes, strict=True)},
        banks={n: shown(p.digests["bank"]) for n, p in zip(names, probes, strict=True)},
        rubrics={each.language: shown(each.digests["rubric"]) for each in probes},
        prompts={
            **{
                entry.name: shown(digest(entry.read_bytes()))
                for entry in sorted(prompts, key=lambda entry: entry.name)
            },
            "question.md": shown(preamble_digest()),
        },
        arms={arm.label: _described(arm) for arm in plan.arms},
        code={arm.label: shown(code) for arm in plan.arms if (code := source_digest(arm.spec))},
    )


def _digest(value: Any) -> str:
    return shown(digest(json.dumps(value, sort_keys=True, default=str)))


def _described(arm: Arm) -> dict[str, Any]:
    described = arm.spec.described()
    arguments = {
        name: shown(digest(value)) if isinstance(value, str) and len(value) > 60 else value
        for name, value in described["arguments"].items()
    }
    return {"compressor": described["name"], **arguments}


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder; None if it has none."""
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {' '.join(str(error).split())[:200]}") from error
    if isinstance(content, dict) and content.get("format") != FORMAT:
        raise DataError(f"{path}: format: is {content.get('format')!r}, expected {FORMAT}")
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        raise DataError(describe_validation_error(path, error)) from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder atomically."""
    content = json.dumps(manifest.model_dump(mode="json"), indent=1, ensure_ascii=True) + "\n"
    if is_address(str(folder)):
        (folder / MANIFEST).write_text(content, encoding="utf-8")  # stores write files as a whole
    else:
        write_whole(folder / MANIFEST, content)


def refuse_other_work(plan: SweepPlan, folder: Path, way_out: str = "") -> None:
    """Raise if a folder was not made from a plan, or Inspect could not read its logs."""
    place = str(folder) if is_address(str(folder)) else str(folder.absolute())
    if match := _QUOTED.search(place):
        raise DataError(
            f"log_dir: {place}: Inspect cannot read logs in a folder with {match[0]!r} in its path"
        )
    earlier = read_manifest(folder)
    way_out = way_out or (
        f"Put this into a fresh folder: --fresh takes {fresh_folder(folder)}, or name one with "
        "--log-dir."
    )
    if earlier is None:
        if folder_logs(folder):
            raise DataError(f"{folder}: holds logs that no sweep made. {way_out}")
    elif changes := manifest_of(plan).changes_since(earlier):
        listed = "".join(f"\n  {change}" for change in changes)
        raise DataError(
            f"{folder}: this folder was made from something else, and its results cannot be "
            f"mixed with new ones. Changed since:{listed}\n{way_out}"
        )


def fresh_folder(folder: Path) -> Path:
    """Return a folder beside one that does not exist yet: ``NAME-2`` and so on."""
    number = 2
    while (candidate := folder.with_name(f"{folder.name}-{number}")).exists():
        number += 1
    return candidate


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder for one sweep; a lock on this machine ends with the process that holds it.

    Raises:
        DataError: Another sweep holds it, or nothing can be written there.
    """
    if is_address(str(folder)):
        with _locked_store(folder):
            yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / _LOCK).open("w", encoding="utf-8")
    except OSError as error:
        raise DataError(f"{folder}: cannot be written to ({error.strerror})") from error
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise DataError(f"{folder}: another sweep is running in this folder") from error
        yield


@contextmanager
def _locked_store(folder: Path) -> Iterator[None]:
    """Write a file that nobody else can write then: stores put one only if it is not there."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    # In containers host, process and second can be alike.
    holder = f"{socket.gethostname()}, process {os.getpid()}, since {since}, {uuid4().hex}"
    store, lock = Store(str(folder)), folder / _LOCK
    if not store.create(_LOCK, holder.encode()):
        other = (store.read(_LOCK) or b"").decode(errors="replace")
        if other != holder:  # one that was tried again finds itself
            raise DataError(
                f"{folder}: another sweep is running in this folder ({other}); if it was "
                f"killed, remove {lock}"
            )
    try:
        yield
    finally:
        try:
            lock.unlink(missing_ok=True)
        except Exception as error:  # each store raises its own; what came out matters more
            told = f"{lock}: could not be removed ({plain_error(error)}); remove it yourself"
            click.echo(told, err=True)


@dataclass(frozen=True)
class FolderLog:
    """A log in a sweep's folder."""

    path: Path
    modified: float
    header: EvalLog

    def summaries(self) -> list[EvalSampleSummary]:
        """Return the summaries of its samples.

        Raises:
            DataError: They cannot be read.
        """
        with reading(str(self.path)):
            return read_eval_log_sample_summaries(str(self.path))


def folder_logs(folder: Path) -> list[FolderLog]:
    """Return the logs in a folder, oldest first, without half-written ones.

    Raises:
        DataError: A log cannot be read for another reason.
    """
    logs = [log for _, log in _listed(folder) if log is not None]
    return sorted(logs, key=lambda log: log.modified)


def finished_samples(folder: Path) -> Counter[TaskKey]:
    """Return the number of samples without an error in a folder's current logs, by task."""
    latest = {log.header.eval.task_id: log for log in folder_logs(folder)}
    return Counter(
        task_key(log.header.eval)
        for log in latest.values()
        for summary in log.summaries()
        if summary.error is None and summary.completed
    )


def repair(folder: Path) -> None:
    """Set aside half-written files of a killed run, on which Inspect would fail."""
    for path, log in _listed(folder):
        if log is None:
            _set_aside(path)
    identifier = folder / _ID_FILE
    if identifier.is_file() and not identifier.read_text(encoding="utf-8").strip():
        identifier.unlink()


def settle(folder: Path) -> int:
    """Set aside every log that a later attempt at the same task has completed."""
    by_task: dict[str, list[FolderLog]] = defaultdict(list)
    for log in folder_logs(folder):
        by_task[log.header.eval.task_id].append(log)
    old = [
        log for logs in by_task.values() if logs[-1].header.status == "success" for log in logs[:-1]
    ]
    for log in old:
        _set_aside(log.path)
    return len(old)


def log_folder(text: str) -> Path:
    """Return a folder for logs; one at an address behaves as one on this machine."""
    text = local_path(text)
    if not is_address(text):
        return Path(text)
    from upath import UPath  # Inspect's own way to such folders

    # Other workers write meanwhile, which a kept listing would hide.
    return cast(Path, UPath(text, use_listings_cache=False))


def _listed(folder: Path) -> Iterator[tuple[Path, FolderLog | None]]:
    if not folder.is_dir():
        return
    with reading(str(folder), "cannot be listed ({})"):
        found = list_eval_logs(str(folder))
    for info in found:
        path, log = log_folder(info.name), None
        # What the system or a store refuses says nothing about the log, which may be whole.
        with reading(str(path)), suppress(ValueError, KeyError, EOFError, BadZipFile):
            log = FolderLog(path, info.mtime or 0.0, read_eval_log(str(path), header_only=True))
        yield path, log


def _set_aside(path: Path) -> None:
    target = path.parent / SET_ASIDE
    target.mkdir(exist_ok=True)
    # Without its suffix nothing takes it for a log, and it can still be restored.
    kept = target / f"{path.name}.old"
    _ = path.rename(kept) if is_address(str(path)) else path.replace(kept)
