"""An estimate for people, and as plain data."""

import math
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from compression_eval.analysis.statistics.power import WANTED
from compression_eval.analysis.tables import Table, printable, table_lines
from compression_eval.sweeping.costs import ArmCosts
from compression_eval.sweeping.estimate import Detectable, Estimate

_BASIS = {
    "computed": "its states were computed",
    "rehearsed": "rehearsed with the embedded model in the place of the compressor",
    "assumed": "could not be rehearsed: its states and summaries are assumed",
}


def as_dict(found: Estimate) -> dict[str, Any]:
    """Return an estimate as plain data; what is infinite or unknown is null."""
    settings = found.plan.settings
    return {
        "models": list(settings.models),
        "samples": found.plan.samples,
        "token_counter": found.counter,
        "design": asdict(found.design) | {"conversations": found.conversations},
        "arms": [
            {
                "arm": arm.label,
                "control": arm.control,
                "note": arm.note,
                "basis": costs.basis,
                "unrehearsed": costs.unrehearsed,
                "history_tokens": round(costs.history_tokens),
                "state_tokens": round(costs.state_tokens),
                "compressions": costs.states,
                "failing": dict(costs.failing),
                "calls": {
                    "answerer": costs.answering.calls,
                    "grader": costs.grading.calls,
                    "reader": costs.reading.calls,
                    "compressor": costs.compressing.calls,
                },
            }
            for arm, costs in found.arms
        ],
        "roles": [
            {
                "role": role.role,
                "model": role.model,
                "calls": role.tokens.calls,
                "input_tokens": round(role.tokens.input),
                "output_tokens": round(role.tokens.output),
                "shared_prefix_tokens": round(role.tokens.repeated) if role.caches else 0,
                "dollars": role.dollars,
                "dollars_without_cache": role.dollars_uncached,
            }
            for role in found.roles
        ],
        "assumptions": found.assumptions.model_dump(mode="json", exclude={"variances"}),
        "margin": found.margin,
        "power": WANTED,
        "variances": {name: asdict(each) for name, each in found.variances.items()},
        "detectable": {name: _plain(each) for name, each in found.detectable.items()},
        "detectable_by_compressions": {
            str(states): _plain(each) for states, each in found.other_epochs.items()
        },
        "notes": found.notes,
    }


def _plain(each: Detectable) -> dict[str, float | None]:
    return {
        name: round(value, 4) if math.isfinite(value) else None
        for name, value in asdict(each).items()
    }


def as_text(found: Estimate) -> str:
    """Return an estimate as text for a terminal."""
    parts = (_head(found), _arms(found), role_lines(found), _detecting(found))
    return "\n\n".join("\n".join(lines) for lines in parts)


def _head(found: Estimate) -> Iterator[str]:
    settings = found.plan.settings
    tasks = len(found.arms) * len(settings.models)
    yield (
        f"conversations {found.conversations}, compression points {found.design.fixtures}, "
        f"probes {max(found.plan.sizes.values())}, compressions of each {settings.epochs}, "
        f"answers from each of them {settings.answers}"
    )
    yield (
        f"arms {len(found.arms)} x models {len(settings.models)} = tasks {tasks}, "
        f"samples {found.plan.samples:,}; tokens counted by {printable(found.counter, 80)}"
    )
    if found.roles and all(role.model.startswith("embedded/") for role in found.roles):
        yield "No language model is involved: everything is done by the embedded one."


def _arms(found: Estimate) -> Iterator[str]:
    yield "Arms, for one model:"
    heads = ("arm", "history", "state", "answers", "gradings", "compressing calls", "basis")
    rows = [
        (
            arm.label + (" (control)" if arm.control else ""),
            f"{costs.history_tokens:,.0f}",
            f"{costs.state_tokens:,.0f}" if costs.state_tokens else "-",
            f"{costs.answering.calls:,}",
            f"{costs.grading.calls:,}",
            f"{costs.compressing.calls:,}",
            costs.basis,
        )
        for arm, costs in found.arms
    ]
    table = Table(heads, rows, texts=(len(heads) - 1,))
    yield from (f"  {line}" for line in table_lines(table))
    for arm, _ in found.arms:
        note = f"{arm.label}: {arm.note}" if arm.note else ""
        yield from textwrap.wrap(note, 78, initial_indent="  ", subsequent_indent="    ")
    for basis in dict.fromkeys(costs.basis for _, costs in found.arms):
        yield f"  {basis}: {_BASIS[basis]}"
    for arm, costs in found.arms:
        yield from (f"  {line}" for line in _warnings(printable(arm.label), costs))


