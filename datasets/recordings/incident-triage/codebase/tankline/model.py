"""What passes between the services."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class Pickup:
    """One farm tank emptied into one compartment of a truck, with one sample bottle."""

    id: str
    at: datetime
    registered_at: datetime
    region: str
    tour: str
    truck: str
    compartment: int
    farm: str
    litres: int
    temp_c: float
    rack: str
    bottle: str
    """The number printed on the bottle, as the truck unit scanned it."""
    settled_result: str = ""
    settled_inhibitor: str = ""


@dataclass(frozen=True)
class Result:
    """One line of a lab file."""

    id: str
    file: str
    label: str
    """The bottle's number as the lab's scanner writes it, padded to eight digits."""
    bench: str
    inhibitor: str
    measured_at: datetime
    rack: str = ""


@dataclass(frozen=True)
class Arrival:
    """A truck on a weighbridge."""

    id: str
    at: datetime
    region: str
    bridge: str
    truck: str
    tour: str
    silo: str


@dataclass
class Message:
    """A result on its way through the bus."""

    result: Result
    attempts: int = 0
    history: list[str] = field(default_factory=list)
