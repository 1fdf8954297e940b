"""``compression-eval grader``: tables and data on graders, from logs of the calibration task.

The gradings of a log are sorted by grader (of a panel there is its median, too), compared with the
references (`scoring.agreement`), and printed with the traps and, if they were graded, the changes
that should not move a score.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from inspect_ai.log import EvalLog, EvalSample, list_eval_logs, read_eval_log
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

_Graded = tuple[Case, str]
"""An answer with a grader's scores, and why it has none."""

_NOTHING = GraderScores(model="")


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
    """Measure how well graders agree with a careful reader.

    LOG is a log of tasks/grader_calibration.py, or a folder of logs. For each grader and
    dimension the output has the mean error and bias in points (above 0: lenient), Spearman's
    correlation, and the quadratic weighted kappa with its 95 % interval; then the traps that
    the grader fell for, and how far changes that should not count moved its scores. If the
    answers have a second reader's scores, that reader's agreement is shown too.
    """
    found = [result for log in _logs(logs) for result in _results(log)]
    if form == "json":
        click.echo(versioned_json({"graders": found}), nl=False)
        return
    click.echo("\n\n".join("\n".join(_lines(data)) for data in found))
    if all(data["failures"] == data["gradings"] for data in found):
        raise DataError("no answer was graded")


def _logs(paths: Sequence[str]) -> Iterator[EvalLog]:
    for path in paths:
        folder = Path(path).is_dir()
        if not folder and "://" not in path and not Path(path).is_file():
            raise NotFoundError(f"{path}: no such file or folder")
        names = [info.name for info in list_eval_logs(path, descending=False)] if folder else [path]
        ours = 0
        for name in names:
            with reading(name, "not a log of Inspect, or a damaged one ({})"):
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


def _results(log: EvalLog) -> Iterator[dict[str, Any]]:
    """Yield the data on each grader of a log, for JSON; for a panel its median first."""
    scored = [
        (_reference(log, sample), *_logged(f"{log.location}: sample {sample.id}", score))
        for sample in log.samples or []
        if (score := (sample.scores or {}).get("grader_calibration")) is not None
    ]
    # Each log has one panel: the graders have the same order in every sample.
    panel = next((logged.graders for _, logged, *_ in scored if logged.graders), None)
    if panel is None:
        raise DataError(f"{log.location}: no answer was graded")
    rubrics: dict[str, str] = {}
    contexts: set[str] = set()
    for reference, _, _, metadata in scored:
        if reference.variant != "language_swapped":
            rubrics[str(metadata.get("language", ""))] = str(metadata.get("rubric_digest", ""))
            contexts.add(str(metadata.get("grader_context", "")))

    def data(name: str, parameters: object, graded: Sequence[_Graded]) -> dict[str, Any]:
        cases = [case for case, _ in graded]
        originals = [case for case in cases if case.original]
        second = [each for case in originals if (each := case.second_reader()).scores]
        failures = Counter(why for case, why in graded if not case.scores)
        not_marked = Counter(
            name for each in originals for name in each.scores if name not in each.reference.scores
        )
        return {
            "grader": name,
            "log": log.location,
            "parameters": parameters,
            "task_version": str(log.eval.task_version),
            "rubric_digests": rubrics,
            "grader_context": sorted(contexts),
            "gradings": len(cases),
            "failures": failures.total(),
            "reasons": dict(failures.most_common()),
            "not_marked": dict(not_marked),
            "agreement": _compared(originals),
            "second_reader": _compared(second) if second else None,
            "traps": _traps(originals),
            "moved": {
                variant: {key: statistics.fmean(own) if own else None for key, own in by.items()}
                for variant, by in moved(cases).items()
            },
        }

    alone = len(panel) == 1
    whole = data(
        panel[0].model if alone else f"median of {len(panel)} graders",
        panel[0].parameters if alone else {},
        [(Case(reference, logged.scores), why) for reference, logged, why, _ in scored],
    )
    after = [Case(reference, logged.after_rules) for reference, logged, *_ in scored]
    for key, values in _compared([case for case in after if case.original]).items():
        whole["agreement"][key]["error_after_rules"] = values["error"]
    yield whole
    for place, member in enumerate(() if alone else panel):
        own = [
            (reference, logged.graders[place] if place < len(logged.graders) else _NOTHING)
            for reference, logged, *_ in scored
        ]
        graded = [(Case(ref, each.scores), each.failure or "unknown") for ref, each in own]
        yield data(member.model, member.parameters, graded)


def _reference(log: EvalLog, sample: EvalSample) -> Reference:
    try:
        return Reference.model_validate(sample.metadata)
    except ValidationError as error:
        where = f"{log.location}: sample {sample.id}: metadata"
        raise DataError(f"{where}: of another version") from error


def _logged(where: str, score: Score) -> tuple[LoggedScores, str, dict[str, Any]]:
    """Return the scores of an answer, why it has none, and the score's metadata."""
    metadata = score.metadata or {}
    try:
        logged = LoggedScores.model_validate(metadata)
    except ValidationError as error:
        raise DataError(describe_validation_error(where, error)) from error
    return logged, (score.reason or "unknown").removeprefix("grader_failed: "), metadata


def _traps(cases: Sequence[Case]) -> dict[str, dict[str, Any]]:
    """Return by kind the number of traps with a value, and those that a grader fell for."""
    found: dict[str, dict[str, Any]] = {}
    for case in cases:
        if case.fell is not None:
            of_kind = found.setdefault(case.reference.kind, {"answers": 0, "sprung": []})
            of_kind["answers"] += 1
            of_kind["sprung"] += [case.reference.item] if case.fell else []
    return found


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
    if data["not_marked"]:
        names = ", ".join(f"{name} {number}" for name, number in data["not_marked"].items())
        yield f"Not compared, since the answers have no mark for it: {names}"
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
