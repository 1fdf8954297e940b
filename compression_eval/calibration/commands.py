"""``compression-eval grader``: tables and data on graders, from logs of the calibration task."""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from inspect_ai.scorer import Score
from pydantic import ValidationError

from compression_eval.analysis.logs import reading
from compression_eval.calibration.agreement import agreement
from compression_eval.calibration.cases import (
    KEYS,
    Case,
    GraderScores,
    LoggedScores,
    Reference,
    moved,
)
from compression_eval.calibration.task import MARK
from compression_eval.errors import DataError, NotFoundError, describe_validation_error
from compression_eval.fixtures.finding_files import local_path
from compression_eval.fixtures.writing import versioned_json
from compression_eval.grading.rubric import OVERALL
from compression_eval.terminal import CleanCommand
from compression_eval.text.printable import printable
from compression_eval.text.tables import Table, table_lines


@click.command(
    "grader",
    cls=CleanCommand,
    epilog="\b\nExamples:\n"
    "  inspect eval tasks/grader_calibration.py --model openai/gpt-5 -T variants=true\n"
    "  compression-eval grader logs\n"
    "  compression-eval grader logs/calibration.eval --format json",
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--format", "form", type=click.Choice(("text", "json")), default="text", show_default=True
)
def grader(logs: tuple[str, ...], form: str) -> None:
    """Say how well graders agree with a careful reader.

    LOG is a log of tasks/grader_calibration.py, or a folder with some. For each grader and
    dimension: the mean absolute error and the bias (above 0: lenient) in points of 5, Spearman's
    rank correlation, the quadratic weighted kappa with its 95 % bootstrap interval over answers;
    the traps it fell for; and how far changes that should not count moved its scores. Where the
    answers have a second reader's scores, that reader's agreement is printed too: a grader that
    is as near as that is as good as a reader.
    """
    results = [result for log in _logs(logs) for result in _results(log)]
    if form == "json":
        data = [_data(result) for result in results]
        click.echo(versioned_json({"graders": data}), nl=False)
        return
    for number, result in enumerate(results):
        if number:
            click.echo()
        for line in _lines(result):
            click.echo(line)
    if not any(case.scores for result in results for case in result.cases):
        raise DataError("no answer was graded")


@dataclass
class GraderResult:
    """The scores of one grader, or of a panel's median, for a log's answers."""

    name: str
    log: str
    """The log's path."""
    parameters: dict[str, object]
    """Generation settings that its role was given."""
    version: str
    """Version of the task; graders are comparable if it is the same."""
    contexts: set[str] = field(default_factory=set)
    """Values of ``grader_context``."""
    rubrics: dict[str, str] = field(default_factory=dict)
    """Digest of the rubric by language, swapped ones left out."""
    cases: list[Case] = field(default_factory=list)
    after_rules: list[Case] = field(default_factory=list)
    """As `cases`, with the scores that a real run would count; only where it has them."""
    failures: Counter[str] = field(default_factory=Counter)
    """Answers, variants included, without a usable reply, by reason."""

    @property
    def originals(self) -> list[Case]:
        """The unchanged answers."""
        return [case for case in self.cases if case.original]

    @property
    def original_after_rules(self) -> list[Case]:
        """The unchanged answers, with the scores that a real run would count."""
        return [case for case in self.after_rules if case.original]

    @property
    def second_reader(self) -> list[Case]:
        """The unchanged answers that have a second reader's scores, with these as the grader's."""
        return [each for case in self.originals if (each := case.second_reader()).scores]

    def traps(self) -> dict[str, tuple[int, list[str]]]:
        """Return by kind the number of traps with a value, and those it fell for."""
        set_: dict[str, list[Case]] = {}
        for case in self.originals:
            if case.fell is not None:
                set_.setdefault(case.reference.kind, []).append(case)
        return {
            kind: (len(cases), [case.reference.item for case in cases if case.fell])
            for kind, cases in set_.items()
        }


