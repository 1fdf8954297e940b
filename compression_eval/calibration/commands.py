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
from compression_eval.calibration.scoring import (
    KEYS,
    Case,
    GraderScores,
    LoggedScores,
    Reference,
    agreement,
    moved,
)
from compression_eval.calibration.task import MARK
from compression_eval.errors import DataError, NotFoundError, describe_validation_error
from compression_eval.fixtures.finding_files import local_path
from compression_eval.fixtures.writing import versioned_json
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
    found = [_data(result) for log in _logs(logs) for result in _results(log)]
    if form == "json":
        click.echo(versioned_json({"graders": found}), nl=False)
        return
    click.echo("\n\n".join("\n".join(_lines(data)) for data in found))
    if all(data["failures"] == data["gradings"] for data in found):
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

    def traps(self) -> dict[str, dict[str, Any]]:
        """Return by kind the number of traps with a value, and those it fell for."""
        found: dict[str, dict[str, Any]] = {}
        for case in self.originals:
            if case.fell is not None:
                of_kind = found.setdefault(case.reference.kind, {"answers": 0, "sprung": []})
                of_kind["answers"] += 1
                of_kind["sprung"] += [case.reference.item] if case.fell else []
        return found


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


def _data(result: GraderResult) -> dict[str, Any]:
    """Return a result as data for JSON; missing values are null."""
    after = [case for case in result.after_rules if case.original]
    second = [each for case in result.originals if (each := case.second_reader()).scores]
    compared = _compared(result.originals)
    for key, values in _compared(after).items() if after else ():
        compared[key]["error_after_rules"] = values["error"]
    return {
        "grader": result.name,
        "log": result.log,
        "parameters": result.parameters,
        "task_version": result.version,
        "rubric_digests": result.rubrics,
        "grader_context": sorted(result.contexts),
        "gradings": len(result.cases),
        "failures": result.failures.total(),
        "reasons": dict(result.failures.most_common()),
        "agreement": compared,
        "second_reader": _compared(second) if second else None,
        "traps": result.traps(),
        "moved": {
            variant: {key: statistics.fmean(own) if own else None for key, own in shifts.items()}
            for variant, shifts in moved(result.cases).items()
        },
    }


def _compared(cases: Sequence[Case]) -> dict[str, dict[str, Any]]:
    return {
        key: {
            name: None if math.isnan(value) else value
            for name, value in asdict(agreement(cases, key)).items()
        }
        for key in KEYS
    }


def _lines(data: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about one grader: agreement, traps, and variants if there were any."""
    yield f"Grader: {printable(data['grader'], 200)}"
    yield f"Log: {printable(local_path(data['log']), 400)}"
    settings = ", ".join(f"{name}={value}" for name, value in data["parameters"].items())
    rubrics = ", ".join(f"{name} {it[:12]}" for name, it in sorted(data["rubric_digests"].items()))
    yield printable(
        f"Parameters: {settings or 'the provider’s own'}; rubric: {rubrics}; "
        f"context: {', '.join(data['grader_context'])}; task version: {data['task_version']}",
        600,
    )
    if failed := data["failures"]:
        reason, *others = data["reasons"]
        why = printable(f"{reason}{' and others' if others else ''}", 400)
        yield f"Without a usable reply: {failed} of {data['gradings']} gradings ({why})"
        if failed == data["gradings"]:
            return
    yield ""
    yield from table_lines(_agreement(data["agreement"]))
    yield ""
    if data["second_reader"]:
        yield "A second reader, who marked the answers without seeing these marks, is off by:"
        yield from table_lines(_agreement(data["second_reader"]))
        yield ""
    traps = data["traps"].items()
    sprung = [
        [kind, f"{len(each['sprung'])} of {each['answers']}", ", ".join(each["sprung"])]
        for kind, each in traps
    ]
    whole = [sum(len(each["sprung"]) for _, each in traps), sum(e["answers"] for _, e in traps)]
    heads = ["trap", "sprung", "answers that it fell for"]
    rows = [*sprung, ["all", f"{whole[0]} of {whole[1]}", ""]]
    yield from table_lines(Table(heads, rows, texts=(2,)), longest=200)
    if data["moved"]:
        yield ""
        yield "How far a change that should not count moves the scores, in points:"
        rows = [[name, *map(_number, means.values())] for name, means in data["moved"].items()]
        yield from table_lines(Table(["variant", *KEYS], rows))


def _agreement(compared: dict[str, dict[str, Any]]) -> Table:
    heads = ["dimension", "answers", "error", "bias", "Spearman", "kappa", "95 % interval"]
    after = any("error_after_rules" in each for each in compared.values())
    rows = []
    for key, each in compared.items():
        interval = f"{_number(each['low'])} to {_number(each['high'])}"
        rows.append(
            [
                key,
                str(each["answers"]),
                _number(each["error"]),
                _number(each["bias"], signed=True),
                _number(each["rank"]),
                _number(each["kappa"]),
                "-" if each["low"] is None else interval,
                *([_number(each["error_after_rules"])] if after else []),
            ]
        )
    return Table([*heads, *(["error after rules"] if after else [])], rows)


def _number(value: float | None, *, signed: bool = False) -> str:
    if value is None:
        return "-"
    # Without the sign of a zero.
    return f"{value + 0.0:+.2f}" if signed else f"{round(value, 2) + 0.0:.2f}"
