"""The register of pick-ups, one for both regions."""

from datetime import datetime, timedelta

from tankline.model import Pickup, Result


class Register:
    """Pick-ups by id and by bottle, and the result each of them has."""

    def __init__(self) -> None:
        self.pickups: dict[str, Pickup] = {}
        self._by_bottle: dict[str, list[Pickup]] = {}
        self._results: dict[str, tuple[str, str]] = {}

    def add(self, pickup: Pickup) -> None:
        self.pickups[pickup.id] = pickup
        self._by_bottle.setdefault(pickup.bottle, []).append(pickup)
        if pickup.settled_result:
            self._results[pickup.id] = (pickup.settled_result, pickup.settled_inhibitor)

    def by_bottle(self, bottle: str, at: datetime, window_h: int) -> Pickup | None:
        """Return the latest pick-up with this bottle, not older than the window."""
        oldest = at - timedelta(hours=window_h)
        found = [p for p in self._by_bottle.get(bottle, []) if oldest <= p.at <= at]
        return max(found, key=lambda p: (p.at, p.id), default=None)

    def result_of(self, pickup_id: str) -> tuple[str, str] | None:
        """Return id and inhibitor of the result, or None while it is pending."""
        return self._results.get(pickup_id)

    def attach(self, pickup: Pickup, result: Result) -> None:
        self._results[pickup.id] = (result.id, result.inhibitor)

    def compartments(self, tour: str, at: datetime) -> dict[int, list[Pickup]]:
        """Return what a tour that arrives now has in each compartment; a tour lasts 14 hours at most."""
        found: dict[int, list[Pickup]] = {}
        for pickup in self.pickups.values():
            if pickup.tour == tour and at - timedelta(hours=14) <= pickup.at <= at:
                found.setdefault(pickup.compartment, []).append(pickup)
        return dict(sorted(found.items()))
