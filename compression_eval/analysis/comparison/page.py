"""A comparison as a page for people."""

from collections.abc import Iterator

from compression_eval.analysis.comparison import wording
from compression_eval.analysis.comparison.blocks import Lines, Section, Table
from compression_eval.analysis.comparison.details import (
    breakdown_sections,
    fact_sections,
    flip_sections,
    spread_section,
)
from compression_eval.analysis.comparison.measures import no_language_model, threshold_of
from compression_eval.analysis.comparison.result import Comparison
from compression_eval.analysis.comparison.sides import ARGUMENT, Side
from compression_eval.analysis.frames import prompt_file
from compression_eval.fixtures.digests import digest, shown
from compression_eval.grading.six_dimensions import OVERALL

_VERDICTS = 7
"""Columns of a line behind the name of its measure; the last one is no number."""


def page(found: Comparison, *, gate: bool = False) -> list[Section]:
    """Return a comparison as sections.

    Args:
        found: The comparison.
        gate: Only the headline and the verdict.
    """
    sections = [_arms(found), _headline(found)]
    if not gate:
        sections.extend(_noise(found))
        sections.append(_failures(found))
        sections.extend(breakdown_sections(found))
        sections.extend(fact_sections(found))
        sections.extend(flip_sections(found))
        sections.extend(spread_section(found))
        sections.append(_method(found))
    sections.append(_verdict(found, gate=gate))
    return sections


def _arms(found: Comparison) -> Section:
    sides = [_side(side) for side in (found.base, found.new)]
    rows = [(name, *(side[name] for side in sides)) for name in sides[0]]
    return Section("", [Table(("", "base", "new"), rows, (1, 1)), Lines([*_notes(found)])])


def _side(side: Side) -> dict[str, str]:
    samples = side.samples
    return {
        "arm": side.arm,
        "logs": str(len(side.logs)),
        "fixtures": str(samples["fixture"].nunique()),
        "probes": str(samples["sample"].nunique()),
        "compressions": str(side.states),
        "model": side.model,
        "compressor model": side.settings["compressor model"],
        "graded by": " | ".join(side.graders),
        "version": ", ".join(side.versions),
    }


def _notes(found: Comparison) -> Iterator[str]:
    if found.same_arm:
        yield "both sides are runs of the same arm: what differs is noise (A/A)"
    else:
        changed = [
            f"{name} ({_short(found.base, name, old)} -> {_short(found.new, name, new)})"
            for name, old, new in found.changed_settings
        ]
        prompts = "what decides the results beside the settings (prompts, code, fixtures)"
        yield f"the arms differ in: {', '.join(changed) or prompts}"
    silent = [side.label for side in (found.base, found.new) if no_language_model(side)]
    if silent:
        yield f"no language model was involved: {' and '.join(silent)}"
    if len(silent) == 2:
        yield "both arms are mechanical and come out the same every time: no noise is expected"
    elif found.mechanical:
        yield (
            f"mechanical compression, the same every time: {' and '.join(found.mechanical)}; "
            "only answers and gradings vary there"
        )
    unread, nothing_else = found.unread
    if unread and not nothing_else:
        yield (
            "the embedded compressor does not read prompts: nothing here tells what the change of "
            f"{', '.join(unread)} does"
        )
    for side in (found.base, found.new):
        if (side.samples["self_graded"] == True).any():  # noqa: E712 - it may be missing
            yield f"self-graded: in {side.label}, a model judged its own answers"
    for obstacle in found.allowed:
        yield f"allowed to differ: {obstacle}"


def _short(side: Side, name: str, text: str) -> str:
    file = prompt_file(side.logs[0]) if name == f"{ARGUMENT}prompt" else None
    return file or (text if len(text) <= 24 else f"{shown(digest(text))}…")


def _headline(found: Comparison) -> Section:
    with_bound = bool(found.bound)
    bounds = {line.measure: line for line in found.bound}
    rows = []
    for line in found.lines:
        cells = wording.line_cells(line, found.rules.threshold)
        if with_bound:
            bound = bounds[line.measure].difference
            cells.insert(-1, wording.change(bound.estimate, line.measure))
        rows.append([wording.measure_name(line.measure), *cells, line.judged.why])
    heads = list(wording.LINE_HEADS)
    if with_bound:
        heads.insert(-1, "failed as 0")
    table = Table(["", *heads, "because"], rows, (1, _VERDICTS + with_bound))
    share = threshold_of("fact_recall", found.rules.threshold)
    notes = [f"a change counts from {found.rules.threshold:g}, of a share from {share * 100:g} pp"]
    if any(line.borrowed for line in found.lines):
        notes.append(
            "* no run differed from another here; judged by the widest spread of the others"
        )
    return Section("", [table, Lines(notes)])


def _noise(found: Comparison) -> Iterator[Section]:
    """Say what two runs of one arm differ by, where that is what was compared."""
    if not found.same_arm:
        return
    rows = []
    for line in found.lines:
        here, name = line.difference.here, line.measure
        if here is None or line.borrowed:
            rows.append([wording.measure_name(name), "-", "-"])
            continue
        low, high = here.interval(0.0)
        half = (high - low) / 2
        rows.append(
            [
                wording.measure_name(name),
                wording.change(here.error, name).lstrip("+"),
                wording.change(half, name).lstrip("+"),
            ]
        )
    yield Section(
        "Noise floor",
        [
            Table(["", "standard error", "95 % within +/-"], rows, (1, 3)),
            Lines(
                ["a change smaller than this is what runs of one arm differ by among themselves"]
            ),
        ],
    )


def _failures(found: Comparison) -> Section:
    base, new = found.failed
    table = Table(
        ("", "compressions failed", "samples without a score"),
        [
            (label, f"{each.failed_states} of {each.states}", wording.failed(each))
            for label, each in (("base", base), ("new", new))
        ],
        (1, 1),
    )
    lines = []
    for line in found.bound:
        if line.measure == OVERALL:
            each = line.difference
            lines.append(
                "with failed samples counted as 0, overall: "
                f"{wording.value(each.base, OVERALL)} -> {wording.value(each.new, OVERALL)}, "
                f"{wording.change(each.estimate, OVERALL)} "
                f"({wording.interval(each.here, each.estimate, OVERALL)}), {line.judged.verdict}"
            )
    if found.rules.failures_rise:
        lines.append("the new arm fails more often, so nothing is called better")
    return Section("Failures", [table, *([Lines(lines)] if lines else [])])


def _method(found: Comparison) -> Section:
    overall = next(line.difference for line in found.lines if line.measure == OVERALL)
    return Section(
        "How it was computed",
        [
            Lines(
                [
                    wording.FORMULA,
                    *wording.INTERVALS,
                    wording.FAMILY,
                    f"behind overall: probes {overall.probes}, fixtures {overall.fixtures}, "
                    f"compressions {overall.states[0]} and {overall.states[1]}",
                ]
            )
        ],
    )


def _verdict(found: Comparison, *, gate: bool) -> Section:
    outcome, why = found.outcome(gate=gate)
    return Section("", [Lines([f"{outcome}: {why}"])])
