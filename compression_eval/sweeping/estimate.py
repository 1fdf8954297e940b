"""Estimate the cost of a sweep, and the smallest true difference that it could detect.

The arms are rehearsed (`costs.py`), and their calls added up by model and role. The difference that
two arms must have to be told apart follows from the design and from assumed variances
(``assumptions.yaml``). `estimate` gives all of it as data, the command prints it.
"""

import math
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from statistics import harmonic_mean
from typing import Any

import anyio
import click
from inspect_ai.model import ModelCost, ModelUsage, compute_model_cost
from pydantic import BaseModel

from compression_eval.analysis.statistics.intervals import LEVEL
from compression_eval.analysis.statistics.power import (
    WANTED,
    Design,
    Variances,
    detectable,
    power,
    standard_error,
)
from compression_eval.analysis.statistics.significance import DEFAULT_THRESHOLD
from compression_eval.compressors.tokens import token_counter
from compression_eval.errors import lacking, passed_over
from compression_eval.fixtures.writing import versioned_json
from compression_eval.grading.rubric import MAX_SCORE
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.plans import ProbePlan
from compression_eval.sharing import has_prompt_cache
from compression_eval.sweeping.arms import rehearsing_model
from compression_eval.sweeping.costs import ArmCosts, CostRole, Tokens, arm_costs, assumed
from compression_eval.sweeping.planning import SweepPlan, sweep_plan
from compression_eval.sweeping.settings import (
    price_of,
    read_prices,
    settings_of,
    sweep_options,
)
from compression_eval.terminal import CleanCommand, examples
from compression_eval.text.printable import printable
from compression_eval.text.tables import Table, table_lines

_ROLES = ("answerer", "refetch", "grader", "compressor")
_COLUMNS: tuple[CostRole, ...] = ("answerer", "grader", "reader", "compressor")
_OTHER_EPOCHS = (2, 3, 5, 10)
MAX_NAMED = 12
"""Conversations that are named; the rest is counted."""


class RoleCosts(BaseModel):
    """The cost of one model in one role, over all arms."""

    role: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    shared_prefix_tokens: int
    """Input tokens that an earlier call about the same state has sent; 0 without a cache."""
    dollars: float | None = None
    """With these tokens read from the vendor's cache; None if its price is unknown."""
    dollars_uncached: float | None = None
    """Without a cache."""


class Detectable(BaseModel, frozen=True):
    """The detectable difference of knowledge between two arms of one design, from 0 to 5.

    None if no difference on that scale is detectable.
    """

    here: float | None
    """On these conversations."""
    elsewhere: float | None
    """For more conversations like these; None with a single one, too."""
    passes: float
    """How often one of two equal arms is shown to be not worse by more than the margin (0 to 1)."""


class Estimate(BaseModel):
    """The whole estimate, as in its JSON."""

    models: list[str]
    fixtures: list[str]
    """Names of the conversations."""
    samples: int
    token_counter: str
    design: dict[str, Any]
    arms: list[dict[str, Any]]
    roles: list[RoleCosts]
    """``refetch`` are the answerer's second answers, as they are taken to be."""
    assumptions: dict[str, Any]
    margin: float
    power: float = WANTED
    variances: dict[str, float]
    detectable_by_compressions: dict[str, Detectable]


