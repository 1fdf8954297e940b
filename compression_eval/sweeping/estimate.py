"""What a sweep would cost, and the smallest true difference that it could tell."""

import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace

import anyio
import click
from inspect_ai.model import ModelCost, ModelUsage, compute_model_cost

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
from compression_eval.fixtures.errors import DataError, passed_over
from compression_eval.grading.rubric import MAX_SCORE
from compression_eval.offline.registration import EMBEDDED_MODEL
from compression_eval.sharing import has_prompt_cache
from compression_eval.solver import ProbePlan
from compression_eval.sweeping.arms import Arm
from compression_eval.sweeping.costs import ArmCosts, Tokens, arm_costs
from compression_eval.sweeping.planning import SweepPlan
from compression_eval.sweeping.prices import price_of
from compression_eval.sweeping.rehearsal import rehearsing_model
from compression_eval.sweeping.spreads import Assumptions, shipped, spreads_of

ROLES = ("answerer", "grader", "compressor")

_OTHER_EPOCHS = (2, 3, 5, 10)


@dataclass
class RoleCosts:
    """What one model costs in one role, over all arms."""

    role: str
    model: str
    tokens: Tokens
    caches: bool
    """Whether its provider may bill repeated prefixes at a lower price."""
    dollars: float | None = None
    """None if its price is not known."""
    dollars_uncached: float | None = None


@dataclass(frozen=True)
class Detectable:
    """What two arms of one design must differ by, on a dimension from 0 to 5.

    Infinite where no difference on that scale would do.
    """

    here: float
    """On these conversations."""
    elsewhere: float
    """For new conversations; infinite with a single one, too."""
    passes: float
    """How often two equal arms are shown to be not worse by more than the margin (0 to 1)."""


@dataclass
class Estimate:
    """Everything that is said before a sweep."""

    plan: SweepPlan
    design: Design
    conversations: int
    counter: str
    arms: list[tuple[Arm, ArmCosts]]
    roles: list[RoleCosts]
    assumptions: Assumptions
    margin: float
    variances: dict[str, Variances]
    detectable: dict[str, Detectable]
    """By measure."""
    other_epochs: dict[int, Detectable]
    """For the measure that decides, by compressions per fixture."""
    notes: list[str] = field(default_factory=list)


def estimate(
    plan: SweepPlan,
    prices: Mapping[str, ModelCost],
    logs: Sequence[str] = (),
    margin: float = DEFAULT_THRESHOLD,
) -> Estimate:
    """Return the estimate of a sweep; no model but the embedded one is called.

    Args:
        plan: What would be run.
        prices: By model, in dollars per million tokens; over those that Inspect knows.
        logs: Logs to take spreads and lengths of replies from; the shipped assumptions if none.
        margin: The loss of knowledge (0 to 5) that a comparison must not let pass.

    Raises:
        DataError: A fixture, arm or log is not what it must be, or scipy is not installed.
    """
    _require_scipy()
    variances, assumptions, notes = spreads_of(logs, shipped())
    planned = {arm.label: list(plan.dataset(arm).plans.values()) for arm in plan.arms}
    if plan.passed_over:
        click.echo(passed_over(plan.passed_over), err=True)
    # Inspect greets on stdout when its first model is made.
    with redirect_stdout(sys.stderr):
        arms = anyio.run(_rehearsed, plan, planned, assumptions)
    widest = planned[plan.widest.label]
    units = {id(each.compression) for each in widest}
    design = Design(
        fixtures=len(units),
        probes=len(widest) / len(units),
        states=plan.settings.epochs,
        answers=plan.settings.answers,
    )
    conversations = len({each.compression.fixture.name for each in widest})

    def found(measured: Variances, states: int) -> Detectable:
        return smallest_difference(replace(design, states=states), conversations, measured, margin)

    decides = next(iter(variances.values()))
    return Estimate(
        plan=plan,
        design=design,
        conversations=conversations,
        counter=token_counter().name,
        arms=arms,
        roles=_roles(plan, [costs for _, costs in arms], prices),
        assumptions=assumptions,
        margin=margin,
        variances=variances,
        detectable={name: found(each, design.states) for name, each in variances.items()},
        other_epochs={
            states: found(decides, states) for states in sorted({*_OTHER_EPOCHS, design.states})
        },
        notes=notes,
    )


async def _rehearsed(
    plan: SweepPlan, planned: Mapping[str, list[ProbePlan]], assumptions: Assumptions
) -> list[tuple[Arm, ArmCosts]]:
    model = rehearsing_model()
    with click.progressbar(plan.arms, label="rehearsing the arms", file=sys.stderr) as bar:
        return [
            (arm, await arm_costs(arm, planned[arm.label], plan.settings, assumptions, model))
            for arm in bar
        ]


def _roles(
    plan: SweepPlan, arms: Sequence[ArmCosts], prices: Mapping[str, ModelCost]
) -> list[RoleCosts]:
    """Add up what each model does in each role."""
    compressor = plan.settings.roles.get("compressor")
    totals: dict[tuple[str, str], Tokens] = {}
    for costs in arms:
        for model in plan.settings.models:
            parts = [("answerer", model, costs.answering)]
            parts.extend(("grader", name, costs.grading) for name in plan.graders[model])
            reader, *_ = plan.graders[model]
            if reader != EMBEDDED_MODEL:
                parts.append(("grader", reader, costs.reading))
            parts.append(("compressor", compressor[0] if compressor else model, costs.compressing))
            for role, name, tokens in parts:
                totals[role, name] = totals.get((role, name), Tokens()) + tokens
    ordered = sorted(totals, key=lambda key: ROLES.index(key[0]))
    return [
        _priced(role, name, totals[role, name], price_of(name, prices))
        for role, name in ordered
        if totals[role, name].calls
    ]


def _priced(role: str, model: str, tokens: Tokens, price: ModelCost | None) -> RoleCosts:
    costs = RoleCosts(role, model, tokens, has_prompt_cache(model))
    if price is None:
        return costs
    whole = ModelUsage(input_tokens=round(tokens.input), output_tokens=round(tokens.output))
    costs.dollars_uncached = costs.dollars = compute_model_cost(price, whole)
    if costs.caches:
        rest = tokens.input - tokens.first - tokens.repeated
        shared = ModelUsage(
            input_tokens=round(rest),
            output_tokens=round(tokens.output),
            input_tokens_cache_write=round(tokens.first),
            input_tokens_cache_read=round(tokens.repeated),
        )
        costs.dollars = compute_model_cost(price, shared)
    return costs


def _require_scipy() -> None:
    try:
        import scipy.stats  # noqa: F401
    except ImportError as error:
        raise DataError(
            "what a design can detect needs scipy; install it with: "
            "pip install 'compression_eval[analysis]'"
        ) from error


def smallest_difference(
    design: Design, conversations: int, variances: Variances, margin: float
) -> Detectable:
    """Return what a design finds four times out of five, if that measure decides.

    Args:
        design: Of each of the two arms; its fixtures are counted once per cut.
        conversations: Fixtures, each counted once.
        variances: Of the measure.
        margin: The loss that must not be.
    """
    here = detectable(design, variances)
    elsewhere = _elsewhere(design, conversations, variances)
    return Detectable(
        here if here <= MAX_SCORE else math.inf,
        elsewhere if elsewhere <= MAX_SCORE else math.inf,
        passes=power(margin, design, variances, "margin"),
    )


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
