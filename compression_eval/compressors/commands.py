"""``compression-eval compressors …``: what can be done with strategies outside of an eval."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import click
from pydantic_core import to_jsonable_python

from compression_eval.compressors.budget import KNOBS
from compression_eval.compressors.hermes import DEFAULT_VERSION, install
from compression_eval.compressors.names import SUFFIX, calls_model
from compression_eval.compressors.registry import COMPRESSORS, find_compressor, unknown_strategy
from compression_eval.compressors.strategy import Compressor
from compression_eval.terminal import CleanGroup, aligned, examples

_COLUMNS = ("name", "calls a model", "sized by")


@click.group(cls=CleanGroup)
def compressors() -> None:
    """List the strategies, and set up those that need it."""


@compressors.command(
    "list",
    epilog=examples(
        "compressors list", "compressors list anchored codex", "compressors list mine.py@keep_ends"
    ),
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(names: Sequence[str], as_json: bool) -> None:
    """List the strategies; with NAME, what each parameter of it means.

    NAME may be one of your own: module:name or path/file.py@name. The parameter that a state is
    sized by is target_tokens where its size can be given, else one that the --budgets of a sweep
    are fitted by.
    """
    chosen = list(COMPRESSORS.values())
    if names:
        chosen = [_named(name) for name in names]
    about = [_data(each) for each in chosen]
    if as_json:
        plain = to_jsonable_python(about, fallback=str)
        click.echo(json.dumps(plain, ensure_ascii=False, indent=2))
    elif names:
        click.echo("\n\n".join("\n".join(_details(each)) for each in about))
    else:
        heads, *lines = aligned([_COLUMNS, *map(_row, about)])
        click.echo(heads)
        for line, each in zip(lines, about, strict=True):
            click.echo(f"{line}\n    {each['summary']}")
        click.echo("\nWhat the parameters mean: compression-eval compressors list NAME")
        click.echo("Yours: module:name, path/file.py@name (their parameters are those of the code)")
        click.echo(f"With an index of the files: NAME{SUFFIX}")


@compressors.command(
    "install",
    epilog=examples(
        "compressors install hermes", f"compressors install hermes --version {DEFAULT_VERSION}"
    ),
)
@click.argument("name", type=click.Choice(["hermes"]))
@click.option("--version", default=DEFAULT_VERSION, show_default=True, help="Version to install.")
def install_command(name: str, version: str) -> None:  # noqa: ARG001
    """Install the package that strategy NAME needs, in an environment of its own.

    Nothing is added to the environment that this command runs in. Needs the package index, about
    a minute and 250 MB. To remove it, delete the folder that is printed.
    """
    folder, description = install(version)
    click.echo(f"hermes-agent {description.version} is ready in {folder}")


def _named(name: str) -> Compressor:
    compressor = find_compressor(name)
    if compressor is None:
        raise unknown_strategy(name)
    return compressor


def _data(compressor: Compressor) -> dict[str, Any]:
    fields = compressor.arguments.model_fields
    takes_target = "target_tokens" in fields
    knob = KNOBS.get(compressor.name.removesuffix(SUFFIX))
    return {
        "name": compressor.name,
        "summary": compressor.summary,
        "calls_model": calls_model(compressor.name),
        "readable": compressor.kind.readable,
        "takes_target": takes_target,
        "sized_by": "target_tokens" if takes_target else knob and knob.argument,
        "parameters": {
            name: {
                "required": field.is_required(),
                "default": None
                if field.is_required()
                else field.get_default(call_default_factory=True),
                "description": field.description or "",
            }
            for name, field in fields.items()
        },
    }


def _row(about: dict[str, Any]) -> tuple[str, ...]:
    return about["name"], _yes(about["calls_model"]), about["sized_by"] or "-"


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _details(about: dict[str, Any]) -> Iterator[str]:
    """Yield a strategy's summary and a line or two for each of its parameters."""
    yield f"{about['name']}: {about['summary']}"
    yield f"  calls a model: {_yes(about['calls_model'])}"
    yield f"  state can be read: {_yes(about['readable'])}"
    yield f"  sized by: {about['sized_by'] or '-'}"
    for name, each in about["parameters"].items():
        yield f"  {name}{_default(each)}"
        if each["description"]:
            yield f"      {each['description']}"


def _default(parameter: dict[str, Any]) -> str:
    """Return a default as it would be written on the command line, which is YAML."""
    value = parameter["default"]
    if parameter["required"]:
        return " (required)"
    if value is None:
        return "=null"
    return f"={str(value).lower()}" if isinstance(value, bool) else f"={value}"
