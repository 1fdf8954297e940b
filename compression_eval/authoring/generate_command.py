"""``compression-eval probes generate``: a bank for each fixture that is named."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compression_eval.fixtures.cuts import CutArgument
from compression_eval.fixtures.errors import (
    DataError,
    PassedOverError,
    nothing_left,
    passed_over,
    shorten,
)
from compression_eval.fixtures.finding_files import BANK_SUFFIX, find_bank, find_fixtures
from compression_eval.fixtures.loading import load_fixture
from compression_eval.fixtures.writing import fixture_text, write_whole

if TYPE_CHECKING:
    from inspect_ai.model import Model

    from compression_eval.authoring.generating import FixtureResult, Wanted
    from compression_eval.authoring.model_generator import Usage

_EPILOG = """\b
Examples:
  compression-eval probes generate my/session.json
  compression-eval probes generate my/fixtures --model openai/gpt-5 --mechanical --out my/banks
  compression-eval probes generate my/session.json --cut 120 --cut end --report report.json
"""


_MARKUP = re.compile(r"\[/?[a-z ]+\]")
"""What Inspect sets for a terminal's colours."""


def _cuts(
    ctx: click.Context,  # noqa: ARG001
    param: click.Parameter,  # noqa: ARG001
    values: tuple[str, ...],
) -> tuple[CutArgument, ...]:
    """Read cuts as the task takes them; whether one fits is checked with each fixture."""
    return tuple(_cut(value) for value in values)


def _cut(value: str) -> CutArgument:
    if value in ("auto", "end", "recorded"):
        return value
    try:
        return float(value) if "." in value else int(value)
    except ValueError:
        raise click.BadParameter(
            f"{shorten(value)} is no number of messages, share between 0 and 1, 'end', "
            "'recorded' or 'auto'"
        ) from None


@click.command("generate", epilog=_EPILOG)
@click.argument("paths", nargs=-1, required=True, metavar="FIXTURE...")
@click.option("--model", help="Model that proposes probes, as Inspect names it.")
@click.option("--model-base-url", help="Address of the model's API.")
@click.option(
    "-M", "model_args", multiple=True, metavar="NAME=VALUE", help="Argument of the model."
)
@click.option("--temperature", type=click.FloatRange(min=0), help="Sampling temperature.")
@click.option("--max-connections", type=click.IntRange(min=1), help="Calls at a time.")
@click.option("--chunk-tokens", type=click.IntRange(min=1_000), help="History per call [60000].")
@click.option("--mechanical", is_flag=True, help="With a model: also what needs none.")
@click.option("--per-type", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--cut", "cuts", multiple=True, callback=_cuts, help="Messages, share, end, or recorded."
)
@click.option("--tail-tokens", type=click.IntRange(min=0), help="Kept verbatim [2000].")
@click.option("--out", type=click.Path(path_type=Path), help="Folder; else beside the fixture.")
@click.option("--force", is_flag=True, help="Overwrite banks.")
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), help="Write JSON.")
def generate_command(
    paths: tuple[str, ...],
    model: str | None,
    mechanical: bool,
    per_type: int,
    cuts: tuple[CutArgument, ...],
    tail_tokens: int | None,
    chunk_tokens: int | None,
    out: Path | None,
    force: bool,
    report: Path | None,
    **model_options: Any,
) -> None:
    """Make a probe bank for each FIXTURE, from the history before its cuts.

    FIXTURE is a name, a file, a folder or a pattern. Without --model, probes come from what needs
    none: tool calls, task lists, and what the recorded agent went on to use after the cut. Every
    probe is checked against the conversation, and at least one of its facts is in nothing that
    is kept verbatim; what fails is dropped, with its reason. Cuts are those of the fixture, else
    the end. A fixture that has a bank already, or that no probe can be made for, is passed over
    and named; exits with 1 if all are.
    """
    from compression_eval.authoring.generating import FixtureResult, Wanted, cuts_of
    from compression_eval.authoring.history import TAIL_TOKENS

    if model is None and (given := [name for name, value in model_options.items() if value]):
        raise DataError(f"{', '.join(given)}: only with --model")
    tail = TAIL_TOKENS if tail_tokens is None else tail_tokens
    wanted = Wanted(per_type, tail, cuts, mechanical or model is None)
    results: list[FixtureResult] = []
    unfit: list[PassedOverError] = []
    for path in find_fixtures(paths):
        try:
            result = FixtureResult(load_fixture(path), path, _target(path, out, force))
            cuts_of(result.fixture, cuts)  # said before any call is paid
        except PassedOverError as error:
            unfit.append(error)
        else:
            results.append(result)
    if not results:
        raise nothing_left(unfit)
    _refuse_same_target(results)
    chosen = _model(model, model_options) if model else None
    usage = _run(results, wanted, chosen, chunk_tokens)
    _finish(results, unfit, wanted, model, usage, report)


