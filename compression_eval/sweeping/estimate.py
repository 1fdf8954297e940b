"""Estimate the cost of a sweep, and the smallest true difference that it could detect."""

import math
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, replace
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
from compression_eval.grading.rubric import (
    KNOWLEDGE,
    MAX_SCORE,
    OVERALL,
    CriteriaMode,
    load_rubric,
)
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.plans import ProbePlan
from compression_eval.sharing import has_prompt_cache
from compression_eval.sweeping.costs import ArmCosts, Tokens, arm_costs, price_of
from compression_eval.sweeping.planning import SweepPlan
from compression_eval.sweeping.rehearsal import rehearsing_model
from compression_eval.sweeping.settings import SweepSettings
from compression_eval.sweeping.spreads import Assumptions, shipped, spreads_of
from compression_eval.text.printable import printable
from compression_eval.text.tables import Table, table_lines

_ROLES = ("answerer", "refetch", "grader", "compressor")
_OTHER_EPOCHS = (2, 3, 5, 10)

_BASIS = {
    "computed": "its states were computed",
    "rehearsed": "rehearsed with the embedded model in the place of the compressor",
    "assumed": "could not be rehearsed: its states and summaries are assumed",
}


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
    """None if its price is unknown."""
    dollars_without_cache: float | None = None


class SecondAnswers(BaseModel, frozen=True):
    """What the second answers, with tools, are taken to need, and what they cannot exceed."""

    calls_each: float
    """Tool calls; likewise `tokens_each`, those that the calls return."""
    tokens_each: float
    calls_limit: int
    tokens_limit: int
    at_most: list[RoleCosts]
    """Of each model, where every answer uses up both limits."""


class Detectable(BaseModel, frozen=True):
    """The detectable difference between two arms of one design, on a scale from 0 to 5.

    None if no difference on that scale is detectable.
    """

    here: float | None
    """On these conversations."""
    elsewhere: float | None
    """For new conversations; None with a single one, too."""
    passes: float
    """How often one of two equal arms is shown to be not worse by more than the margin (0 to 1)."""


class Estimate(BaseModel):
    """The whole estimate, as in its JSON."""

    models: list[str]
    samples: int
    token_counter: str
    design: dict[str, Any]
    arms: list[dict[str, Any]]
    roles: list[RoleCosts]
    """``refetch`` are the answerer's second answers, as they are taken to be."""
    refetch: SecondAnswers | None
    """None without second answers."""
    assumptions: dict[str, Any]
    margin: float
    power: float = WANTED
    variances: dict[str, dict[str, float]]
    detectable: dict[str, Detectable]
    """By measure."""
    detectable_by_compressions: dict[str, Detectable]
    """For the measure that decides."""
    notes: list[str]


def estimate(
    plan: SweepPlan,
    prices: Mapping[str, ModelCost],
    logs: Sequence[str] = (),
    margin: float = DEFAULT_THRESHOLD,
) -> Estimate:
    """Return the estimate of a sweep; no model but the embedded one is called.

    Args:
        plan: The plan of the sweep.
        prices: By model, in dollars per million tokens; they override Inspect's.
        logs: Logs for spreads and lengths of replies; the shipped assumptions if none.
        margin: The loss of knowledge (0 to 5) that a comparison must detect.
    """
    _require_scipy()
    variances, assumptions, notes = spreads_of(logs, shipped())
    planned = {arm.label: list(plan.dataset(arm).plans.values()) for arm in plan.arms}
    if plan.passed_over:
        click.echo(passed_over(plan.passed_over), err=True)
    # Inspect prints a banner on stdout with its first model.
    with redirect_stdout(sys.stderr):
        arms = anyio.run(_rehearsed, plan, planned, assumptions)
    widest = planned[plan.widest.label]
    design, conversations = _design(widest, plan.settings)

    graded_on = [(each, _measures(each, plan.settings.criteria)) for each in widest]

    def found(measure: str, states: int) -> Detectable:
        graded = [each for each, measures in graded_on if measure in measures]
        if not graded:
            return Detectable(here=None, elsewhere=None, passes=0.0)
        own, fixtures = _design(graded, plan.settings)
        own = replace(own, states=states)
        return smallest_difference(own, fixtures, variances[measure], margin)

    decides = next(iter(variances))
    return Estimate(
        models=plan.settings.models,
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
                    "answerer": costs.answering.calls,
                    "grader": costs.grading.calls,
                    "reader": costs.reading.calls,
                    "compressor": costs.compressing.calls,
                    **({"refetch": costs.refetching.calls} if plan.settings.refetch else {}),
                },
            }
            for arm, costs in zip(plan.arms, arms, strict=True)
        ],
        roles=_roles(plan, arms, prices),
        refetch=_second_answers(plan, arms, prices, assumptions),
        assumptions=assumptions.model_dump(mode="json", exclude={"variances"}),
        margin=margin,
        variances={name: asdict(each) for name, each in variances.items()},
        detectable={name: found(name, design.states) for name in variances},
        detectable_by_compressions={
            str(states): found(decides, states)
            for states in sorted({*_OTHER_EPOCHS, design.states})
        },
        notes=notes,
    )


