"""A grader's calibration as tables for a terminal, and as data."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from compression_eval.analysis.tables import Table, printable, table_lines
from compression_eval.calibration.agreement import agreement
from compression_eval.calibration.cases import KEYS, moved, present
from compression_eval.calibration.results import GraderResult, mean_moved, pairs


def lines(result: GraderResult) -> Iterator[str]:
    """Yield the lines about one grader: agreement, traps, and variants if there were any."""
    yield f"Grader: {printable(result.name, 200)}"
    yield f"Log: {printable(result.log, 400)}"
    settings = ", ".join(f"{name}={value}" for name, value in result.parameters.items())
    rubrics = ", ".join(f"{name} {digest[:12]}" for name, digest in sorted(result.rubrics.items()))
    yield printable(
        f"Parameters: {settings or 'the provider’s own'}; rubric: {rubrics}; "
        f"context: {', '.join(sorted(result.contexts))}; task version: {result.version}",
        600,
    )
    if result.failures:
        yield f"Without a usable reply: {result.failures} of {len(result.cases)} gradings"
    yield ""
    yield from table_lines(_agreement(result))
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
    after = [case for case in result.after_rules if case.original]
    for key in KEYS:
        found = agreement(*pairs(result.originals, key))
        row = [
            key,
            str(found.answers),
            _number(found.error),
            _number(found.bias, signed=True),
            _number(found.rank),
            _number(found.kappa),
            "-" if math.isnan(found.low) else f"{found.low:.2f} to {found.high:.2f}",
        ]
        if result.after_rules:
            row.append(_number(agreement(*pairs(after, key)).error))
        rows.append(row)
    return Table(heads, rows)


def _traps(result: GraderResult) -> Table:
    rows = []
    found = result.traps()
    for kind, fell in found.items():
        rows.append([kind, f"{len(fell)} of {result.trapped(kind)}", ", ".join(fell)])
    whole = sum(len(fell) for fell in found.values())
    rows.append(["all", f"{whole} of {sum(map(result.trapped, found))}", ""])
    return Table(["trap", "sprung", "answers that it fell for"], rows, texts=(2,))


def _variants(result: GraderResult) -> Table:
    rows = []
    for variant, shifts in moved(result.cases).items():
        by_key = {key: present([shift[key] for shift in shifts]) for key in KEYS}
        overall = by_key[KEYS[0]]
        rows.append(
            [
                variant,
                str(len(overall)),
                _number(mean_moved(overall)),
                _number(max(map(abs, overall), default=math.nan)),
                *(_number(mean_moved(by_key[key])) for key in KEYS[1:]),
            ]
        )
    return Table(["variant", "answers", "overall, mean", "overall, most", *KEYS[1:]], rows)


def as_data(result: GraderResult) -> dict[str, Any]:
    """Return the same as data for JSON; what has no value is null."""
    after = [case for case in result.after_rules if case.original]
    return {
        "grader": result.name,
        "log": result.log,
        "parameters": result.parameters,
        "task_version": result.version,
        "rubric_digests": result.rubrics,
        "grader_context": sorted(result.contexts),
        "gradings": len(result.cases),
        "failures": result.failures,
        "agreement": {
            key: {
                **_without_nan(asdict(agreement(*pairs(result.originals, key)))),
                **(
                    _without_nan({"error_after_rules": agreement(*pairs(after, key)).error})
                    if result.after_rules
                    else {}
                ),
            }
            for key in KEYS
        },
        "traps": {
            kind: {"answers": result.trapped(kind), "sprung": fell}
            for kind, fell in result.traps().items()
        },
        "moved": {
            variant: _without_nan(
                {key: mean_moved(present([shift[key] for shift in shifts])) for key in KEYS}
            )
            for variant, shifts in moved(result.cases).items()
        },
    }


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
