"""What a sweep is to run, as its YAML file or the command line gives it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from inspect_ai.model import GenerateConfig
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from compression_eval.compressors.validity import DEFAULT_MIN_REMOVED
from compression_eval.fixtures.errors import DataError, describe_validation_error
from compression_eval.fixtures.finding_files import DEFAULT_FIXTURES
from compression_eval.fixtures.models import Language

ROLES = ("grader", "compressor")
"""Roles that a sweep can bind; the model under test has none."""

_LARGEST = 1_000_000
"""Bytes of a YAML file; a longer one is something else."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ArmSettings(_Model):
    """One arm as written out in a YAML file."""

    compressor: str = Field(min_length=1)
    args: dict[str, Any] = Field(default_factory=dict)
    prompt: str | None = None
    """A file whose text replaces the instructions of a summarising strategy."""
    focus_topic: str | None = None


class SweepSettings(_Model):
    """Arms, models, and what all of them share; names are those of the task's arguments."""

    arms: list[str | ArmSettings] = Field(min_length=1)
    models: list[str] = Field(default_factory=list)
    """Models under test; Inspect's own choice, or the embedded model, if there are none."""
    roles: dict[Literal["grader", "compressor"], list[str]] = Field(default_factory=dict)
    controls: bool = True
    budgets: list[int] = Field(default_factory=list)
    """Values of ``target_tokens``; each arm that takes it is run with each."""
    epochs: int = Field(default=3, ge=1)
    """Fresh compressions per fixture and cut."""
    answers: int = Field(default=1, ge=1)
    """Answers from each of them."""
    fixtures: list[str] = Field(default_factory=lambda: list(DEFAULT_FIXTURES), min_length=1)
    probes: str | None = None
    probe_types: list[str] | None = None
    shard: str | None = None
    cut: int | float | str | list[int | float | str] = "auto"
    cycles: int = Field(default=1, ge=1)
    min_removed: float = DEFAULT_MIN_REMOVED
    max_failed: float = Field(default=1.0, ge=0, le=1)
    """Share of an arm's samples that may stay without a grade; all of them never may."""
    criteria: Literal["by_type", "all"] = "by_type"
    grader_context: Literal["state", "none"] = "state"
    state_facts: Literal["reader", "match"] | None = None
    language: Language | None = None
    anchors: int = Field(default=0, ge=0)
    """Answers of known worth that each task has graded too."""
    generate: dict[str, Any] = Field(default_factory=dict)
    """Generation options by Inspect's names (``temperature``, ``max_connections`` …)."""
    model_args: dict[str, Any] = Field(default_factory=dict)
    model_base_url: str | None = None
    log_dir: str | None = None

    @field_validator("arms", "models", "fixtures", "probe_types", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return [part.strip() for part in value.split(",")] if isinstance(value, str) else value

    @field_validator("roles", mode="before")
    @classmethod
    def _one_model_or_several(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {
            role: [name.strip() for name in names.split(",")] if isinstance(names, str) else names
            for role, names in value.items()
        }

    @field_validator("roles")
    @classmethod
    def _one_compressor(cls, value: dict[str, list[str]]) -> dict[str, list[str]]:
        if any(not names or not all(names) for names in value.values()):
            raise ValueError("a role without a model")
        if len(value.get("compressor", [])) > 1:
            raise ValueError("compressor: one model, not a list")
        return value

    @field_validator("budgets")
    @classmethod
    def _rising(cls, value: list[int]) -> list[int]:
        if any(budget < 1 for budget in value):
            raise ValueError("each is a number of tokens of at least 1")
        return sorted(set(value))

    @field_validator("models", "arms", "fixtures")
    @classmethod
    def _each_once(cls, value: list[Any]) -> list[Any]:
        for position, item in enumerate(value):
            if item == "":
                raise ValueError("an empty name")
            if item in value[:position]:
                raise ValueError(f"{str(item)[:60]!r} stands there twice")
        return value

    @field_validator("generate")
    @classmethod
    def _known_to_inspect(cls, value: dict[str, Any]) -> dict[str, Any]:
        GenerateConfig.model_validate(value)
        return value


def read_settings(file: Path | None, given: Mapping[str, Any]) -> SweepSettings:
    """Return the settings of a YAML file with those of the command line over them.

    Args:
        file: The YAML file; None if everything is given.
        given: Settings by name; of ``roles``, ``generate`` and ``model_args`` single entries.

    Raises:
        DataError: The file cannot be read, or a setting is unknown or not what it must be.
    """
    merged = dict(_content(file) if file else {})
    for name, value in given.items():
        nested = name in ("roles", "generate", "model_args")
        if nested and isinstance(merged.get(name, {}), Mapping):
            merged[name] = {**merged.get(name, {}), **value}
        else:
            merged[name] = value
    if "arms" not in merged:
        raise DataError("arms: none are given; name some with --arms, or in a YAML file")
    try:
        return SweepSettings.model_validate(merged)
    except ValidationError as error:
        raise DataError(describe_validation_error(file or "settings", error)) from error


def _content(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _LARGEST:
            raise DataError(f"{file}: too large for the settings of a sweep")
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 text") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise DataError(f"{file}: not YAML: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise DataError(f"{file}: must be a mapping of settings, beginning with arms")
    return found
