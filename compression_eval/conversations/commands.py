"""``compression-eval import``: recorded conversations to fixtures.

The command checks its options and what they name, then has `pipeline` read and write, and prints
the account of what was imported and left out. Files of an earlier output are not read again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TextIO, get_args

import click

from compression_eval.conversations.building import Images
from compression_eval.conversations.corpus import (
    UNFINISHED,
    Corpus,
    Work,
    say_done_before,
    shard_options,
)
from compression_eval.conversations.cutting import EXPECTED, cut_rules
from compression_eval.conversations.duplicates import Duplicates
from compression_eval.conversations.formats import NAMES, check_name
from compression_eval.conversations.pipeline import Import, ImportOptions, scrubbing_of
from compression_eval.conversations.sources import Input, find_inputs
from compression_eval.conversations.stores import Store
from compression_eval.engine import Engine, jobs_option
from compression_eval.errors import DataError, shorten
from compression_eval.fixtures.finding_files import PARQUET_SUFFIX
from compression_eval.fixtures.writing import written_whole
from compression_eval.terminal import (
    CleanCommand,
    check_output,
    examples,
    go_on,
    refuse_to_overwrite,
)

_EXAMPLES = (
    "import session.jsonl",
    "import ~/.claude/projects --out fixtures --scrub default",
    "import 'rollouts/**/*.jsonl' --cut auto --cut tokens:50000",
    "import logs --format inspect --out corpus.parquet",
    "import session.jsonl --explain left-out.jsonl",
    "import hf:ORG/NAME --column messages=conversation",
    "import s3://bucket/sessions --engine ray --out s3://bucket/corpus",
)
_PATH = click.Path(path_type=Path)


@click.command("import", cls=CleanCommand, epilog=examples(*_EXAMPLES))
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    "format_name",
    default="auto",
    show_default=True,
    help=f"auto, or one of {', '.join(NAMES)}.",
)
@click.option(
    "--out",
    default="fixtures",
    show_default=True,
    help="Folder or *.parquet file. With --engine or --shard-mb a folder or an address.",
)
@click.option("--cut", "cuts", multiple=True, metavar="CUT", help=f"{EXPECTED}; may be repeated.")
@click.option("--scrub", "profile", metavar="PROFILE", help="Scrub with this profile.")
@click.option("--names", type=_PATH, help="With --scrub: file with names to replace, one per line.")
@click.option("--key-file", type=_PATH, help="With --scrub: a file with the key of the stand-ins.")
@click.option(
    "--images",
    type=click.Choice(get_args(Images)),
    default="describe",
    show_default=True,
    help="Replace images by a placeholder, or keep them.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="PART=COLUMN",
    help="For rows of a dataset: the column of a part.",
)
@click.option(
    "--duplicates",
    type=click.Choice(get_args(Duplicates)),
    default="all",
    show_default=True,
    help="Keep all copies of a session, or only the longest (reads everything twice).",
)
@click.option(
    "--allow-missing",
    is_flag=True,
    help="Also import conversations that lose more than a third of their messages.",
)
@click.option(
    "--explain",
    type=_PATH,
    metavar="FILE",
    help="Write as JSON lines what is left out of each conversation.",
)
@jobs_option
@shard_options
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def import_command(
    paths: Sequence[str],
    format_name: str,
    out: str,
    cuts: Sequence[str],
    profile: str | None,
    names: Path | None,
    key_file: Path | None,
    images: Images,
    columns: Sequence[str],
    duplicates: Duplicates,
    allow_missing: bool,
    explain: Path | None,
    engine: Engine,
    shard_bytes: int | None,
    force: bool,
) -> None:
    """Convert recorded conversations to fixtures.

    PATH is a file, a folder (with everything below it), a pattern, or a dataset on the Hub. The
    format is recognized by content. What is left out is counted by reason.

    Exits with 1 if nothing was imported, if something that you named could not be imported or
    opened, if more than a third of a conversation would be left out, or after a defect of this
    command. Other files in a folder are skipped.
    """
    if format_name != "auto":
        check_name(format_name)
    options = ImportOptions(
        format_name,
        images,
        _columns(columns),
        cut_rules(cuts),
        scrubbing_of(profile, names, key_file),
        duplicates,
        allow_missing,
    )
    inputs = find_inputs(paths)
    own = _own_output(inputs, paths, out.rstrip("/") if shard_bytes else str(Path(out)))
    inputs = [item for item in inputs if item.place not in own]
    with _explained(explain, force=force) if explain else nullcontext() as file:
        job = Import(options, click.echo, partial(click.echo, file=file) if file else None)
        work: Work
        if shard_bytes:
            work = Corpus(out, job.made_by, inputs, engine, shard_bytes, force=force)
            if work.complete:
                told = f"{out}: this was imported before; --force imports it again"
                say_done_before(told, explain)
                return
        else:
            work = job.work(inputs, Path(out), engine, force=force)
        job.run(work)
        for place in sorted(own):
            job.skip(place, "it is in --out")
    for line in job.overview.lines():
        click.echo(line)
    if profile and job.imported:
        click.echo("\nReplaced (look whether a rule ate facts):")
        for line in job.replaced:
            click.echo(f"  {line}")
    count = f"{job.imported} fixture{'' if job.imported == 1 else 's'}"
    unscrubbed = "" if profile else "; nothing was scrubbed (no --scrub)"
    click.echo(f"\n{count} in {out}{unscrubbed}" if job.imported else "\nnothing was imported")
    if job.imported:
        beside = shard_bytes is None and not out.endswith(PARQUET_SUFFIX)
        banks = () if beside else ("--out", "banks")  # none can lie next to the rows of a file
        go_on(("compression-eval", "probes", "generate", out, *banks))
    if failed := job.overview.failed:
        raise click.ClickException(f"{failed} could not be imported; see above")
    if not job.imported:
        raise click.ClickException("nothing was imported; see above")


def _own_output(inputs: Sequence[Input], paths: Sequence[str], out: str) -> set[str]:
    """Return what folders that were named contain of the output; nothing where that was named."""
    if Store(out).held(paths):
        return set()
    found = [item.place for item in inputs if not item.named]
    return Store(out).held(found) | Store(out + UNFINISHED).held(found)


def _columns(values: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for value in values:
        part, mark, column = value.partition("=")
        if not (part and mark and column):
            raise DataError(f"--column: {shorten(value)}, expected PART=COLUMN")
        found[part] = column
    if found:
        from compression_eval.conversations.rows import check_columns

        check_columns(found)
    return found


@contextmanager
def _explained(path: Path, *, force: bool) -> Iterator[TextIO]:
    """Open the file of ``--explain``; it is there when everything went well, and not before."""
    refuse_to_overwrite(path, "--explain", force=force)
    check_output(path)
    with (
        written_whole(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        yield file
