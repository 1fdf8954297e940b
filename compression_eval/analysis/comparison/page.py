"""A comparison as a page for people."""

from collections.abc import Iterator

from compression_eval.analysis.arms import ARGUMENT, prompt_file
from compression_eval.analysis.comparison import wording
from compression_eval.analysis.comparison.blocks import Lines, Section, Table
from compression_eval.analysis.comparison.details import (
    breakdown_sections,
    fact_sections,
    flip_sections,
    noise_section,
    spread_section,
)
from compression_eval.analysis.comparison.drift import drift_section
from compression_eval.analysis.comparison.measures import no_language_model
from compression_eval.analysis.comparison.result import Comparison
from compression_eval.analysis.comparison.sides import Side
from compression_eval.fixtures.digests import digest, shown
from compression_eval.grading.rubric import KNOWLEDGE

_VERDICTS = 7
"""Columns of a line behind the name of its measure; the last one is no number."""


def page(found: Comparison, *, gate: bool = False) -> list[Section]:
    """Return a comparison as sections.

    Args:
        found: The comparison.
        gate: Only the decision.
    """
    sections = [_decision(found), _arms(found)]
    if not gate:
        sections.append(_others(found))
        sections.extend(_noise(found))
        sections.append(_failures(found))
        if found.drift is not None:
            sections.append(drift_section(found.drift))
        sections.extend(breakdown_sections(found))
        sections.extend(noise_section(found))
        sections.extend(fact_sections(found))
        sections.extend(flip_sections(found))
        sections.extend(spread_section(found))
        sections.append(_method(found))
        sections.append(Section("", [Lines([f"{': '.join(found.outcome)}"])]))
    return sections


def _decision(found: Comparison) -> Section:
    """Say first what it comes to, and the figures that this rests on."""
    seen, by = found.knowledge, found.decision
    here = wording.interval(seen.here, seen.estimate, KNOWLEDGE)
    elsewhere = wording.interval(seen.elsewhere, seen.estimate, KNOWLEDGE)
    lines = [
        ": ".join(found.outcome),
        f"knowledge (0 to 5): {wording.value(seen.base, KNOWLEDGE)} -> "
        f"{wording.value(seen.new, KNOWLEDGE)}, "
        f"{wording.change(seen.estimate, KNOWLEDGE, found.rules.threshold)}, "
        f"p {wording.probability(by.p_value)}; a loss of {found.rules.threshold:.2f} or more: "
        f"p {wording.probability(by.p_margin)}",
        f"95 % intervals: on these conversations {here}, for new conversations {elsewhere}",
    ]
    if found.elsewhere is not None and not found.same_answers:
        verdict = found.elsewhere.verdict
        said = {"cannot tell": "cannot be told"}.get(verdict, verdict)
        said += f" by more than {found.rules.threshold:.2f}" if verdict == "not worse" else ""
        lines.append(f"for new conversations such as these: {said}")
    if found.failing is not None and by.verdict != "fails more":
        base, new = found.failed
        lines.append(
            f"failed: base {wording.failed(base)}; new {wording.failed(new)} "
            f"(p that it fails more {wording.probability(by.p_failing)})"
        )
    if found.more is not None:
        answers = (_answers(found.base), _answers(found.new))
        lines.append(wording.what_would_tell(found.more, seen, answers, blocked=by.blocked))
    return Section("", [Lines(lines)])


def _answers(side: Side) -> int:
    """Return how often each probe was answered from one compression."""
    return int(side.samples.groupby(["unit", "sample", "log_path", "state"]).size().max())


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
        yield from _mixed(side)
    if found.base.regraded is not None and found.new.regraded is not None:
        yield wording.regraded(found.base.regraded, found.new.regraded)
    if found.drift is not None and (warning := found.drift.warning):
        yield warning
    for obstacle in found.allowed:
        yield f"allowed to differ: {obstacle}"


def _mixed(side: Side) -> Iterator[str]:
    """Warn of different things under one mean."""
    cuts = side.samples.groupby("fixture")["cut"].unique()
    several = [
        f"{name} at {', '.join(map(str, sorted(at)))}" for name, at in cuts.items() if len(at) > 1
    ]
    if several:
        yield (
            f"WARNING: {side.label} mixes cuts: {'; '.join(several[:3])}; their probes are "
            "averaged within the conversation"
        )
    cycles = sorted({int(count) for count in side.samples["cycles"].dropna()})
    if len(cycles) > 1:
        yield f"WARNING: {side.label} mixes states of {cycles} cycles under one mean"


def _short(side: Side, name: str, text: str) -> str:
    file = prompt_file(side.logs[0]) if name == f"{ARGUMENT}prompt" else None
    return file or (text if len(text) <= 24 else f"{shown(digest(text))}…")


def _others(found: Comparison) -> Section:
    bounds = {line.measure: line.difference.estimate for line in found.bound}
    rows = []
    for line in found.lines:
        cells = wording.line_cells(line, found.rules.threshold)
        if bounds:
            cells.insert(-1, wording.change(bounds[line.measure], line.measure))
        rows.append([wording.measure_name(line.measure), *cells])
    heads = list(wording.LINE_HEADS)
    if bounds:
        heads.insert(-1, "failed as 0")
    table = Table(["", *heads], rows, (1, _VERDICTS + bool(bounds)))
    return Section("Other measures (exploratory: say where to look, decide nothing)", [table])


def _noise(found: Comparison) -> Iterator[Section]:
    """Say what two runs of one arm differ by, where that is what was compared."""
    if not found.same_arm:
        return
    rows = []
    measured = [(KNOWLEDGE, found.knowledge)]
    measured += [(line.measure, line.difference) for line in found.lines]
    for name, difference in measured:
        here = difference.here
        if here is None or here.error == 0:
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
        ("", "compressions failed", "samples failed", "not graded"),
        [
            (
                label,
                f"{each.failed_states} of {each.states}",
                wording.failed(each),
                wording.ungraded(each),
            )
            for label, each in (("base", base), ("new", new))
        ],
        (1, 1),
    )
    lines = ["the new arm fails more often, so nothing is called better"]
    return Section("Failures", [table, *([Lines(lines)] if found.rules.failures_rise else [])])


def _method(found: Comparison) -> Section:
    seen = found.knowledge
    behind = (
        f"behind knowledge: probes {seen.probes}, conversations {seen.fixtures}, "
        f"compressions {seen.states[0]} and {seen.states[1]}"
    )
    lines = [wording.FORMULA, *wording.INTERVALS, wording.FAMILY, behind]
    return Section("How it was computed", [Lines(lines)])
