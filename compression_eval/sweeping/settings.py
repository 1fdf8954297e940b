"""The settings of a sweep: a YAML file, overridden by a command's options."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import click
import yaml
from inspect_ai.model import GenerateConfig
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    field_validator,
)
from pydantic_core import PydanticUndefined

from compression_eval.arguments import ArgumentFields
from compression_eval.errors import DataError, describe_validation_error, shorten
from compression_eval.fixtures.finding_files import DEFAULT_FIXTURES
from compression_eval.inspect_models import Role, unknown_role

F = TypeVar("F", bound=Callable[..., object])

OF_AN_ARM = ("compressor", "compressor_args", "prompt", "focus_topic")
SHARED = [name for name in ArgumentFields.model_fields if name not in OF_AN_ARM]
"""The task's arguments that all arms have in common."""

_ALWAYS_PASSED = {
    *("fixtures", "cut", "cycles", "answers", "min_removed", "criteria", "grader_context"),
}
"""Arguments passed to tasks even at their default, as in existing folders."""

_MAPPINGS = ("roles", "generate", "model_args")


def _items(value: Any) -> Any:
    """Split a text at its commas; leave other values to pydantic."""
    return [item.strip() for item in value.split(",")] if isinstance(value, str) else value


def _each_once(names: list[Any]) -> list[Any]:
    for position, name in enumerate(names):
        if name == "":
            raise ValueError("an empty name")
        if name in names[:position]:
            raise ValueError(f"{str(name)[:60]!r} stands there twice")
    return names


Names = Annotated[list[str], BeforeValidator(_items)]
NamesOnce = Annotated[Names, AfterValidator(_each_once)]


class ArmSettings(BaseModel):
    """One arm as written out in a YAML file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    compressor: str = Field(min_length=1)
    args: dict[str, Any] = Field(default_factory=dict)
    prompt: str | None = None
    """A file whose text replaces the instructions of a summarising strategy."""
    focus_topic: str | None = None


class SweepSettings(ArgumentFields):
    """Arms, models, and what all of them share: the task's arguments but for those of an arm."""

    model_config = ConfigDict(extra="forbid")

    arms: Annotated[
        list[str | ArmSettings], BeforeValidator(_items), AfterValidator(_each_once)
    ] = Field(min_length=1)
    """Strategies, as full,tail,anchored,anchored+artifacts."""
    models: NamesOnce = Field(default_factory=list)
    """Models under test, separated by commas; Inspect's own choice, or the embedded model, if none
    are given."""
    roles: dict[Role, Names] = Field(default_factory=dict)
    """grader=… (several make a panel) or compressor=…."""
    controls: bool = True
    """Add full, none and tail.  [default: yes]"""
    budgets: Annotated[list[PositiveInt], BeforeValidator(_items)] = Field(default_factory=list)
    """Tokens of a state, as 2000,4000: a frontier. Values of target_tokens; strategies without it
    are fitted by a parameter of their own, as compressors list names it."""
    epochs: int = Field(default=3, ge=1)
    """Fresh compressions per fixture and cut."""
    generate: dict[str, Any] = Field(default_factory=dict)
    """A generation option by Inspect's name, as temperature=0.5 or max_connections=20."""
    model_args: dict[str, Any] = Field(default_factory=dict)
    """An argument of the models under test."""
    model_base_url: str | None = None
    """Address of the models' provider."""
    log_dir: str | None = None
    """The sweep's folder.  [default: logs/sweep]"""
    fixtures: NamesOnce = Field(
        default_factory=lambda: list(DEFAULT_FIXTURES),
        min_length=1,
        description=ArgumentFields.model_fields["fixtures"].description,
    )
    probe_types: Names | None = Field(
        default=None, description=ArgumentFields.model_fields["probe_types"].description
    )

    def task_arguments(self) -> dict[str, Any]:
        """Return the task's arguments that all arms share."""
        # An arm runs to its end before failures are judged.
        names = [name for name in SHARED if name != "max_failed"]
        return {
            name: value
            for name in names
            if (value := getattr(self, name)) != type(self).model_fields[name].default
            or name in _ALWAYS_PASSED
        }

    @field_validator(*OF_AN_ARM)
    @classmethod
    def _of_an_arm(cls, _value: Any) -> Any:
        raise ValueError("is given for each of the arms, not beside them")

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
        return sorted(set(value))

    @field_validator("generate")
    @classmethod
    def _known_to_inspect(cls, value: dict[str, Any]) -> dict[str, Any]:
        GenerateConfig.model_validate(value)
        return value