def _design(asked: Sequence[ProbePlan], settings: SweepSettings) -> tuple[Design, int]:
    """Return the design for some probes, and the number of their conversations."""
    sizes = Counter(id(each.compression) for each in asked)
    design = Design(
        fixtures=len(sizes),
        # Conversations count the same: one with few probes adds more to the error of the mean.
        probes=harmonic_mean(list(sizes.values())),
        states=settings.epochs,
        answers=settings.answers,
    )
    return design, len({each.compression.fixture.name for each in asked})


def _measures(plan: ProbePlan, criteria: CriteriaMode) -> set[str]:
    """Return what an answer is graded on: few questions are about files, for one."""
    asked = load_rubric(plan.language).criteria_for(plan.probe, criteria)
    return {KNOWLEDGE, OVERALL, *(each.dimension for each in asked)}


async def _rehearsed(
    plan: SweepPlan, planned: Mapping[str, list[ProbePlan]], assumptions: Assumptions
) -> list[ArmCosts]:
    model = rehearsing_model()
    with click.progressbar(plan.arms, label="rehearsing the arms", file=sys.stderr) as bar:
        return [
            await arm_costs(arm, planned[arm.label], plan.settings, assumptions, model)
            for arm in bar
        ]


def _roles(
    plan: SweepPlan, arms: Sequence[ArmCosts], prices: Mapping[str, ModelCost]
) -> list[RoleCosts]:
    """Add up the costs of each model in each role."""
    compressor = plan.settings.roles.get("compressor")
    totals: dict[tuple[str, str], Tokens] = {}
    for costs in arms:
        for model in plan.settings.models:
            graders = plan.settings.roles.get("grader") or [model]
            parts = [("answerer", model, costs.answering), ("refetch", model, costs.refetching)]
            parts.extend(("grader", name, costs.grading) for name in graders)
            if graders[0] != EMBEDDED_MODEL:
                parts.append(("grader", graders[0], costs.reading))
            parts.append(("compressor", compressor[0] if compressor else model, costs.compressing))
            for role, name, tokens in parts:
                totals[role, name] = totals.get((role, name), Tokens()) + tokens
    ordered = sorted(totals, key=lambda key: _ROLES.index(key[0]))
    return [
        _priced(role, name, totals[role, name], price_of(name, prices))
        for role, name in ordered
        if totals[role, name].calls
    ]


def _second_answers(
    plan: SweepPlan,
    arms: Sequence[ArmCosts],
    prices: Mapping[str, ModelCost],
    assumptions: Assumptions,
) -> SecondAnswers | None:
    if (limits := plan.settings.fetch_limits) is None:
        return None
    calls = min(assumptions.refetch_calls, limits.calls)
    most = sum((costs.refetching_at_most for costs in arms), Tokens())
    return SecondAnswers(
        calls_each=calls,
        tokens_each=min(calls * assumptions.refetch_tokens_per_call, limits.tokens),
        calls_limit=limits.calls,
        tokens_limit=limits.tokens,
        at_most=[
            _priced("refetch", name, most, price_of(name, prices)) for name in plan.settings.models
        ],
    )


