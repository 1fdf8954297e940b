"""A reading on its way through the stages."""

from dataclasses import dataclass
from datetime import datetime

FORMAT = "%Y-%m-%dT%H:%M"


@dataclass
class Reading:
    """One line of a night; times are local text as the meters send them."""

    zone: str
    meter: str
    at: str
    received: str
    litres: int
    rate: int = 0
    price: int = 0
    site: str = ""

    def taken(self) -> datetime:
        """Return when the reading was taken."""
        return datetime.strptime(self.at, FORMAT)

    def arrived(self) -> datetime:
        """Return when the reading arrived."""
        return datetime.strptime(self.received, FORMAT)

    def same_as(self, other: "Reading") -> bool:
        """Whether both are the same reading, sent twice."""
        return self.meter == other.meter and self.at == other.at

    def __lt__(self, other: "Reading") -> bool:
        return (self.at, self.meter) < (other.at, other.meter)


def describe(reading: Reading) -> str:
    """Return a reading for the log."""
    parts = {name: str(getattr(reading, name)) for name in ("zone", "meter", "at", "received", "litres", "price")}
    return " ".join(f"{name}={value}" for name, value in sorted(parts.items()))
