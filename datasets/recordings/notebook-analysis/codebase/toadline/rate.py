"""The passage rate of section B."""


def passage_rate(passes: float, casualties: float) -> float:
    """Return passes / (passes + casualties); casualties are the estimated ones."""
    total = passes + casualties
    if total == 0:
        raise ValueError("no passes and no casualties")
    return passes / total
