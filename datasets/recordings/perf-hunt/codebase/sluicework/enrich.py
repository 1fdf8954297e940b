"""Site, rate and price."""

import logging
from decimal import ROUND_HALF_UP, Decimal

from sluicework.model import Reading, describe
from sluicework.registry import Registry
from sluicework.tariffs import Tariffs

log = logging.getLogger("sluicework.enrich")


def price(litres: int, rate: int) -> int:
    """Return the price in tenths of a cent."""
    return int((Decimal(litres) * Decimal(rate) / Decimal(1000)).quantize(Decimal(1), rounding=ROUND_HALF_UP))


def enrich(readings: list[Reading], registry: Registry, tariffs: Tariffs) -> tuple[list[Reading], list[Reading]]:
    """Return the priced readings, and those whose meter is unknown."""
    priced, unknown = [], []
    for reading in readings:
        meter = registry.find(reading.meter, reading.at)
        if meter is None:
            unknown.append(reading)
            continue
        reading.site = meter.site
        reading.litres *= meter.factor
        reading.rate = tariffs.tariff_for(reading.zone, reading.at)
        reading.price = price(reading.litres, reading.rate)
        log.debug("priced: %s" % describe(reading))
        priced.append(reading)
    return priced, unknown