def estimate(
    plan: SweepPlan, prices: Mapping[str, ModelCost], margin: float = DEFAULT_THRESHOLD
) -> Estimate:
    """Return the estimate of a sweep; no model but the embedded one is called.

    Args:
        plan: The plan of the sweep.
        prices: By model, in dollars per million tokens; they override Inspect's.
        margin: The loss of knowledge (0 to 5) that a comparison must detect.
    """
    try:
        import scipy.stats  # noqa: F401
    except ImportError as error:
        raise lacking("estimate", "analysis") from error
    variances = Variances(**assumed().variances)
    planned = {arm.label: list(plan.dataset(arm).plans.values()) for arm in plan.arms}
    if plan.passed_over:
        click.echo(passed_over(plan.passed_over), err=True)
    # Inspect prints a banner on stdout with its first model.
    with redirect_stdout(sys.stderr):
        arms = anyio.run(_rehearsed, plan, planned)
    sizes = Counter(id(each.compression) for each in planned[plan.widest.label])
    widest = (each.compression.fixture.name for each in planned[plan.widest.label])
    names = list(dict.fromkeys(widest))
    conversations = len(names)
    design = Design(
        fixtures=len(sizes),
        # Conversations count the same: one with few probes adds more to the error of the mean.
        probes=harmonic_mean(list(sizes.values())),
        states=plan.settings.epochs,
        answers=plan.settings.answers,
    )
    return Estimate(
        models=plan.settings.models,
        fixtures=names,
        samples=plan.samples,
        token_counter=token_counter().name,
        design=asdict(design) | {"conversations": conversations},
        arms=[
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
                    role: round(costs.of(role).calls)
                    for role in (*_COLUMNS, "refetch")
                    if role != "refetch" or plan.settings.refetch
                },
            }
            for arm, costs in zip(plan.arms, arms, strict=True)
        ],
        roles=_roles(plan, arms, prices),
        assumptions=assumed().model_dump(mode="json", exclude={"variances"}),
        margin=margin,
        variances=assumed().variances,
        detectable_by_compressions={
            str(states): smallest_difference(
                replace(design, states=states), conversations, variances, margin
            )
            for states in sorted({*_OTHER_EPOCHS, design.states})
        },
    )


async def _rehearsed(plan: SweepPlan, planned: Mapping[str, list[ProbePlan]]) -> list[ArmCosts]:
    model = rehearsing_model()
    with click.progressbar(plan.arms, label="rehearsing the arms", file=sys.stderr) as bar:
        return [await arm_costs(arm, planned[arm.label], plan.settings, model) for arm in bar]


def _roles(
    plan: SweepPlan, arms: Sequence[ArmCosts], prices: Mapping[str, ModelCost]
) -> list[RoleCosts]:
    """Add up the costs of each model in each role."""
    compressor = plan.settings.roles.get("compressor")
    totals: dict[tuple[str, str], Tokens] = {}
    for costs in arms:
        for model in plan.settings.models:
            graders = plan.settings.roles.get("grader") or [model]
            parts = [(role, model, costs.of(role)) for role in ("answerer", "refetch")]
            parts += [("grader", name, costs.of("grader")) for name in graders]
            if graders[0] != EMBEDDED_MODEL:
                parts.append(("grader", graders[0], costs.of("reader")))
            parts.append(("compressor", (compressor or [model])[0], costs.of("compressor")))
            for role, name, tokens in parts:
                totals[role, name] = totals.get((role, name), Tokens()) + tokens
    ordered = sorted(totals, key=lambda key: _ROLES.index(key[0]))
    return [
        _priced(role, name, totals[role, name], price_of(name, prices))
        for role, name in ordered
        if totals[role, name].calls
    ]


def _priced(role: str, model: str, tokens: Tokens, price: ModelCost | None) -> RoleCosts:
    shared = round(tokens.shared) if has_prompt_cache(model) else 0
    sent, written = round(tokens.input), round(tokens.output)
    usage, uncached = (
        ModelUsage(input_tokens=sent - read, output_tokens=written, input_tokens_cache_read=read)
        for read in (shared, 0)
    )
    return RoleCosts(
        role=role,
        model=model,
        calls=round(tokens.calls),
        input_tokens=sent,
        output_tokens=written,
        shared_prefix_tokens=shared,
        dollars=compute_model_cost(price, usage) if price else None,
        dollars_uncached=compute_model_cost(price, uncached) if price else None,
    )


def smallest_difference(
    design: Design, conversations: int, variances: Variances, margin: float
) -> Detectable:
    """Return the difference that a design detects four times out of five.

    Args:
        design: Of each of the two arms; its fixtures are counted once per cut.
        conversations: Fixtures, each counted once.
        variances: Of the measure.
        margin: The largest acceptable loss.
    """
    here, elsewhere = (
        round(value, 4) if value <= MAX_SCORE else None
        for value in (detectable(design, variances), _elsewhere(design, conversations, variances))
    )
    passes = round(power(margin, design, variances, "margin"), 4)
    return Detectable(here=here, elsewhere=elsewhere, passes=passes)


