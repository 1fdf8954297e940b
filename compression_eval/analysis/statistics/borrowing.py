"""What to do about a measure on which no run differed from another.

A measure at its ceiling, such as a format that every answer keeps to, shows no spread between
compressions. That is no proof that there is none, so such a difference has no error of its own. It
is judged with the widest error among the measures that were tested with it, which is more than a
measure at a bound would show.
"""

import math
from collections.abc import Container, Mapping
from dataclasses import replace

from compression_eval.analysis.statistics.intervals import Difference, Spread


def with_borrowed_spread(
    differences: Mapping[str, Difference],
    thresholds: Mapping[str, float],
    exact: Container[str] = (),
) -> tuple[dict[str, Difference], frozenset[str]]:
    """Return the differences, with an error from another measure where one has shown none.

    Args:
        differences: By measure, all of which are looked at together.
        thresholds: By measure, in its unit; errors are carried over in shares of it.
        exact: Measures that come out the same every time, and therefore need no error.

    Returns:
        The differences, and the names of those that borrowed.
    """
    spreads = {
        name: each.here
        for name, each in differences.items()
        if each.here is not None and each.here.error > 0
    }
    if not spreads:
        return dict(differences), frozenset()
    lender = max(spreads, key=lambda name: spreads[name].error / thresholds[name])
    borrowers = frozenset(
        name
        for name, each in differences.items()
        if each.here is not None and each.here.error == 0 and name not in exact
    )
    error, freedom = spreads[lender].error / thresholds[lender], spreads[lender].freedom
    found = {
        name: replace(each, here=Spread(error * thresholds[name], freedom))
        if name in borrowers
        else each
        for name, each in differences.items()
    }
    return found, borrowers


def known_exactly(
    differences: Mapping[str, Difference], exact: Container[str]
) -> dict[str, Difference]:
    """Return the differences, without error where both arms come out the same every time.

    One compression is then enough: without this it would count as one that was not repeated.
    """
    certain = Spread(0.0, math.inf)
    return {
        name: replace(each, here=certain) if name in exact and each.here is None else each
        for name, each in differences.items()
    }
