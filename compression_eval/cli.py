"""The ``compression-eval`` command: what Inspect's own commands do not do."""

from pathlib import Path

import click

from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.locations import data_folder, recordings_folder
from compression_eval.fixtures.recording import record
from compression_eval.fixtures.writing import fixture_text


@click.group()
def main() -> None:
    """Measure what a coding agent still knows after its context was compressed."""


@main.group()
def fixtures() -> None:
    """List, check and record fixtures."""


@fixtures.command("record")
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="File to write.")
@click.option("--check", is_flag=True, help="Write nothing; fail if the bytes would differ.")
def record_command(name: str, out: Path | None, check: bool) -> None:
    """Carry out the recording NAME and write its fixture.

    \b
    Example:
      compression-eval fixtures record cron-config
      compression-eval fixtures record cron-config --check
    """
    target = out or data_folder() / "fixtures" / f"{name}.json"
    try:
        text = fixture_text(record(recordings_folder() / name))
    except DataError as error:
        raise click.ClickException(str(error)) from error
    if not check:
        target.write_text(text, encoding="utf-8")
        click.echo(f"wrote {target}")
    elif not target.is_file() or target.read_text(encoding="utf-8") != text:
        raise click.ClickException(f"{target}: recording {name} again gives other bytes")
    else:
        click.echo(f"{target}: reproduced byte for byte")


if __name__ == "__main__":
    main()
