"""``compression-eval compressors …``: what can be done with strategies outside of an eval."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from compression_eval.command_line import CleanGroup
from compression_eval.compressors.artifacts import SUFFIX, with_artifacts
from compression_eval.compressors.hermes.interpreter import DEFAULT_VERSION
from compression_eval.compressors.listing import as_data, details, table
from compression_eval.compressors.registry import COMPRESSORS
from compression_eval.compressors.spec import Compressor
from compression_eval.compressors.yours import user_compressor
from compression_eval.fixtures.errors import DataError, shorten


@click.group(cls=CleanGroup)
def compressors() -> None:
    """List the strategies, and prepare what some of them need."""


@compressors.command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(names: Sequence[str], as_json: bool) -> None:
    """List the strategies; with NAME, what each parameter of it means.

    NAME may be one of your own: module:name or path/file.py@name. A strategy takes a target if
    the wanted size of the state can be given as target_tokens.
    """
    chosen = [_named(name) for name in names] or list(COMPRESSORS.values())
    if as_json:
        click.echo(json.dumps([as_data(c) for c in chosen], ensure_ascii=False, indent=2))
    elif names:
        click.echo("\n\n".join("\n".join(details(compressor)) for compressor in chosen))
    else:
        click.echo("\n".join(table(chosen)))
        click.echo(
            "\nYours: module:name, path/file.py@name (their parameters are those of the code)"
        )
        click.echo(f"With an index of the files: NAME{SUFFIX}")


@compressors.command("install")
@click.argument("name", type=click.Choice(["hermes"]))
@click.option("--version", default=DEFAULT_VERSION, show_default=True, help="Version to install.")
@click.option(
    "--python",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Interpreter to make the environment from; by default the running one.",
)
def install_command(name: str, version: str, python: Path | None) -> None:  # noqa: ARG001
    """Install the package that strategy NAME needs, in an environment of its own.

    Nothing is added to the environment that this command runs in. Needs the package index, about
    a minute and 250 MB. To remove it, delete the folder that is printed.
    """
    from compression_eval.compressors.hermes.install import install

    folder, description = install(version, str(python) if python else None)
    click.echo(f"hermes-agent {description.version} is ready in {folder}")


def _named(name: str) -> Compressor[Any]:
    inner = name.removesuffix(SUFFIX)
    found = COMPRESSORS.get(inner) or user_compressor(inner)
    if found is None:
        raise DataError(f"unknown strategy {shorten(name)}, there are {', '.join(COMPRESSORS)}")
    return found if inner == name else with_artifacts(found)