def _target(path: Path, out: Path | None, force: bool) -> Path:
    """Return where a fixture's bank goes; one that it has already is not overwritten."""
    name = path.stem + BANK_SUFFIX
    target = (out or path.parent) / name
    if out is None:
        try:
            target = find_bank(path, None)
        except DataError:
            return target
    if target.exists() and not force:
        raise PassedOverError(
            f"{target}: exists already; give --force to overwrite it, or --out FOLDER",
            target,
            "exists already; give --force to overwrite it, or --out FOLDER",
        )
    return target


def _refuse_same_target(results: "list[FixtureResult]") -> None:
    seen: dict[Path, Path] = {}
    for result in results:
        if (other := seen.setdefault(result.target.absolute(), result.path)) is not result.path:
            raise DataError(f"{result.target}: {other} and {result.path} would both write it")


def _model(name: str, options: dict[str, Any]) -> "Model":
    import yaml
    from inspect_ai.model import GenerateConfig, get_model

    arguments: dict[str, Any] = {}
    for item in options["model_args"]:
        key, separator, value = item.partition("=")
        if not separator or not key.isidentifier():
            raise DataError(f"-M: expected NAME=VALUE, got {shorten(item)}")
        try:
            arguments[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise DataError(f"-M: {key}: not a YAML value") from error
    config = GenerateConfig(
        temperature=options["temperature"], max_connections=options["max_connections"]
    )
    try:
        return get_model(name, config=config, base_url=options["model_base_url"], **arguments)
    except Exception as error:
        # Inspect and every provider have their own errors for a missing key, package or name.
        reason = " ".join(_MARKUP.sub("", str(error)).split()) or type(error).__name__
        raise DataError(f"model {shorten(name)}: cannot be used: {reason[:300]}") from error


def _run(
    results: "list[FixtureResult]",
    wanted: "Wanted",
    model: "Model | None",
    chunk_tokens: int | None,
) -> "Usage":
    """Fill in all results, one fixture after another; a bank is written as soon as it is there."""
    import anyio

    from compression_eval.authoring.generating import generate_bank
    from compression_eval.authoring.generation_report import lines
    from compression_eval.authoring.model_generator import CHUNK_TOKENS, ModelGenerator, Usage

    usage = Usage()
    name = str(model) if model else None

    async def run() -> None:
        for number, result in enumerate(results, 1):
            label = f"[{number}/{len(results)}] {result.fixture.name}"

            def progress(text: str, label: str = label) -> None:
                click.echo(f"{label}: {text}", err=True)

            generator = None
            if model:
                chunk = chunk_tokens or CHUNK_TOKENS
                generator = ModelGenerator(model, wanted.per_type, chunk, usage, progress)
            await generate_bank(result, wanted, generator, progress)
            if generator and generator.requests and not usage.calls:
                raise DataError(f"model {name}: {generator.failure}")
            for line in lines(result, wanted, name):
                click.echo(line)
            if (bank := result.bank) is not None:
                result.target.parent.mkdir(parents=True, exist_ok=True)
                write_whole(result.target, fixture_text(bank))
                click.echo(f"wrote {result.target}")

    anyio.run(run)
    return usage


def _finish(
    results: "list[FixtureResult]",
    unfit: list[PassedOverError],
    wanted: "Wanted",
    model: str | None,
    usage: "Usage",
    report: Path | None,
) -> None:
    from compression_eval.authoring.generation_report import as_data, usage_line, why_none

    if model:
        click.echo(usage_line(model, usage))
    if report:
        data = as_data(results, wanted, model, usage)
        report.parent.mkdir(parents=True, exist_ok=True)
        write_whole(report, json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    without = [
        *unfit,
        *(why_none(result) for result in results if result.bank is None),
    ]
    if len(without) == len(results) + len(unfit):
        raise nothing_left(without)
    if without:
        click.echo(passed_over(without), err=True)
