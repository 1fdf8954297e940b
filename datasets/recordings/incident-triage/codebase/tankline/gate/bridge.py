"""A weighbridge: compartments that stand on it and wait."""

from dataclasses import dataclass
from datetime import datetime

from tankline.config import load
from tankline.gate.decide import HOLD, REJECT, TIMEOUT, decide, held_minutes
from tankline.intake.register import Register
from tankline.log import Log
from tankline.model import Arrival, Pickup


@dataclass
class Waiting:
    arrival: Arrival
    compartment: int
    pickups: list[Pickup]
    since: datetime


class Bridge:
    def __init__(self, name: str, env: str, register: Register, log: Log) -> None:
        self.name = name
        self.env = env
        self.gate = load(env)["gate"]
        self.register = register
        self.log = log
        self.waiting: list[Waiting] = []

    def arrive(self, arrival: Arrival) -> None:
        for number, pickups in self.register.compartments(arrival.tour, arrival.at).items():
            waiting = Waiting(arrival, number, pickups, arrival.at)
            self.waiting.append(waiting)
            if not self._look(arrival.at, waiting):
                _, pending = decide(self.register, pickups, 0, self.gate)
                self._write(arrival.at, waiting, "info", HOLD, pending=pending)

    def poll(self, at: datetime) -> None:
        for waiting in list(self.waiting):
            self._look(at, waiting)

    def oldest(self, at: datetime) -> int:
        """Return the minutes the longest waiting compartment has been standing."""
        return max((held_minutes(w.since, at) for w in self.waiting), default=0)

    def _look(self, at: datetime, waiting: Waiting) -> bool:
        held = held_minutes(waiting.since, at)
        decision, about = decide(self.register, waiting.pickups, held, self.gate)
        if decision == HOLD:
            return False
        self.waiting.remove(waiting)
        level = "warning" if decision in (REJECT, TIMEOUT) else "info"
        self._write(at, waiting, level, decision, held_min=held, about=about)
        return True

    def _write(self, at: datetime, waiting: Waiting, level: str, event: str, **fields: object) -> None:
        self.log.write(at, "gate", self.env, level, event, bridge=self.name, arrival=waiting.arrival.id,
                       compartment=waiting.compartment, litres=sum(p.litres for p in waiting.pickups),
                       silo=waiting.arrival.silo, **fields)
