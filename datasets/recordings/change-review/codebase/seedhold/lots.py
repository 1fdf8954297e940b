"""Lots: packets of one accession in one freezer."""

import sqlite3
from dataclasses import dataclass

from seedhold.config import Settings
from seedhold.errors import Unknown
from seedhold.units import seeds_in


@dataclass(frozen=True)
class Lot:
    """A row of `lots` with its last germination test."""

    id: int
    accession: str
    freezer: str
    packed_on: str
    mg: int
    tsw_mg: int | None
    status: str
    sown: int | None
    germinated: int | None

    @property
    def seeds(self) -> int:
        """Whole seeds; NoSeedWeight for a lot that was never weighed."""
        return seeds_in(self.mg, self.tsw_mg)

    def viable(self, least: int) -> bool:
        """Whether the last test reached `least` percent. A lot never tested is not viable."""
        return bool(self.sown) and self.germinated * 100 >= least * self.sown


_SELECT = """
SELECT l.id, l.accession, l.freezer, l.packed_on, l.mg, l.tsw_mg, l.status, t.sown, t.germinated
FROM lots l
LEFT JOIN germination_tests t ON t.id = (
  SELECT id FROM germination_tests WHERE lot = l.id ORDER BY tested_on DESC, id DESC LIMIT 1
)
"""


def get(connection: sqlite3.Connection, lot: int) -> Lot:
    """Return a lot."""
    row = connection.execute(_SELECT + "WHERE l.id = ?", (lot,)).fetchone()
    if row is None:
        raise Unknown(f"lot {lot}")
    return Lot(**dict(row))


def of_accession(connection: sqlite3.Connection, accession: str) -> list[Lot]:
    """Return the lots of an accession, the oldest first."""
    rows = connection.execute(_SELECT + "WHERE l.accession = ? ORDER BY l.packed_on, l.id", (accession,))
    return [Lot(**dict(row)) for row in rows]


def eligible(connection: sqlite3.Connection, accession: str, settings: Settings) -> list[Lot]:
    """Return the lots from which seeds may be given away, in the order in which they are taken."""
    blocked = {"exhausted", "quarantine"} if settings.quarantine_blocks else {"exhausted"}
    return [
        lot
        for lot in of_accession(connection, accession)
        if lot.status not in blocked and lot.tsw_mg and lot.viable(settings.min_viability)
    ]


def collection_of(connection: sqlite3.Connection, accession: str) -> str:
    """Return `base` or `active`."""
    row = connection.execute("SELECT collection FROM accessions WHERE id = ?", (accession,)).fetchone()
    if row is None:
        raise Unknown(f"accession {accession}")
    return str(row["collection"])
