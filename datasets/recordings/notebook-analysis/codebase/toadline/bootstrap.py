"""Bootstrap over nights."""

import random

from toadline.rate import passage_rate


def quantile(values, q: float) -> float:
    """Return the q-quantile of sorted values, between neighbours in a straight line."""
    place = q * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def rate_interval(passes, casualties, draws: int, level: float, seed: int):
    """Return (low, high) of the passage rate.

    ``passes`` and ``casualties`` (estimated) are lists with one number for each night.
    """
    rng = random.Random(seed)
    rates = []
    for _ in range(draws):
        some = rng.choices(passes, k=len(passes))
        others = rng.choices(casualties, k=len(casualties))
        if sum(some) + sum(others):
            rates.append(passage_rate(sum(some), sum(others)))
    rates.sort()
    return quantile(rates, (1 - level) / 2), quantile(rates, (1 + level) / 2)
