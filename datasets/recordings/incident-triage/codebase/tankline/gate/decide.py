"""The decision about one compartment."""

from datetime import datetime
from typing import Any

from tankline.intake.register import Register
from tankline.model import Pickup

RELEASE, HOLD, REJECT, TIMEOUT = "release", "hold", "reject", "release.timeout"


def decide(register: Register, pickups: list[Pickup], held_min: int, gate: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the decision and the ids of the pick-ups it is for.

    A positive result decides at once, whatever else is pending.
    """
    results = {p.id: register.result_of(p.id) for p in pickups}
    positive = [key for key, value in results.items() if value and value[1] == "pos"]
    if positive:
        return REJECT, positive
    warm = [p.id for p in pickups if p.temp_c > gate["max_temp_c"]]
    if warm:
        return REJECT, warm
    pending = [key for key, value in results.items() if value is None]
    if not pending:
        return RELEASE, []
    if gate["release_on_timeout"] and held_min >= gate["pending_release_min"]:
        return TIMEOUT, pending
    return HOLD, pending


def held_minutes(since: datetime, at: datetime) -> int:
    return int((at - since).total_seconds() // 60)
