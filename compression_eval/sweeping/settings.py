"""The settings of a sweep (a YAML file, overridden by a command's options), and prices of models.

Inspect has a field for prices (`ModelInfo.cost`) but ships none, so they come from a file or from
`set_model_cost`; an unknown price stays unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import click
import yaml
from inspect_ai.model import (
    GenerateConfig,
    ModelCost,
    ModelInfo,
    get_model_info,
    set_model_info,
)
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    TypeAdapter,
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


def _each_once(names: list[str]) -> list[str]:
    for position, name in enumerate(names):
        if name == "":
            raise ValueError("an empty name")
        if name in names[:position]:
            raise ValueError(f"{name[:60]!r} is given twice")
    return names


def _arms(value: Any) -> Any:
    """Write out the arms that are only named."""
    items = _items(value)
    if not isinstance(items, list):
        return items
    return [{"compressor": each} if isinstance(each, str) else each for each in items]


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

    arms: Annotated[list[ArmSettings], BeforeValidator(_arms)] = Field(min_length=1)
    """Strategies, such as anchored,regenerative+artifacts."""
    models: NamesOnce = Field(default_factory=list)
    """Models under test, separated by commas. Default: Inspect's setting, or the embedded model."""
    roles: dict[Role, Names] = Field(default_factory=dict)
    """grader=… (several make a panel) or compressor=…."""
    controls: bool = True
    """Add full, none and tail.  [default: yes]"""
    budgets: Annotated[list[PositiveInt], BeforeValidator(_items)] = Field(default_factory=list)
    """Tokens of a state, such as 2000,4000. Each arm runs at each size. They set target_tokens, or
    the argument that compressors list names for a strategy."""
    epochs: int = Field(default=3, ge=1)
    """Compressions of each fixture and cut."""
    generate: dict[str, Any] = Field(default_factory=dict)
    """A generation option of Inspect, such as temperature=0.5 or max_connections=20."""
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
        raise ValueError("belongs to each arm, not to the sweep")

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


def _read_yaml(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 text") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise DataError(f"{file}: not YAML: {' '.join(str(error).split())[:200]}") from error


# ----- options of a command


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
    click.option(
        "--timeout",
        type=click.IntRange(min=1),
        help="Seconds of each model call, with its retries.",
    ),
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


def option_of(*names: str) -> Callable[[F], F]:
    """Add the options of some settings to a command."""

    def add(command: F) -> F:
        for name in reversed(names):
            command = _option(name)(command)
        return command

    return add


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
    merged: Any = {} if file is None else _read_yaml(file)
    if not isinstance(merged, dict) or not all(isinstance(key, str) for key in merged):
        raise DataError(f"{file}: must be a mapping of settings, beginning with arms")
    for name, value in _given(options).items():
        before = merged.get(name) if name in _MAPPINGS else None
        merged[name] = {**before, **value} if isinstance(before, dict) else value
    if "arms" not in merged:
        raise DataError("arms: none are given; name some with --arms, or in a YAML file")
    try:
        return SweepSettings.model_validate(merged)
    except ValidationError as error:
        fields = SweepSettings.model_fields
        raise DataError(describe_validation_error(file or "options", error, fields)) from error


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in a command's options."""
    values = {name: value for name, value in options.items() if value not in (None, ())}
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
    for name in ("max_retries", "timeout"):
        if name in values:
            values["generate"] = {**values.get("generate", {}), name: values.pop(name)}
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


# ----- prices


_PRICES: TypeAdapter[dict[str, ModelCost]] = TypeAdapter(dict[str, ModelCost])


def read_prices(file: Path | None) -> dict[str, ModelCost]:
    """Return the prices in a file by model; empty without a file."""
    if file is None:
        return {}
    try:
        return _PRICES.validate_python(_read_yaml(file))
    except ValidationError as error:
        raise DataError(describe_validation_error(file, error)) from error


def price_of(model: str, prices: Mapping[str, ModelCost]) -> ModelCost | None:
    """Return a model's prices in dollars per million tokens; None if unknown."""
    if model in prices:
        return prices[model]
    if model.startswith("embedded/"):
        return ModelCost(input=0, output=0, input_cache_write=0, input_cache_read=0)
    info = _known(model)
    return info.cost if info else None


def register_prices(prices: Mapping[str, ModelCost]) -> None:
    """Register the prices with Inspect, so that logs contain the cost of each call.

    Its own ``model_cost_config`` refuses models that it does not know.
    """
    for model, cost in prices.items():
        info = _known(model) or ModelInfo()
        set_model_info(model, info.model_copy(update={"cost": cost}))


def _known(model: str) -> ModelInfo | None:
    try:
        return get_model_info(model)
    except Exception:  # a provider's package may be missing, which does not matter here
        return None