def read_yaml(file: Path) -> Any:
    """Return the content of a YAML file."""
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 text") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise DataError(f"{file}: not YAML: {' '.join(str(error).split())[:200]}") from error


_FLAGS = {
    "models": ("--models", "--model"),
    "roles": ("--model-role",),
    "controls": ("--controls/--no-controls",),
    "generate": ("--generate", "-G"),
    "model_args": ("--model-args", "-M"),
}
"""Flags of settings that are not called by their name."""

_BESIDE = (
    click.option("--max-retries", type=click.IntRange(min=0), help="Retries of each model call."),
    click.option("--timeout", type=click.IntRange(min=1), help="Seconds of each, retries and all."),
    click.option(
        "--prices",
        type=click.Path(path_type=Path),
        help="Prices per million tokens, a YAML file in the form of Inspect's --model-cost-config.",
    ),
)


def sweep_options(command: F) -> F:
    """Add a sweep's argument and options to a command."""
    own = [name for name in SweepSettings.model_fields if name not in ArgumentFields.model_fields]
    file = click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
    for option in reversed([file, *map(_option, [*own, *SHARED]), *_BESIDE]):
        command = option(command)
    return command


def _option(name: str) -> Callable[[F], F]:
    """Return the option for a setting; a list is separated by commas."""
    field = SweepSettings.model_fields[name]
    flags = _FLAGS.get(name, (f"--{name.replace('_', '-')}",))
    described = " ".join(str(field.description).replace("``", "'").split())
    if name == "controls":
        return click.option(*flags, name, default=None, help=described)
    if name in _MAPPINGS:
        form = "ROLE=MODEL[,MODEL]" if name == "roles" else "NAME=VALUE"
        return click.option(*flags, name, multiple=True, metavar=form, help=described)
    kind = field.annotation if field.annotation in (int, float, bool) else str
    if field.default is not None and field.default is not PydanticUndefined:
        described += f"  [default: {field.default}]"
    return click.option(*flags, name, type=kind, help=described)


def settings_of(file: Path | None, options: Mapping[str, Any]) -> SweepSettings:
    """Return the settings of a YAML file, overridden by a command's options.

    Raises:
        DataError: A setting is unknown or invalid, or there are no arms.
    """
    merged: Any = {} if file is None else read_yaml(file)
    if not isinstance(merged, dict) or not all(isinstance(key, str) for key in merged):
        raise DataError(f"{file}: must be a mapping of settings, beginning with arms")
    for name, value in _given(options).items():
        before = merged.get(name)
        merged[name] = (
            {**before, **value} if name in _MAPPINGS and isinstance(before, dict) else value
        )
    if "arms" not in merged:
        raise DataError("arms: none are given; name some with --arms, or in a YAML file")
    try:
        return SweepSettings.model_validate(merged)
    except ValidationError as error:
        raise DataError(describe_validation_error(file or "settings", error)) from error


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in a command's options."""
    values = {
        name: value
        for name, value in options.items()
        if name in SweepSettings.model_fields and value is not None and value != ()
    }
    for name in ("cut", "refetch"):
        if name in values:
            values[name] = _value(values[name])
    if "roles" in values:
        values["roles"] = _pairs("--model-role", values["roles"])
        if error := unknown_role(values["roles"]):
            raise error
    for name in ("generate", "model_args"):
        if name in values:
            pairs = _pairs(f"--{name.replace('_', '-')}", values[name])
            values[name] = {key: _value(text) for key, text in pairs.items()}
    bounds = {name: options[name] for name in ("max_retries", "timeout")}
    if given := {name: value for name, value in bounds.items() if value is not None}:
        values["generate"] = {**values.get("generate", {}), **given}
    return values


def _pairs(flag: str, items: Sequence[str]) -> dict[str, str]:
    for item in items:
        if "=" not in item:
            raise DataError(f"{flag}: {shorten(item)} is not of the form NAME=VALUE")
    return {name.strip(): value for name, _, value in (item.partition("=") for item in items)}


def _value(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text