def _elsewhere(design: Design, conversations: int, variances: Variances) -> float:
    """Return the difference at which Student's t over fixtures excludes zero often enough."""
    if conversations < 2:
        return math.inf
    here = standard_error(design, variances)
    error = math.sqrt(here**2 + variances.fixture / conversations)
    if error == 0:
        return 0.0
    from scipy.optimize import brentq
    from scipy.stats import nct, t

    freedom = conversations - 1
    limit = float(t.ppf(0.5 + LEVEL / 2, freedom))

    def missing(ratio: float) -> float:
        return float(nct.sf(limit, freedom, ratio)) - WANTED

    return float(brentq(missing, 0.0, 10 * limit)) * error


@click.command(
    "estimate",
    cls=CleanCommand,
    epilog=examples(
        "estimate --arms anchored,regenerative --models openai/gpt-5",
        "estimate sweep.yaml --prices prices.yaml",
        "estimate --arms anchored --epochs 6 --answers 2 --json",
    ),
)
@sweep_options
@click.option(
    "--margin",
    "--threshold",
    "margin",
    type=click.FloatRange(min=0, min_open=True, max=5),
    default=0.3,
    show_default=True,
    help="Largest loss of knowledge (0 to 5) that passes, as in compare.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def estimate_command(
    file: Path | None,
    prices: Path | None,
    margin: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Estimate the cost of a sweep and the smallest difference it can find.

    Takes the arguments of sweep. States of strategies without a model are computed. Strategies
    with a model are rehearsed with the embedded model, so that their input is counted. No model
    is called.
    """
    settings, known = settings_of(file, options), read_prices(prices)
    plan = sweep_plan(settings)
    result = estimate(plan, known, margin)
    if as_json:
        click.echo(versioned_json(result.model_dump(mode="json")), nl=False)
        return
    click.echo(estimate_text(result))


def estimate_text(result: Estimate) -> str:
    """Return design, arms, calls and the smallest difference as text for a terminal."""
    parts = (_head(result), _arm_lines(result), role_lines(result), _detecting_lines(result))
    return "\n\n".join("\n".join(lines) for lines in parts)


def _head(result: Estimate) -> Iterator[str]:
    design = result.design
    yield (
        f"conversations {design['conversations']}, compression points {design['fixtures']}, "
        f"compressions of each {design['states']}, answers from each of them {design['answers']}"
    )
    shown = [printable(name, 60) for name in result.fixtures[:MAX_NAMED]]
    more = len(result.fixtures) - len(shown)
    listed = ", ".join([*shown, *([f"and {more} more"] if more else [])])
    yield from textwrap.wrap(
        listed, 98, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
    yield (
        f"arms {len(result.arms)} x models {len(result.models)}, samples {result.samples:,}; "
        f"tokens counted by {printable(result.token_counter, 80)}"
    )
    if result.roles and all(role.model.startswith("embedded/") for role in result.roles):
        yield "No language model is involved: everything is done by the embedded one."


def _arm_lines(result: Estimate) -> Iterator[str]:
    """Yield what each arm is given and calls, as lines for a terminal."""
    yield "Arms, for one model:"
    heads = ("arm", "history", "state", "answers", "gradings", "readings", "summaries")
    rows = [
        (
            arm["arm"] + (" (control)" if arm["control"] else ""),
            f"{arm['history_tokens']:,}",
            f"{arm['state_tokens']:,}" if arm["state_tokens"] else "-",
            *(f"{arm['calls'][role]:,}" for role in _COLUMNS),
        )
        for arm in result.arms
    ]
    yield from _indented(Table(heads, rows))
    for arm in result.arms:
        note = f"{arm['arm']}: {arm['note']}" if arm["note"] else ""
        yield from textwrap.wrap(note, 78, initial_indent="  ", subsequent_indent="    ")
    yield "  readings: the grader looks for the facts in a state; summaries: calls that compress"
    if rehearsed := [printable(arm["arm"]) for arm in result.arms if arm["basis"] == "rehearsed"]:
        told = (
            f"rehearsed (the embedded model compressed in another's place): {', '.join(rehearsed)}"
        )
        yield from textwrap.wrap(told, 98, initial_indent="  ", subsequent_indent="    ")
    for arm in result.arms:
        label = printable(arm["arm"])
        if arm["unrehearsed"]:
            yield f"  {label}: assumed, for {printable(arm['unrehearsed'], 160)}"
        for reason, count in arm["failing"].items():
            yield (
                f"  WARNING {label}: {count} of {arm['compressions']} compressions will fail, "
                f"{printable(reason, 160)}"
            )


def role_lines(result: Estimate, other_grader: str = "--model-role grader=MODEL") -> Iterator[str]:
    """Yield calls, tokens and money by role, as lines for a terminal.

    Args:
        result: The estimate.
        other_grader: The option that names another grader.
    """
    if not result.roles:
        yield "No model would be called: every compression will fail."
        return
    yield "Calls and tokens by role:"
    heads = ("role", "model", "calls", "tokens in", "shared prefix", "tokens out", "dollars")
    rows = [
        (
            role.role,
            role.model,
            f"{role.calls:,}",
            f"{role.input_tokens:,}",
            f"{role.shared_prefix_tokens:,}" if has_prompt_cache(role.model) else "-",
            f"{role.output_tokens:,}",
            "unknown" if role.dollars is None else f"{role.dollars:,.2f}",
        )
        for role in result.roles
    ]
    yield from _indented(Table(heads, rows, names=2))
    answering = {role.model for role in result.roles if role.role == "answerer"}
    if any(r.role == "grader" and r.model in answering - {EMBEDDED_MODEL} for r in result.roles):
        yield f"  WARNING: a model grades its own answers; {other_grader} names another"
    known = [role.dollars for role in result.roles if role.dollars is not None]
    unknown = sorted({role.model for role in result.roles if role.dollars is None})
    if known:
        without = sum(role.dollars_uncached or 0.0 for role in result.roles)
        yield (
            f"  together ${sum(known):,.2f} if vendors cache the shared prefixes, "
            f"${without:,.2f} if not{', of what is known' if unknown else ''}"
        )
    if unknown:
        listed = ", ".join(printable(name) for name in unknown)
        yield f"  price unknown: {listed}; --prices FILE has dollars per million tokens:"
        yield (
            f"    {printable(unknown[0])}: {{input: …, output: …, input_cache_write: …, "
            "input_cache_read: …}"
        )
    given = result.assumptions
    lines = [
        f"Tokens out are {given['answer_tokens']:.0f} an answer, "
        f"{given['grader_tokens_per_criterion']:.0f} a graded criterion and "
        f"{given['grader_tokens_per_fact']:.0f} a fact (assumed), and a summary as large as it "
        "may be; reasoning, tool definitions, repairs and retries are not counted.",
    ]
    if any(role.role == "refetch" for role in result.roles):
        lines.append(
            f"refetch: second answers, taken to make up to {given['refetch_calls']:.1f} tool calls "
            f"each that return {given['refetch_tokens_per_call']:,.0f} tokens each."
        )
    if any(role.shared_prefix_tokens for role in result.roles):
        lines.append(
            "Shared prefix: of the tokens in, those that an earlier call about the same state has "
            "sent. In the column of dollars they are read from the vendor's cache, which no vendor "
            "promises."
        )
    for line in lines:
        yield from textwrap.wrap(line, 98, initial_indent="  ", subsequent_indent="  ")


def _detecting_lines(result: Estimate) -> Iterator[str]:
    """Yield the differences that the design can find, as lines for a terminal."""
    yield (
        f"Smallest true difference of knowledge between two arms that is found in {WANTED:.0%} of "
        "runs (0 to 5),"
    )
    yield (
        f"and how often one of two equal arms is not worse by more than {result.margin:.2f}, by "
        "compressions of each conversation:"
    )
    heads = ("compressions", "on these conversations", "for more like these", "equal arms pass")
    rows = [
        (
            states,
            *("none" if value is None else f"{value:.2f}" for value in (each.here, each.elsewhere)),
            f"{each.passes:.0%}",
        )
        for states, each in result.detectable_by_compressions.items()
    ]
    yield from _indented(Table(heads, rows, names=0))
    planned = result.detectable_by_compressions[str(result.design["states"])]
    if planned.here is not None and result.design["states"] > 1:
        yield (
            f"  Planned: {result.design['states']} of each. Differences below {planned.here:.2f} "
            f"are found in fewer than {WANTED:.0%} of runs."
        )
    yield f"  Variances {result.assumptions['source']}."
    if result.design["states"] < 2:
        yield (
            "  WARNING: with one compression of each conversation, a difference cannot be "
            "distinguished from noise."
        )
    yield "  Arms that call no model come out the same every time; for them this is too careful."


def _indented(table: Table) -> Iterator[str]:
    return ("  " + line for line in table_lines(table))