def _warnings(label: str, costs: ArmCosts) -> Iterator[str]:
    if costs.unrehearsed:
        yield f"{label}: {printable(costs.unrehearsed, 160)}"
    for reason, count in costs.failing.items():
        yield (
            f"WARNING {label}: {count} of {costs.states} compressions will fail, "
            f"{printable(reason, 160)}"
        )


def role_lines(found: Estimate) -> Iterator[str]:
    """Yield calls, tokens and money by role, as lines for a terminal."""
    if not found.roles:
        yield "No model would be called: every compression will fail."
        return
    yield "Calls and tokens by role:"
    heads = ("role", "model", "calls", "tokens in", "shared prefix", "tokens out", "dollars")
    rows = [
        (
            role.role,
            role.model,
            f"{role.tokens.calls:,}",
            f"{role.tokens.input:,.0f}",
            f"{role.tokens.repeated:,.0f}" if role.caches else "-",
            f"{role.tokens.output:,.0f}",
            "unknown" if role.dollars is None else f"{role.dollars:,.2f}",
        )
        for role in found.roles
    ]
    yield from (f"  {line}" for line in table_lines(Table(heads, rows, names=2)))
    known = [role.dollars for role in found.roles if role.dollars is not None]
    unknown = sorted({role.model for role in found.roles if role.dollars is None})
    if known:
        plain = sum(role.dollars_uncached or 0.0 for role in found.roles)
        rest = " of what is known" if unknown else ""
        saved = plain - sum(known)
        yield f"  together ${sum(known):,.2f}{rest}; shared prefixes save ${saved:,.2f}"
    if unknown:
        listed = ", ".join(printable(name) for name in unknown)
        yield f"  price unknown: {listed}; give prices with --prices FILE"
    lengths = found.assumptions
    yield (
        f"  Tokens out are {lengths.answer_tokens:.0f} an answer, "
        f"{lengths.grader_tokens_per_criterion:.0f} a graded criterion and "
        f"{lengths.grader_tokens_per_fact:.0f} a fact "
        f"({'as in the logs' if lengths.source.startswith('from ') else 'assumed'}), and a "
        "summary as"
    )
    yield "  large as it may be; reasoning, tool definitions, repairs and retries are not counted."
    if any(role.caches for role in found.roles):
        yield (
            "  Shared prefix: of the tokens in, those that an earlier call about the same state "
            "has sent. Taken to be"
        )
        yield (
            f"  read from the vendor's cache if it has {lengths.cached_prefix_tokens:,} tokens, "
            "which no vendor promises."
        )


def _detecting(found: Estimate) -> Iterator[str]:
    yield (
        f"Smallest true difference between two arms that is found in {WANTED:.0%} of runs (0 to "
        f"5), and how often two equal arms are shown to differ by less than {found.margin:g}:"
    )
    measures = found.detectable
    if len(set(measures.values())) == 1:
        measures = {"any dimension": next(iter(measures.values()))}
    heads = ("measure", "on these conversations", "for new conversations", "equal arms pass")
    rows = [(name.replace("_", " "), *_shown(each)) for name, each in measures.items()]
    yield from (f"  {line}" for line in table_lines(Table(heads, rows)))
    yield "  knowledge, by compressions of each conversation:"
    heads = ("compressions", "on these", "for new", "equal pass")
    rows = [(str(states), *_shown(each)) for states, each in found.other_epochs.items()]
    yield from (f"    {line}" for line in table_lines(Table(heads, rows, names=0)))
    yield f"  Variances {found.assumptions.source}."
    yield from (f"  Note: {note}." for note in found.notes)
    if found.design.states < 2:
        yield "  WARNING: with one compression of each, no difference can be told from noise."
    yield "  Arms that call no model come out the same every time; for them this is too careful."


def _shown(each: Detectable) -> tuple[str, str, str]:
    here, elsewhere = (
        f"{value:.2f}" if math.isfinite(value) else "none" for value in (each.here, each.elsewhere)
    )
    return here, elsewhere, f"{each.passes:.0%}"