def _logs(paths: Sequence[str]) -> Iterator[EvalLog]:
    for path in paths:
        folder = Path(path).is_dir()
        if not folder and "://" not in path and not Path(path).is_file():
            raise NotFoundError(f"{path}: no such file or folder")
        names = [info.name for info in list_eval_logs(path, descending=False)] if folder else [path]
        ours = 0
        for name in names:
            with reading(name, "not a log of Inspect ({})"):
                header = read_eval_log(name, header_only=True)
                if MARK not in (header.eval.metadata or {}):
                    continue
                log = read_eval_log(name)
            if log.status == "started":
                raise DataError(f"{name}: the run is still going on, or was killed")
            ours += 1
            yield log
        if not ours:
            what = "no log of the grader calibration" + (" in this folder" if folder else "")
            raise DataError(f"{path}: {what}; make one: inspect eval tasks/grader_calibration.py")


def _results(log: EvalLog) -> Iterator[GraderResult]:
    """Yield a result for each grader of a log; for a panel its median first."""
    scored = [
        (sample, score, _logged(f"{log.location}: sample {sample.id}", score))
        for sample in log.samples or []
        if (score := (sample.scores or {}).get("grader_calibration")) is not None
    ]
    # Each log has one panel: the graders have the same order in every sample.
    panel = next((logged.graders for *_, logged in scored if logged.graders), None)
    if panel is None:
        raise DataError(f"{log.location}: no answer was graded")
    version = str(log.eval.task_version)
    alone = len(panel) == 1
    median = GraderResult(f"median of {len(panel)} graders", log.location, {}, version)
    members = [GraderResult(each.model, log.location, each.parameters, version) for each in panel]
    results = members if alone else [median, *members]
    for sample, score, logged in scored:
        try:
            reference = Reference.model_validate(sample.metadata)
        except ValidationError as error:
            where = f"{log.location}: sample {sample.id}: metadata"
            raise DataError(f"{where}: of another version") from error
        metadata = score.metadata or {}
        whole = results[0]
        whole.cases.append(Case(reference, logged.scores))
        if not logged.scores:
            whole.failures[(score.reason or "unknown").removeprefix("grader_failed: ")] += 1
        whole.after_rules.append(Case(reference, logged.after_rules))
        for number, result in enumerate([] if alone else members):
            known = number < len(logged.graders)
            own = logged.graders[number] if known else GraderScores(model="")
            result.cases.append(Case(reference, own.scores))
            if not own.scores:
                result.failures[own.failure or "unknown"] += 1
        if reference.variant != "language_swapped":
            for result in results:
                language = str(metadata.get("language", ""))
                result.contexts.add(str(metadata.get("grader_context", "")))
                result.rubrics[language] = str(metadata.get("rubric_digest", ""))
    yield from results


def _logged(where: str, score: Score) -> LoggedScores:
    try:
        return LoggedScores.model_validate(score.metadata or {})
    except ValidationError as error:
        raise DataError(describe_validation_error(where, error)) from error


def _lines(result: GraderResult) -> Iterator[str]:
    """Yield the lines about one grader: agreement, traps, and variants if there were any."""
    yield f"Grader: {printable(result.name, 200)}"
    yield f"Log: {printable(local_path(result.log), 400)}"
    settings = ", ".join(f"{name}={value}" for name, value in result.parameters.items())
    rubrics = ", ".join(f"{name} {digest[:12]}" for name, digest in sorted(result.rubrics.items()))
    yield printable(
        f"Parameters: {settings or 'the provider’s own'}; rubric: {rubrics}; "
        f"context: {', '.join(sorted(result.contexts))}; task version: {result.version}",
        600,
    )
    if failed := result.failures.total():
        (reason, _), *others = result.failures.most_common()
        why = printable(f"{reason}{' and others' if others else ''}", 400)
        yield f"Without a usable reply: {failed} of {len(result.cases)} gradings ({why})"
        if failed == len(result.cases):
            return
    yield ""
    yield from table_lines(_agreement(result))
    yield ""
    if result.second_reader:
        yield "A second reader, who marked the answers without seeing these marks, is off by:"
        yield from table_lines(_second_reader(result))
        yield ""
    yield from table_lines(_traps(result), longest=200)
    variants = _variants(result)
    if variants.rows:
        yield ""
        yield "How far a change that should not count moves the scores, in points:"
        yield from table_lines(variants)


