"""The smallest true difference that a design finds: on its conversations, and for new ones."""

import math
from dataclasses import dataclass

from compression_eval.analysis.statistics.intervals import LEVEL
from compression_eval.analysis.statistics.power import (
    WANTED,
    Design,
    Variances,
    detectable,
    power,
    standard_error,
)
from compression_eval.fixtures.errors import DataError
from compression_eval.grading.rubric import MAX_SCORE


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


def smallest_difference(
    design: Design, conversations: int, variances: Variances, margin: float
) -> Detectable:
    """Return what a design finds four times out of five, if that measure decides.

    Args:
        design: Of each of the two arms; its fixtures are counted once per cut.
        conversations: Fixtures, each counted once.
        variances: Of the measure.
        margin: The loss that must not be.

    Raises:
        DataError: scipy is not installed.
    """
    require_scipy()
    here = detectable(design, variances)
    elsewhere = _elsewhere(design, conversations, variances)
    return Detectable(
        here if here <= MAX_SCORE else math.inf,
        elsewhere if elsewhere <= MAX_SCORE else math.inf,
        passes=power(margin, design, variances, "margin"),
    )


def require_scipy() -> None:
    """Raise if scipy is not there.

    Raises:
        DataError: It is not installed; the text says how to get it.
    """
    try:
        import scipy.stats  # noqa: F401
    except ImportError as error:
        raise DataError(
            "what a design can detect needs scipy; install it with: "
            "pip install 'compression_eval[analysis]'"
        ) from error


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
