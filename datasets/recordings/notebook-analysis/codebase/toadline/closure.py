"""Nights on which the road would be closed."""


def closed_nights(weather, temp: float, rain_mm: float):
    """Return the nights that fulfil the rule; ``weather`` as `toadline.weather.by_night` has it."""
    return [
        night for night, (at_21, mm) in sorted(weather.items())
        if at_21 is not None and at_21 >= temp and mm >= rain_mm
    ]


def covered(arrivals, nights) -> float:
    """Return the share of arrivals ({night: number}) that falls on the nights."""
    total = sum(arrivals.values())
    return sum(arrivals.get(night, 0) for night in nights) / total


def median_night(arrivals):
    """Return the night by which half of the animals had arrived."""
    half = sum(arrivals.values()) / 2
    so_far = 0
    for night in sorted(arrivals):
        so_far += arrivals[night]
        if so_far >= half:
            return night
    raise ValueError("no arrivals")