def _priced(role: str, model: str, tokens: Tokens, price: ModelCost | None) -> RoleCosts:
    caches = has_prompt_cache(model)
    costs = RoleCosts(
        role=role,
        model=model,
        calls=tokens.calls,
        input_tokens=round(tokens.input),
        output_tokens=round(tokens.output),
        shared_prefix_tokens=round(tokens.repeated) if caches else 0,
    )
    if price is None:
        return costs
    whole = ModelUsage(input_tokens=costs.input_tokens, output_tokens=costs.output_tokens)
    costs.dollars_without_cache = costs.dollars = compute_model_cost(price, whole)
    if caches:
        shared = ModelUsage(
            input_tokens=round(tokens.input - tokens.first - tokens.repeated),
            output_tokens=costs.output_tokens,
            input_tokens_cache_write=round(tokens.first),
            input_tokens_cache_read=round(tokens.repeated),
        )
        costs.dollars = compute_model_cost(price, shared)
    return costs


def _require_scipy() -> None:
    try:
        import scipy.stats  # noqa: F401
    except ImportError as error:
        raise lacking("estimate", "analysis") from error


def smallest_difference(
    design: Design, conversations: int, variances: Variances, margin: float
) -> Detectable:
    """Return the difference that a design detects four times out of five, if that measure decides.

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

    def lacking(ratio: float) -> float:
        return float(nct.sf(limit, freedom, ratio)) - WANTED

    return float(brentq(lacking, 0.0, 10 * limit)) * error


def as_text(result: Estimate, plan: SweepPlan) -> str:
    """Return an estimate as text for a terminal."""
    parts = (_head(result, plan), _arms(result), role_lines(result), _detecting(result))
    return "\n\n".join("\n".join(lines) for lines in parts)


def _head(result: Estimate, plan: SweepPlan) -> Iterator[str]:
    tasks = len(result.arms) * len(result.models)
    yield (
        f"conversations {result.design['conversations']}, compression points "
        f"{result.design['fixtures']}, probes {max(plan.sizes.values())}, compressions of each "
        f"{plan.settings.epochs}, answers from each of them {plan.settings.answers}"
    )
    yield (
        f"arms {len(result.arms)} x models {len(result.models)} = tasks {tasks}, "
        f"samples {result.samples:,}; tokens counted by {printable(result.token_counter, 80)}"
    )
    if result.roles and all(role.model.startswith("embedded/") for role in result.roles):
        yield "No language model is involved: everything is done by the embedded one."


def _arms(result: Estimate) -> Iterator[str]:
    yield "Arms, for one model:"
    heads = ("arm", "history", "state", "answers", "gradings", "compressing calls", "basis")
    rows = [
        (
            arm["arm"] + (" (control)" if arm["control"] else ""),
            f"{arm['history_tokens']:,}",
            f"{arm['state_tokens']:,}" if arm["state_tokens"] else "-",
            *(f"{arm['calls'][role]:,}" for role in ("answerer", "grader", "compressor")),
            arm["basis"],
        )
        for arm in result.arms
    ]
    yield from _indented(Table(heads, rows, texts=(len(heads) - 1,)))
    for arm in result.arms:
        note = f"{arm['arm']}: {arm['note']}" if arm["note"] else ""
        yield from textwrap.wrap(note, 78, initial_indent="  ", subsequent_indent="    ")
    for basis in dict.fromkeys(arm["basis"] for arm in result.arms):
        yield f"  {basis}: {_BASIS[basis]}"
    for arm in result.arms:
        label = printable(arm["arm"])
        if arm["unrehearsed"]:
            yield f"  {label}: {printable(arm['unrehearsed'], 160)}"
        for reason, count in arm["failing"].items():
            yield (
                f"  WARNING {label}: {count} of {arm['compressions']} compressions will fail, "
                f"{printable(reason, 160)}"
            )


def role_lines(result: Estimate) -> Iterator[str]:
    """Yield calls, tokens and money by role, as lines for a terminal."""
    if not result.roles:
        yield "No model would be called: every compression will fail."
        return
    caching = [role for role in result.roles if has_prompt_cache(role.model)]
    yield "Calls and tokens by role:"
    heads = ("role", "model", "calls", "tokens in", "shared prefix", "tokens out", "dollars")
    rows = [
        (
            role.role,
            role.model,
            f"{role.calls:,}",
            f"{role.input_tokens:,}",
            f"{role.shared_prefix_tokens:,}" if role in caching else "-",
            f"{role.output_tokens:,}",
            "unknown" if role.dollars is None else f"{role.dollars:,.2f}",
        )
        for role in result.roles
    ]
    yield from _indented(Table(heads, rows, names=2))
    known = [role.dollars for role in result.roles if role.dollars is not None]
    unknown = sorted({role.model for role in result.roles if role.dollars is None})
    if known:
        rest = " of what is known" if unknown else ""
        saved = sum(role.dollars_without_cache or 0.0 for role in result.roles) - sum(known)
        yield f"  together ${sum(known):,.2f}{rest}; shared prefixes save ${saved:,.2f}"
    if unknown:
        listed = ", ".join(printable(name) for name in unknown)
        yield f"  price unknown: {listed}; give prices with --prices FILE"
    lengths = result.assumptions
    if second := result.refetch:
        assumed = lengths["refetch_calls"] == shipped().refetch_calls
        yield (
            f"  refetch: second answers, taken to make {second.calls_each:.1f} tool calls each "
            f"({'assumed' if assumed else 'as in the logs'}) that return {second.tokens_each:,.0f}"
        )
        yield (
            f"  tokens (assumed). The limits, {second.calls_limit} calls and "
            f"{second.tokens_limit:,} tokens, allow at most, with such replies:"
        )
        for each in second.at_most:
            money = "" if each.dollars is None else f", ${each.dollars:,.2f}"
            yield (
                f"    {printable(each.model)}: {each.calls:,} calls, {each.input_tokens:,} tokens "
                f"in, {each.output_tokens:,} out{money}"
            )
    yield (
        f"  Tokens out are {lengths['answer_tokens']:.0f} an answer, "
        f"{lengths['grader_tokens_per_criterion']:.0f} a graded criterion and "
        f"{lengths['grader_tokens_per_fact']:.0f} a fact "
        f"({'as in the logs' if lengths['source'].startswith('from ') else 'assumed'}), and a "
        "summary as"
    )
    yield "  large as it may be; reasoning, tool definitions, repairs and retries are not counted."
    if caching:
        yield (
            "  Shared prefix: of the tokens in, those that an earlier call about the same state "
            "has sent. Taken to be"
        )
        yield (
            f"  read from the vendor's cache if it has {lengths['cached_prefix_tokens']:,} tokens, "
            "which no vendor promises."
        )


def _detecting(result: Estimate) -> Iterator[str]:
    yield (
        f"Smallest true difference between two arms that is found in {WANTED:.0%} of runs (0 to "
        f"5), and how often one of two equal arms is not worse by more than {result.margin:.2f}:"
    )
    measures = result.detectable
    if len(set(measures.values())) == 1:
        measures = {"any dimension": next(iter(measures.values()))}
    heads = ("measure", "on these conversations", "for new conversations", "equal arms pass")
    rows = [(name.replace("_", " "), *_shown(each)) for name, each in measures.items()]
    yield from _indented(Table(heads, rows))
    yield "  knowledge, by compressions of each conversation:"
    heads = ("compressions", "on these", "for new", "equal pass")
    rows = [(str(n), *_shown(each)) for n, each in result.detectable_by_compressions.items()]
    yield from _indented(Table(heads, rows, names=0), "    ")
    yield f"  Variances {result.assumptions['source']}."
    yield from (f"  Note: {note}." for note in result.notes)
    if result.design["states"] < 2:
        yield "  WARNING: with one compression of each, no difference can be told from noise."
    yield "  Arms that call no model come out the same every time; for them this is too careful."


def _indented(table: Table, indent: str = "  ") -> Iterator[str]:
    return (indent + line for line in table_lines(table))


def _shown(each: Detectable) -> tuple[str, str, str]:
    here, elsewhere = (
        "none" if value is None else f"{value:.2f}" for value in (each.here, each.elsewhere)
    )
    return here, elsewhere, f"{each.passes:.0%}"
