"""A comparison as other programs read it: JSON, and JUnit XML for CI services."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from compression_eval._version import __version__
from compression_eval.analysis.comparison import wording
from compression_eval.analysis.comparison.blocks import as_text
from compression_eval.analysis.comparison.failures import Failures
from compression_eval.analysis.comparison.judging import Line
from compression_eval.analysis.comparison.page import page
from compression_eval.analysis.comparison.result import EXIT_CODES, Comparison
from compression_eval.analysis.comparison.sides import Side
from compression_eval.analysis.comparison.splitting import SideSpread
from compression_eval.analysis.report.texts import clean
from compression_eval.analysis.statistics.intervals import Spread
from compression_eval.grading.six_dimensions import OVERALL

_SUITE = "compression-eval compare"
_LONGEST = 20_000
_TAGS = {"regression": "failure", "cannot tell": "error"}
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def as_json(found: Comparison, *, gate: bool = False) -> str:
    """Return a comparison as a JSON object.

    Scores and their differences are from 0 to 5, shares from 0 to 1, intervals ``[low, high]`` at
    95 %, and what is not known is null.

    Args:
        found: The comparison.
        gate: Only the arms, the headline and the verdict.
    """
    outcome, why = found.outcome(gate=gate)
    data: dict[str, Any] = {
        "compression_eval": __version__,
        "outcome": outcome,
        "why": why,
        "exit_code": EXIT_CODES[outcome],
        "threshold": found.rules.threshold,
        "same_arm": found.same_arm,
        "mechanical": found.mechanical,
        "allowed": {each.name: each.detail for each in found.allowed},
        "base": _side(found.base, found.failed[0]),
        "new": _side(found.new, found.failed[1]),
        "settings_changed": [
            {"name": name, "base": old, "new": new} for name, old, new in found.changed_settings
        ],
        "headline": [_line(line) for line in found.lines],
        "formula": wording.FORMULA,
    }
    if not gate:
        data |= {
            "failed_as_0": [_line(line) for line in found.bound],
            "exploratory": {
                column: [_line(line) for line in lines]
                for column, lines in found.breakdowns.items()
            },
            "facts": [asdict(change) for change in found.facts],
            "flips": [asdict(flip) | {"missed_now": flip.missed_now} for flip in found.flips],
            "spread": _spreads(found.spread) if found.spread else None,
        }
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    # A conversation may hold half of a surrogate pair, which no file can.
    return text.encode("utf-8", "replace").decode("utf-8")


def _side(side: Side, failed: Failures) -> dict[str, Any]:
    return {
        "arm": side.arm,
        "logs": side.paths,
        "settings": side.settings,
        "versions": side.versions,
        "graded_by": side.graders,
        "self_graded": bool((side.samples["self_graded"] == True).any()),  # noqa: E712
        "fixtures": int(side.samples["fixture"].nunique()),
        "probes": int(side.samples["sample"].nunique()),
        "failures": asdict(failed) | {"rate": failed.rate},
    }


def _line(line: Line) -> dict[str, Any]:
    found = line.difference
    return {
        **({"group": line.group} if line.group else {}),
        "measure": line.measure,
        "base": found.base,
        "new": found.new,
        "change": found.estimate,
        "on_these_conversations": _interval(found.here, found.estimate),
        "for_new_conversations": _interval(found.elsewhere, found.estimate),
        "p_adjusted": line.judged.p_value,
        "verdict": line.judged.verdict,
        "why": line.judged.why,
        "spread_borrowed": line.borrowed,
        "probes": found.probes,
        "fixtures": found.fixtures,
        "compressions": list(found.states),
    }


def _interval(spread: Spread | None, estimate: float) -> list[float] | None:
    return None if spread is None else list(spread.interval(estimate))


def _spreads(both: Sequence[SideSpread]) -> dict[str, Any]:
    return {
        label: {
            "variances": {name: asdict(parts) for name, parts in side.parts.items()},
            "gradings_left_out": side.others,
            "missing": next(iter(side.parts.values())).missing,
        }
        for label, side in zip(("base", "new"), both, strict=True)
    }


def as_junit(found: Comparison, *, gate: bool = False) -> str:
    """Return a comparison as JUnit XML: a case for the outcome, one for each headline measure.

    What is worse is a failure. What cannot be told is an error where the outcome hangs on it (with
    ``gate`` every measure, else the overall score), and skipped where not.

    Args:
        found: The comparison.
        gate: As for `Comparison.outcome`.
    """
    outcome, why = found.outcome(gate=gate)
    cases = [_case("outcome", _TAGS.get(outcome, ""), f"{outcome}: {why}"), *_measures(found, gate)]
    return _written(cases, as_text(page(found, gate=True)))


def refusal_as_junit(why: str) -> str:
    """Return JUnit XML of two sides that could not be compared."""
    return _written([_case("outcome", "error", f"could not be compared: {why}")], "")


def _measures(found: Comparison, gate: bool) -> Iterator[Element]:
    judged = {line.measure: line for line in found.lines}
    for name in [*judged, *found.one_sided]:
        if name not in judged:
            yield _case(name, "error" if gate else "skipped", "no probe has a value on both sides")
            continue
        line = judged[name]
        cells = wording.line_cells(line, found.rules.threshold)
        said = f"{cells[0]} -> {cells[1]} ({cells[2]}), {line.judged.verdict}: {line.judged.why}"
        tag = {"worse": "failure", "cannot tell": "error"}.get(line.judged.verdict, "")
        if tag == "error" and not gate and name != OVERALL:
            tag = "skipped"
        yield _case(name, tag, said)


def _case(name: str, tag: str, said: str) -> Element:
    case = Element("testcase", {"classname": _SUITE, "name": name, "time": "0"})
    if tag:
        SubElement(case, tag, {"message": clean(said, _LONGEST)})
    else:
        SubElement(case, "system-out").text = clean(said, _LONGEST)
    return case


def _written(cases: list[Element], page: str) -> str:
    counts = {tag: sum(case.find(tag) is not None for case in cases) for tag in _COUNTED}
    numbers = {_COUNTED[tag]: str(count) for tag, count in counts.items()}
    suite = Element("testsuite", {"name": _SUITE, "tests": str(len(cases)), **numbers})
    suite.extend(cases)
    if page:
        SubElement(suite, "system-out").text = clean(page, _LONGEST)
    suites = Element("testsuites")
    suites.append(suite)
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, encoding="unicode")}\n'
