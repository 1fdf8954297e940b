"""Student's t, from scipy; imported late, because only an analysis needs it."""

from functools import cache


@cache
def t_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t."""
    from scipy.stats import t

    return float(t.ppf(probability, freedom))


def t_two_sided(value: float, freedom: float) -> float:
    """Return the probability of a t at least so far from zero."""
    from scipy.stats import t

    return float(2 * t.sf(abs(value), freedom))
