"""Output of a comparison: a page, JSON, and JUnit XML for CI services.

`page` yields the sections that terminals and Markdown show: the decision with its figures, then the
details. `as_json` has everything. `as_junit` has a case for the outcome and one for each measure;
only the outcome can fail.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from compression_eval._version import __version__
from compression_eval.analysis.arms import ARGUMENT, prompt_file
from compression_eval.analysis.comparison.changes import FactChange, read_on_one_side
from compression_eval.analysis.comparison.compare import (
    BREAKDOWNS,
    EXIT_CODES,
    Comparison,
    Lines,
)
from compression_eval.analysis.comparison.controls import command_for
from compression_eval.analysis.comparison.measures import (
    RECALL,
    Failures,
    margin_in_facts,
    measure_name,
    shown_change,
    shown_interval,
    shown_p,
    shown_value,
    states_in,
    threshold_of,
)
from compression_eval.analysis.comparison.sides import Arm, Change, differences, tools_changed
from compression_eval.analysis.facts import (
    SPENDING_NOTE,
    FactTotals,
    Spent,
    spending,
    spending_table,
)
from compression_eval.analysis.statistics.intervals import Difference
from compression_eval.analysis.statistics.significance import Judged
from compression_eval.fixtures.digests import digest, shown
from compression_eval.fixtures.writing import versioned_json
from compression_eval.grading import rubric
from compression_eval.grading.rubric import KNOWLEDGE
from compression_eval.text.printable import clean
from compression_eval.text.tables import Section, Table, as_text

FORMULA = f"{rubric.FORMULA}; change = new - base over the probes that both have"
"""How the numbers were computed; printed with every comparison."""

_METHOD = (
    FORMULA,
    "on these conversations: fixtures and probes fixed, the unit is the compression; it decides "
    "the verdict where conversations were compressed more than once",
    "for more like these: the unit is the fixture, Student's t; what to expect of further "
    "conversations of the same kind",
    "knowledge decides, with the failures and the facts in the states; the other tables are "
    "exploratory: p is two-sided, "
    "on these conversations, adjusted by Holm's method for the measures of a table",
)

_SIDES = ("base", "new")
_HERE, _ELSEWHERE = "on these conversations", "for more like these"
_LINE_HEADS = ("base", "new", "change", _HERE, _ELSEWHERE, "p", "verdict")

_NO_INTERVAL = {
    "exact": "exact, since both arms come out the same every time",
    "no spread": "none, since nothing varied between them",
    "-": "not known",
}

MAX_LISTED = 30
"""Facts and probes listed on the page; JSON has all of them."""

MAX_SETTING = 24
MAX_JUNIT_TEXT = 20_000


def page(comparison: Comparison, *, gate: bool = False) -> list[Section]:
    """Return a comparison as sections."""
    decision = Section("", [[*_decision(comparison)]])
    return [decision] if gate else [decision, _arms(comparison), *_details(comparison)]


def _decision(comparison: Comparison) -> Iterator[str]:
    """Yield the outcome, and the figures behind it."""
    seen, by, margin = comparison.knowledge, comparison.decision, comparison.margin
    yield ": ".join(comparison.outcome)
    base, new = (shown_value(mean, KNOWLEDGE) for mean in (seen.base, seen.new))
    means = f"knowledge (0 to 5): {base} -> {new}"
    ruled_out = "" if by.loss_ruled_out else "not "
    yield (
        f"{means}, {shown_change(seen.estimate, KNOWLEDGE, margin)}{_p(by.p_value)}; a loss of "
        f"{margin:.2f} or more ({margin_in_facts(margin)}) is {ruled_out}ruled out"
        f"{_p(by.p_margin)}"
    )
    here, elsewhere = (
        _NO_INTERVAL.get(shown, shown)
        for spread in (seen.here, seen.elsewhere)
        for shown in [shown_interval(spread, seen.estimate, KNOWLEDGE)]
    )
    yield f"95 % interval {_HERE}: {here}; for more conversations like these: {elsewhere}"
    if comparison.elsewhere is not None and not comparison.same_answers:
        verdict = comparison.elsewhere.verdict
        said = {"fails more": "fails more", "cannot tell": "cannot be told"}.get(verdict)
        said = said or ", ".join(comparison.elsewhere.words)
        yield f"knowledge for more conversations like these: {said}"
    if comparison.more is not None:
        yield _what_would_tell(comparison)
    yield from _beside(comparison)
    if comparison.failing is not None and by.verdict != "fails more":
        base, new = map(_failed, comparison.failed)
        chance = "" if by.p_failing is None else f" (p that it fails more {shown_p(by.p_failing)})"
        yield f"failed: base {base}; new {new}{chance}"
    if comparison.base.graders != comparison.new.graders:
        yield "WARNING the graders of base and new differ; grade both alike: inspect score LOG"
    if all(side.no_language_model for side in comparison.sides):
        yield "no language model was involved: a regression check, not what an agent would know"
    if tools := tools_changed(*comparison.sides):
        listed = ", ".join(f"{name} ({old} -> {now})" for name, old, now in tools)
        yield f"made with other versions, which may tell as well: {listed}"


def _beside(comparison: Comparison) -> Iterator[str]:
    """Yield how many facts the states contain, and what the reader answers from the controls."""
    if comparison.facts_kept is None:
        read = [side.label for side in comparison.sides if side.read]
        one = len(read) == 1
        why = f"a reader looked for them only in {read[0]}" if one else "no reader looked for them"
        yield f"facts in the states: not known, since {why} (state_facts=reader)"
    elif not comparison.decision.facts_lost:
        yield f"facts in the states: {comparison.facts_words}"
    wrong = [FactTotals(side.facts).contradicted for side in comparison.sides]
    if None not in wrong:
        base, new = (shown_value(share, RECALL) for share in wrong)
        yield f"facts contradicted in the answers: {base} -> {new}"
    if comparison.no_controls:
        yield f"make the controls of this reader: {command_for(comparison.base)}"
    elif not comparison.weak_reader:
        yield f"controls of this reader: {comparison.controls_words}"


def _p(chance: float | None) -> str:
    return "" if chance is None else f", p {shown_p(chance)}"


def _what_would_tell(comparison: Comparison) -> str:
    """Return the runs needed for a decision if these do not give one."""
    seen, more = comparison.knowledge, comparison.more
    if comparison.decision.blocked or more is None:
        return "more epochs would tell whether it fails more often"
    # An epoch is one of the answers from a compression.
    answers = [
        int(side.samples.groupby(["unit", "probe_id", "log_path", "state"]).size().max())
        for side in comparison.sides
    ]
    ways = []
    if seen.here is None:
        thrice = _both([3 * each for each in answers])
        ways.append(f"a second and third compression (--epochs {thrice} in all)")
    elif more.states is not None:
        now = [round(states / seen.fixtures) for states in seen.states]
        lacking = [max(0, more.states - have) for have in now]
        epochs = [more * each for more, each in zip(lacking, answers, strict=True)]
        ways.append(
            f"about {more.states} compressions of each conversation and side instead of "
            f"{_both(now)} (run both again with --epochs {_both(epochs)} into their folders)"
        )
    if more.fixtures is not None:
        ways.append(f"about {more.fixtures} conversations instead of {seen.fixtures}")
    listed = ", or ".join(ways) or "no affordable number of epochs or conversations"
    return f"what would tell, 4 times out of 5, if the difference is as seen: {listed}"


def _both(numbers: Sequence[int]) -> str:
    base, new = numbers
    return str(base) if base == new else f"{base} of base and {new} of new"


def _arms(comparison: Comparison) -> Section:
    sides = comparison.sides
    rows = [
        ("arm", *(side.name for side in sides)),
        ("logs", *(str(len(side.logs)) for side in sides)),
        ("fixtures", *(str(side.samples["fixture"].nunique()) for side in sides)),
        ("probes", *(str(side.samples["sample"].nunique()) for side in sides)),
        ("compressions", *(str(len(states_in(side.samples))) for side in sides)),
        ("model", *(side.model for side in sides)),
        ("compressor model", *(side.settings["compressor model"] for side in sides)),
        ("graded by", *(" | ".join(side.graders) for side in sides)),
        ("version of task and arm", *(", ".join(side.versions) for side in sides)),
    ]
    return Section("", [Table(("", *_SIDES), rows, texts=(1, 2)), [*_notes(comparison)]])


def _notes(comparison: Comparison) -> Iterator[str]:
    sides = comparison.sides
    if comparison.same_arm:
        yield "both sides are runs of the same arm: what differs is noise (A/A)"
    else:
        changed = [
            f"{name} ({_short(comparison.base, name, old)} -> {_short(comparison.new, name, new)})"
            for name, old, new in differences(*comparison.sides)
        ]
        prompts = "what decides the results besides the settings (prompts, code, fixtures)"
        yield f"the arms differ in: {', '.join(changed) or prompts}"
    silent = [side.label for side in sides if side.no_language_model]
    if len(silent) == 1:
        yield f"no language model was involved: {silent[0]}"
    if len(silent) == 2:
        yield "both arms are mechanical and come out the same every time: no noise is expected"
    elif comparison.mechanical:
        yield (
            f"mechanical compression, the same every time: {' and '.join(comparison.mechanical)}; "
            "only answers and gradings vary there"
        )
    for side in sides:
        if side.self_graded:
            yield f"self-graded: in {side.label}, a model judged its own answers"
        cuts = side.samples.groupby("fixture")["cut"].nunique()
        if several := sorted(map(str, cuts.index[cuts > 1])):
            yield (
                f"WARNING: {side.label} mixes cuts of {', '.join(several[:3])}; their probes are "
                "averaged within the conversation"
            )
    for name, detail in comparison.allowed.items():
        yield f"allowed to differ: {name} ({detail})"


def _short(side: Arm, name: str, text: str) -> str:
    file = prompt_file(side.logs[0]) if name == f"{ARGUMENT}prompt" else None
    return file or (text if len(text) <= MAX_SETTING else f"{shown(digest(text))}…")


def _line_cells(measure: str, judged: Judged, threshold: float) -> list[str]:
    """Return base, new, change, both intervals, p and verdict, all of them short."""
    seen, counts = judged.difference, threshold_of(measure, threshold)
    limit = shown_change(counts, measure).lstrip("+")
    told = judged.verdict.partition(",")[0]
    if judged.extent == "less than the margin" and told in ("better", "worse"):
        told += f" <{limit}"
    return [
        shown_value(seen.base, measure),
        shown_value(seen.new, measure),
        shown_change(seen.estimate, measure, counts),
        *(shown_interval(spread, seen.estimate, measure) for spread in (seen.here, seen.elsewhere)),
        shown_p(judged.p_value),
        {"no change": f"within {limit}", "cannot tell": "unclear"}.get(told, told),
    ]


def _details(comparison: Comparison) -> Iterator[Section]:
    """Yield everything besides the decision."""
    threshold = comparison.margin
    rows = [
        [measure_name(measure), *_line_cells(measure, judged, threshold)]
        for (_, measure), judged in comparison.lines.items()
    ]
    title = "Other measures (exploratory: say where to look, decide nothing)"
    yield Section(title, [Table(["", *_LINE_HEADS], rows, texts=(len(_LINE_HEADS),))])
    if comparison.retention:
        yield _retention(comparison)
    yield _failures(comparison)
    if (table := spending_table(_spent(comparison))) is not None:
        yield Section("Tokens per correct answer", [table, [SPENDING_NOTE]])
    # Interval for more conversations and p are in the JSON: these decide nothing.
    heads = ["", "", *_LINE_HEADS[:4], _LINE_HEADS[-1]]
    for column, lines in comparison.breakdowns.items():
        rows = []
        for (group, measure), judged in lines.items():
            cells = _line_cells(measure, judged, threshold)
            rows.append([group, measure_name(measure), *cells[:4], cells[-1]])
        title = f"By {BREAKDOWNS[column]} (exploratory: says where to look, decides nothing)"
        yield Section(title, [Table(heads, rows, names=2, texts=(len(heads) - 1,))])
    if one := read_on_one_side(*comparison.sides):
        told = f"WARNING only in {one} a model read which facts are there, in the other they were "
        yield Section("", [[f"{told}looked up: facts lost and gained may be due to that"]])
    for kind in ("lost", "gained"):
        rows = [_fact_cells(change) for change in comparison.facts if change.kind == kind]
        heads = ["fact", "probe", "fixture", "in answer", "in state", "stage"]
        yield from _listed(f"Facts {kind}", Table(heads, rows, names=3, texts=(3, 4, 5)))
    for now, title, why in (
        (True, "Missed now (knowledge under 3.0)", "because"),
        (False, "No longer missed", "was missed because"),
    ):
        rows = [
            [flip.unit, flip.probe, f"{flip.base:.2f}", f"{flip.new:.2f}", flip.reason]
            for flip in comparison.flips
            if flip.missed_now == now
        ]
        heads = ["fixture", "probe", *_SIDES, why]
        yield from _listed(title, Table(heads, rows, names=2, texts=(4,)))
    seen = comparison.knowledge
    behind = (
        f"behind knowledge: probes {seen.probes}, conversations {seen.fixtures}, "
        f"compressions {seen.states[0]} and {seen.states[1]}"
    )
    yield Section("How it was computed", [[*_METHOD, behind]])
    yield Section("", [[": ".join(comparison.outcome)]])


def _retention(comparison: Comparison) -> Section:
    rows = []
    for label, kept in zip(_SIDES, comparison.retention or (), strict=True):
        cells = ["close", "-", "-"]
        if kept.share is not None:
            limits = (kept.here, kept.elsewhere)
            shown = (f"{each[0]:.0%} to {each[1]:.0%}" if each else "-" for each in limits)
            cells = [f"{kept.share:.0%}", *shown]
        rows.append([label, *cells])
    table = Table(("", "retained", _HERE, _ELSEWHERE), rows)
    return Section("Retention of knowledge between none (0 %) and full", [table])


def _failures(comparison: Comparison) -> Section:
    rows = [
        (
            label,
            f"{each.failed_states} of {each.states}",
            _failed(each),
            _share(each.samples, each.ungraded_reasons),
        )
        for label, each in zip(_SIDES, comparison.failed, strict=True)
    ]
    heads = ("", "compressions failed", "samples failed", "not graded")
    rises = ["the new arm fails more often, so nothing is called better"]
    table = Table(heads, rows, texts=(1, 2, 3))
    return Section("Failures", [table, rises] if comparison.failures_rise else [table])


def _spent(comparison: Comparison) -> dict[str, dict[str, Spent]]:
    return spending({side.label: (side.samples, side.facts) for side in comparison.sides})


def _failed(of: Failures) -> str:
    return _share(of.samples, of.reasons)


def _share(samples: int, by_reason: Mapping[str, int]) -> str:
    number = sum(by_reason.values())
    text = f"{number} of {samples} ({number / max(samples, 1):.1%})"
    reasons = ", ".join(f"{reason} {count}" for reason, count in by_reason.items())
    return f"{text}: {reasons}" if reasons else text


def _fact_cells(change: FactChange) -> list[str]:
    base, new = change.base, change.new
    return [
        *(change.fact, change.probe, f"{change.fixture}@{change.cut}"),
        f"{base.in_answer}/{base.answers} -> {new.in_answer}/{new.answers}",
        f"{base.in_state}/{base.states} -> {new.in_state}/{new.states}",
        base.stage if base.stage == new.stage else f"{base.stage} -> {new.stage}",
    ]


def _listed(title: str, table: Table) -> Iterator[Section]:
    """Yield a table of at most so many rows, its number of rows in the title; none without rows."""
    rows = table.rows
    left = len(rows) - MAX_LISTED
    more = [[f"and {left} more (--format json lists all)"]] if left > 0 else []
    if rows:
        yield Section(f"{title}: {len(rows)}", [replace(table, rows=rows[:MAX_LISTED]), *more])


# ----- for programs


def as_json(comparison: Comparison, *, gate: bool = False) -> str:
    """Return a comparison as a JSON object.

    Scores and their differences are from 0 to 5, shares from 0 to 1, intervals ``[low, high]`` at
    95 %, and what is not known is null.
    """
    outcome, why = comparison.outcome
    by, elsewhere = comparison.decision, comparison.elsewhere
    data: dict[str, Any] = {
        "compression_eval": __version__,
        "outcome": outcome,
        "why": why,
        "exit_code": EXIT_CODES[outcome],
        "margin": comparison.margin,
        "decision": {
            "measure": KNOWLEDGE,
            **_difference_data(comparison.knowledge),
            "verdict": by.verdict,
            "extent": by.extent,
            "decided_over_conversations": by.over_conversations,
            "p": by.p_value,
            "p_loss_of_margin": by.p_margin,
            "p_fails_more": by.p_failing,
            "facts_in_states": comparison.facts_kept
            and {
                **_difference_data(comparison.facts_kept),
                "by": "reader" if comparison.base.read else "look-up",
                "p": by.p_facts,
                "lost": by.facts_lost,
            },
            "reader": {
                "full": comparison.narrower and comparison.narrower.ceiling,
                "none": comparison.narrower and comparison.narrower.floor,
                "range": comparison.narrower and comparison.narrower.reach,
                "unknown": comparison.no_controls or None,
            },
            "failed_as_0": comparison.failing.cost if comparison.failing else None,
            "verdict_for_new_conversations": elsewhere.verdict if elsewhere else None,
            "same_answers": comparison.same_answers,
            "same_states": bool(comparison.same_answers) and comparison.same_states,
            "would_tell": asdict(comparison.more) if comparison.more else None,
        },
        "same_arm": comparison.same_arm,
        "mechanical": comparison.mechanical,
        "allowed": comparison.allowed,
        "base": _side_data(comparison.base, comparison.failed[0]),
        "new": _side_data(comparison.new, comparison.failed[1]),
        "settings_changed": _changes(differences(*comparison.sides)),
        "versions_changed": _changes(tools_changed(*comparison.sides)),
        "other_measures": _lines_data(comparison.lines),
        "formula": FORMULA,
    }
    if not gate:
        data |= {
            "retention": [asdict(each) for each in comparison.retention or ()] or None,
            "exploratory": {
                column: _lines_data(lines) for column, lines in comparison.breakdowns.items()
            },
            "facts": [asdict(change) for change in comparison.facts],
            "flips": [asdict(flip) | {"missed_now": flip.missed_now} for flip in comparison.flips],
        }
        if spent := _spent(comparison):
            data["spending"] = {
                side: {way: asdict(each) for way, each in ways.items()}
                for side, ways in spent.items()
            }
    return versioned_json(data)


def _changes(of: Sequence[Change]) -> list[dict[str, str]]:
    return [{"name": name, "base": old, "new": new} for name, old, new in of]


def _difference_data(difference: Difference) -> dict[str, Any]:
    spreads = (difference.here, difference.elsewhere)
    here, elsewhere = (each and each.interval(difference.estimate) for each in spreads)
    return {
        "base": difference.base,
        "new": difference.new,
        "change": difference.estimate,
        "on_these_conversations": here,
        "for_new_conversations": elsewhere,
        "probes": difference.probes,
        "fixtures": difference.fixtures,
        "compressions": difference.states,
    }


def _lines_data(lines: Lines) -> list[dict[str, Any]]:
    return [
        {
            **({"group": group} if group else {}),
            "measure": measure,
            **_difference_data(judged.difference),
            "p_adjusted": judged.p_value,
            "verdict": judged.verdict,
            "extent": judged.extent,
            "why": judged.why,
        }
        for (group, measure), judged in lines.items()
    ]


def _side_data(side: Arm, failed: Failures) -> dict[str, Any]:
    return {
        "arm": side.name,
        "logs": [log.path for log in side.logs],
        "settings": side.settings,
        "versions": side.versions,
        "graded_by": side.graders,
        "self_graded": side.self_graded,
        "fixtures": int(side.samples["fixture"].nunique()),
        "probes": int(side.samples["sample"].nunique()),
        "failures": asdict(failed) | {"rate": failed.rate, "ungraded_rate": failed.ungraded_rate},
    }


_SUITE = "compression-eval compare"


def as_junit(comparison: Comparison) -> str:
    """Return a comparison as JUnit XML: a case for the outcome, one for each measure.

    Only the outcome fails (a regression) or is an error (it cannot be told); what a measure next to
    it did is in its case, skipped where it is not known.
    """
    outcome, why = comparison.outcome
    tag = {"regression": "failure", "cannot tell": "error"}.get(outcome, "")
    cases = [_case("outcome", tag, f"{outcome}: {why}")]
    for (_, measure), judged in comparison.lines.items():
        base, new, change, *_ = _line_cells(measure, judged, comparison.margin)
        tag = "skipped" if judged.verdict == "cannot tell" else ""
        cases.append(_case(measure, tag, f"{base} -> {new} ({change}): {judged.why}"))
    return _junit(cases, as_text(page(comparison, gate=True)))


def refusal_as_junit(why: str) -> str:
    """Return JUnit XML of two sides that could not be compared."""
    return _junit([_case("outcome", "error", f"could not be compared: {why}")], "")


def _case(name: str, tag: str, message: str) -> Element:
    case = Element("testcase", {"classname": _SUITE, "name": name, "time": "0"})
    if tag:
        SubElement(case, tag, {"message": clean(message, MAX_JUNIT_TEXT)})
    else:
        SubElement(case, "system-out").text = clean(message, MAX_JUNIT_TEXT)
    return case


def _junit(cases: list[Element], page: str) -> str:
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {
        name: str(sum(case.find(tag) is not None for case in cases)) for name, tag in kinds.items()
    }
    suites = Element("testsuites")
    suite = SubElement(suites, "testsuite", {"name": _SUITE, "tests": str(len(cases)), **counts})
    suite.extend(cases)
    if page:
        SubElement(suite, "system-out").text = clean(page, MAX_JUNIT_TEXT)
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, encoding="unicode")}\n'