def _agreement(result: GraderResult) -> Table:
    heads = ["dimension", "answers", "error", "bias", "Spearman", "kappa", "95 % interval"]
    heads += ["error after rules"] if result.after_rules else []
    rows = []
    for key in KEYS:
        measured = agreement(result.originals, key)
        row = [
            key,
            str(measured.answers),
            _number(measured.error),
            _number(measured.bias, signed=True),
            _number(measured.rank),
            _number(measured.kappa),
            "-" if math.isnan(measured.low) else f"{measured.low:.2f} to {measured.high:.2f}",
        ]
        if result.after_rules:
            row.append(_number(agreement(result.original_after_rules, key).error))
        rows.append(row)
    return Table(heads, rows)


def _second_reader(result: GraderResult) -> Table:
    both = [case for case in result.originals if case.scores and case.reference.second_scores]
    heads = ["dimension", "answers", "error", "bias", "kappa", "grader's error on these"]
    rows = []
    for key in KEYS:
        m = agreement([case.second_reader() for case in both], key)
        row = [str(m.answers), _number(m.error), _number(m.bias, signed=True), _number(m.kappa)]
        rows.append([key, *row, _number(agreement(both, key).error)])
    return Table(heads, rows)


def _traps(result: GraderResult) -> Table:
    traps = result.traps()
    rows = [
        [kind, f"{len(fell)} of {number}", ", ".join(fell)]
        for kind, (number, fell) in traps.items()
    ]
    fallen = sum(len(fell) for _, fell in traps.values())
    whole = ["all", f"{fallen} of {sum(number for number, _ in traps.values())}", ""]
    return Table(["trap", "sprung", "answers that it fell for"], [*rows, whole], texts=(2,))


def _variants(result: GraderResult) -> Table:
    rows = []
    for variant, shifts in moved(result.cases).items():
        whole, *means = [_number(_mean(shifts[key])) for key in KEYS]
        most = _number(max(shifts[OVERALL], default=math.nan))
        rows.append([variant, str(len(shifts[OVERALL])), whole, most, *means])
    return Table(["variant", "answers", "overall, mean", "overall, most", *KEYS[1:]], rows)


def _data(result: GraderResult) -> dict[str, Any]:
    """Return a result as data for JSON; missing values are null."""
    compared: dict[str, dict[str, Any]] = {}
    for key in KEYS:
        compared[key] = asdict(agreement(result.originals, key))
        if result.after_rules:
            after = agreement(result.original_after_rules, key)
            compared[key]["error_after_rules"] = after.error
    return {
        "grader": result.name,
        "log": result.log,
        "parameters": result.parameters,
        "task_version": result.version,
        "rubric_digests": result.rubrics,
        "grader_context": sorted(result.contexts),
        "gradings": len(result.cases),
        "failures": result.failures.total(),
        "agreement": {key: _without_nan(values) for key, values in compared.items()},
        "second_reader": {
            key: _without_nan(asdict(agreement(result.second_reader, key))) for key in KEYS
        }
        if result.second_reader
        else None,
        "traps": {
            kind: {"answers": number, "sprung": fell}
            for kind, (number, fell) in result.traps().items()
        },
        "moved": {
            variant: _without_nan({key: _mean(shifts[key]) for key in KEYS})
            for variant, shifts in moved(result.cases).items()
        },
    }


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else math.nan


def _without_nan(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in values.items()
    }


def _number(value: float, *, signed: bool = False) -> str:
    if math.isnan(value):
        return "-"
    # Without the sign of a zero.
    return f"{value + 0.0:+.2f}" if signed else f"{round(value, 2) + 0.0:.2f}"
