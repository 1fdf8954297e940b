"""A comparison as other programs read it: JSON, and JUnit XML for CI services."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from compression_eval._version import __version__
from compression_eval.analysis.comparison import wording
from compression_eval.analysis.comparison.blocks import as_text
from compression_eval.analysis.comparison.drift import Drift
from compression_eval.analysis.comparison.failures import Failures
from compression_eval.analysis.comparison.judging import Line
from compression_eval.analysis.comparison.page import page
from compression_eval.analysis.comparison.result import EXIT_CODES, Comparison
from compression_eval.analysis.comparison.sides import Side
from compression_eval.analysis.comparison.splitting import SideSpread
from compression_eval.analysis.report.texts import clean
from compression_eval.analysis.statistics.intervals import Difference, Spread
from compression_eval.fixtures.writing import versioned_json
from compression_eval.grading.rubric import KNOWLEDGE

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
        gate: Only the arms, the decision and the measures beside it.
    """
    outcome, why = found.outcome
    data: dict[str, Any] = {
        "compression_eval": __version__,
        "outcome": outcome,
        "why": why,
        "exit_code": EXIT_CODES[outcome],
        "margin": found.rules.threshold,
        "decision": _decision(found),
        "same_arm": found.same_arm,
        "mechanical": found.mechanical,
        "allowed": {each.name: each.detail for each in found.allowed},
        "anchors": _drift(found.drift) if found.drift else None,
        "base": _side(found.base, found.failed[0]),
        "new": _side(found.new, found.failed[1]),
        "settings_changed": [
            {"name": name, "base": old, "new": new} for name, old, new in found.changed_settings
        ],
        "other_measures": [_line(line) for line in found.lines],
        "formula": wording.FORMULA,
    }
    if not gate:
        data |= {
            "by_chance": asdict(found.noise) if found.noise else None,
            "failed_as_0": [_line(line) for line in found.bound],
            "exploratory": {
                column: [_line(line) for line in lines]
                for column, lines in found.breakdowns.items()
            },
            "facts": [asdict(change) for change in found.facts],
            "flips": [asdict(flip) | {"missed_now": flip.missed_now} for flip in found.flips],
            "spread": _spreads(found.spread) if found.spread else None,
        }
    return versioned_json(data)


def _decision(found: Comparison) -> dict[str, Any]:
    by, seen, elsewhere = found.decision, found.knowledge, found.elsewhere
    return {
        "measure": KNOWLEDGE,
        **_difference(seen),
        "verdict": by.verdict,
        "decided_over_conversations": by.over_conversations,
        "p": by.p_value,
        "p_loss_of_margin": by.p_margin,
        "p_fails_more": by.p_failing,
        "failed_as_0": found.failing.cost if found.failing else None,
        "verdict_for_new_conversations": elsewhere.verdict if elsewhere else None,
        "same_answers": found.same_answers,
        "would_tell": asdict(found.more) if found.more else None,
    }


def _difference(found: Difference) -> dict[str, Any]:
    return {
        "base": found.base,
        "new": found.new,
        "change": found.estimate,
        "on_these_conversations": _interval(found.here, found.estimate),
        "for_new_conversations": _interval(found.elsewhere, found.estimate),
        "probes": found.probes,
        "fixtures": found.fixtures,
        "compressions": list(found.states),
    }


def _side(side: Side, failed: Failures) -> dict[str, Any]:
    return {
        "arm": side.arm,
        "logs": side.paths,
        "settings": side.settings,
        "versions": side.versions,
        "graded_by": side.graders,
        "regraded": asdict(side.regraded) if side.regraded else None,
        "self_graded": bool((side.samples["self_graded"] == True).any()),  # noqa: E712
        "fixtures": int(side.samples["fixture"].nunique()),
        "probes": int(side.samples["sample"].nunique()),
        "failures": asdict(failed) | {"rate": failed.rate, "ungraded_rate": failed.ungraded_rate},
    }


def _drift(found: Drift) -> dict[str, Any]:
    return {
        "graded": list(found.graded),
        "failed": list(found.failed),
        "shared": found.shifts[0].anchors if found.shifts else 0,
        "warning": found.warning,
        "too_few": found.too_few,
        "off_by": [
            {
                "measure": each.measure,
                "base": each.base,
                "new": each.new,
                "drift": each.change,
                "interval": _interval(each.spread, each.change),
            }
            for each in found.shifts
        ],
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        **({"group": line.group} if line.group else {}),
        "measure": line.measure,
        **_difference(line.difference),
        "p_adjusted": line.judged.p_value,
        "verdict": line.judged.verdict,
        "why": line.judged.why,
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


def as_junit(found: Comparison) -> str:
    """Return a comparison as JUnit XML: a case for the outcome, one for each measure.

    Only the outcome fails (a regression) or is an error (it cannot be told); what a measure beside
    it did stands in its case, skipped where it is not known.
    """
    outcome, why = found.outcome
    cases = [_case("outcome", _TAGS.get(outcome, ""), f"{outcome}: {why}"), *_measures(found)]
    return _written(cases, as_text(page(found, gate=True)))


def refusal_as_junit(why: str) -> str:
    """Return JUnit XML of two sides that could not be compared."""
    return _written([_case("outcome", "error", f"could not be compared: {why}")], "")


def _measures(found: Comparison) -> Iterator[Element]:
    for line in found.lines:
        cells = wording.line_cells(line, found.rules.threshold)
        said = f"{cells[0]} -> {cells[1]} ({cells[2]}), {cells[-1]}: {line.judged.why}"
        tag = "skipped" if line.judged.verdict == "cannot tell" else ""
        yield _case(line.measure, tag, said)


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
