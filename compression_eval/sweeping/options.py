"""What ``sweep`` and ``estimate`` take alike: a YAML file, and options that go over it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

from compression_eval.fixtures.errors import DataError, shorten
from compression_eval.sweeping.settings import ROLES, SweepSettings, read_settings

F = TypeVar("F", bound=Callable[..., object])

_LISTS = ("arms", "models", "fixtures", "probe_types")
_PLAIN = (
    "controls",
    "epochs",
    "answers",
    "probes",
    "shard",
    "cycles",
    "min_removed",
    "max_failed",
    "criteria",
    "grader_context",
    "state_facts",
    "language",
    "anchors",
    "model_base_url",
    "log_dir",
)

_OPTIONS = (
    click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE]"),
    click.option("--arms", help="Strategies, as full,tail,anchored,anchored+artifacts."),
    click.option("--models", "--model", help="Models under test, separated by commas."),
    click.option(
        "--model-role",
        "roles",
        multiple=True,
        metavar="ROLE=MODEL[,MODEL]",
        help="grader=… (several make a panel) or compressor=….",
    ),
    click.option(
        "--controls/--no-controls", default=None, help="Add full, none and tail.  [default: yes]"
    ),
    click.option("--budgets", help="Values of target_tokens, as 2000,4000: a frontier."),
    click.option("--epochs", type=int, help="Fresh compressions per fixture.  [default: 3]"),
    click.option("--answers", type=int, help="Answers from each compression.  [default: 1]"),
    click.option("--fixtures", help="Names, paths or patterns, separated by commas; or all."),
    click.option("--probes", help="Bank, or folder with banks."),
    click.option("--probe-types", help="Only these types of probes."),
    click.option("--shard", help="I/N: every Nth fixture from the Ith on."),
    click.option("--cut", help="Where history ends, as in the task."),
    click.option("--cycles", type=int, help="Compressions, one after another."),
    click.option("--min-removed", type=float, help="Share that each must remove."),
    click.option("--max-failed", type=float, help="Share of an arm's samples without a grade."),
    click.option("--criteria", help="by_type or all."),
    click.option("--grader-context", help="state or none."),
    click.option("--state-facts", help="reader or match: who looks for facts in states."),
    click.option("--language", help="Of the rubric: en, zh or ja."),
    click.option("--anchors", type=int, help="Answers of known worth graded too.  [default: 0]"),
    click.option(
        "--generate",
        "-G",
        multiple=True,
        metavar="NAME=VALUE",
        help="A generation option by Inspect's name, as temperature=0.5 or max_connections=20.",
    ),
    click.option("--max-retries", type=click.IntRange(min=0), help="Retries of each model call."),
    click.option("--timeout", type=click.IntRange(min=1), help="Seconds of each, retries and all."),
    click.option(
        "--model-args", "-M", multiple=True, metavar="NAME=VALUE", help="For the models under test."
    ),
    click.option("--model-base-url", help="Address of the models' provider."),
    click.option("--log-dir", help="The sweep's folder.  [default: logs/sweep]"),
    click.option(
        "--prices",
        type=click.Path(path_type=Path),
        help="Prices per million tokens, a YAML file in the form of Inspect's --model-cost-config.",
    ),
)


def sweep_options(command: F) -> F:
    """Give a command the argument and options of a sweep."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def settings_of(file: Path | None, options: dict[str, Any]) -> SweepSettings:
    """Return the settings that a command was given; takes what belongs to them out of `options`.

    Raises:
        DataError: An option or a setting of the file is not what it must be.
    """
    given: dict[str, Any] = {}
    for name in (*_LISTS, *_PLAIN):
        value = options.pop(name)
        if value is not None:
            given[name] = _items(value) if name in _LISTS else value
    if (budgets := options.pop("budgets")) is not None:
        given["budgets"] = [_number("--budgets", item) for item in _items(budgets)]
    if (cut := options.pop("cut")) is not None:
        given["cut"] = _value(cut)
    roles = _pairs("--model-role", options.pop("roles"))
    for role, names in roles.items():
        if role not in ROLES:
            raise DataError(f"--model-role: {shorten(role)} is no role; expected grader=… or "
                            "compressor=…")  # fmt: skip
        given.setdefault("roles", {})[role] = _items(names)
    for name, flag in (("generate", "--generate"), ("model_args", "--model-args")):
        if pairs := _pairs(flag, options.pop(name)):
            given[name] = {key: _value(text) for key, text in pairs.items()}
    for name in ("max_retries", "timeout"):
        if (bound := options.pop(name)) is not None:
            given.setdefault("generate", {})[name] = bound
    return read_settings(file, given)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]


def _number(flag: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise DataError(f"{flag}: {shorten(text)} is not a number of tokens") from error


def _pairs(flag: str, given: Sequence[str]) -> dict[str, str]:
    for item in given:
        if "=" not in item:
            raise DataError(f"{flag}: {shorten(item)} is not of the form NAME=VALUE")
    return {name.strip(): value for name, _, value in (item.partition("=") for item in given)}


def _value(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text
