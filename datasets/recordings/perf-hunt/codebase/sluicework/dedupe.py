"""Readings that were sent more than once."""

import logging

from sluicework.model import Reading, describe

log = logging.getLogger("sluicework.dedupe")


def dedupe(readings: list[Reading]) -> list[Reading]:
    """Keep of each reading the one that arrived last; of two that arrived in one minute, the first.

    The order is that in which the readings were first seen.
    """
    kept: list[Reading] = []
    for reading in readings:
        for position, other in enumerate(kept):
            if other.same_as(reading):
                if reading.arrived() > other.arrived():
                    log.debug("replaced: %s by %s" % (describe(other), describe(reading)))
                    kept[position] = reading
                break
        else:
            kept.append(reading)
    return kept
