"""What a sweep's folder was made from, so that nothing else is taken for work already done."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from inspect_ai.model import GenerateConfig
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval._version import __version__
from compression_eval.compressors.tokens import token_counter
from compression_eval.compressors.yours import source_digest
from compression_eval.fixtures.digests import digest, shown
from compression_eval.fixtures.errors import DataError, describe_validation_error
from compression_eval.fixtures.writing import write_whole
from compression_eval.solver import preamble_digest
from compression_eval.sweeping.arms import Arm, task_arguments
from compression_eval.sweeping.planning import SweepPlan

MANIFEST = "sweep.json"
FORMAT = 1

_PROMPTS = "compression_eval.compressors.prompts"
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
"""Generation options that change how calls are made and not what comes back."""

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
}
_MAY_GROW = ("arms", "code")


class Manifest(BaseModel):
    """All that decides the results in a sweep's folder."""

    model_config = ConfigDict(extra="forbid")

    format: int = FORMAT
    compression_eval: str
    token_counter: str
    models: list[str]
    epochs: int
    """Fresh compressions per fixture and cut."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The task's arguments that all arms share, but for the fixtures."""
    generate: dict[str, Any] = Field(default_factory=dict)
    model_args: dict[str, str] = Field(default_factory=dict)
    """Digest by name: they may hold what must not lie about."""
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

    def changes_since(self, earlier: "Manifest") -> list[str]:
        """Return what is no longer as it was, in words; more arms, models and epochs are."""
        found = [
            f"{name.replace('_', ' ')}: {before}, now {now}"
            for name in ("compression_eval", "token_counter")
            if (before := getattr(earlier, name)) != (now := getattr(self, name))
        ]
        found.extend(f"model {name}: removed" for name in earlier.models if name not in self.models)
        if self.epochs < earlier.epochs:
            found.append(f"epochs: {earlier.epochs}, now only {self.epochs}")
        for name, kind in {**_KINDS, "model_args": "model argument"}.items():
            found.extend(
                f"{kind} {change}"
                for change in _changes(
                    getattr(earlier, name), getattr(self, name), may_grow=name in _MAY_GROW
                )
            )
        return found


def manifest_of(plan: SweepPlan) -> Manifest:
    """Return the manifest of a plan.

    Raises:
        DataError: A fixture or bank is not what it must be.
    """
    settings = plan.settings
    fixtures: dict[str, str] = {}
    banks: dict[str, str] = {}
    rubrics: dict[str, str] = {}
    for probe_plan in plan.dataset(plan.widest).plans.values():
        name = probe_plan.compression.fixture.name
        fixtures[name] = shown(probe_plan.digests["fixture"])
        banks[name] = shown(probe_plan.digests["bank"])
        rubrics[probe_plan.language] = shown(probe_plan.digests["rubric"])
    shared = {k: v for k, v in task_arguments(settings).items() if k not in ("fixtures", "probes")}
    generate = GenerateConfig.model_validate(settings.generate).model_dump(
        mode="json", exclude_none=True, exclude=set(_BESIDE_RESULTS)
    )
    return Manifest(
        compression_eval=__version__,
        token_counter=token_counter().name,
        models=list(settings.models),
        epochs=settings.epochs,
        settings=json.loads(json.dumps(shared)),
        generate=generate,
        model_args={
            name: shown(digest(json.dumps(value, sort_keys=True, default=str)))
            for name, value in settings.model_args.items()
        },
        roles={role: list(names) for role, names in settings.roles.items()},
        fixtures=fixtures,
        banks=banks,
        rubrics=rubrics,
        prompts=_prompts(),
        arms={arm.label: _described(arm) for arm in plan.arms},
        code={arm.label: shown(code) for arm in plan.arms if (code := source_digest(arm.spec))},
    )


def read_manifest(folder: Path) -> Manifest | None:
    """Return what a folder was made from; None if it holds no manifest.

    Raises:
        DataError: It cannot be read, or another version wrote it.
    """
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
    """Write what a folder is made from; a reader sees all of it or what was there before."""
    content = manifest.model_dump(mode="json")
    write_whole(folder / MANIFEST, json.dumps(content, indent=1, ensure_ascii=True) + "\n")


def _prompts() -> dict[str, str]:
    texts = {
        entry.name: shown(hashlib.sha256(entry.read_bytes()).hexdigest())
        for entry in sorted(files(_PROMPTS).iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".md")
    }
    return {**texts, "question.md": shown(preamble_digest())}


def _described(arm: Arm) -> dict[str, Any]:
    described = arm.spec.described()
    arguments = {
        name: shown(digest(value)) if isinstance(value, str) and len(value) > 60 else value
        for name, value in described["arguments"].items()
    }
    return {"compressor": described["name"], **arguments}


def _changes(before: Mapping[str, Any], now: Mapping[str, Any], *, may_grow: bool) -> Iterator[str]:
    """Yield how two mappings differ: single values, and of a mapping in them the entries."""
    for name, value in before.items():
        if name not in now:
            yield f"{name}: removed"
        elif isinstance(value, dict) and isinstance(now[name], dict):
            yield from (f"{name}: {each}" for each in _changes(value, now[name], may_grow=False))
        elif value != now[name]:
            yield f"{name}: {value}, now {now[name]}"
    if not may_grow:
        yield from (f"{name}: added" for name in now if name not in before)
