"""The stock list that curators print on Mondays."""

import sqlite3
from collections.abc import Iterator

from seedhold import lots
from seedhold.config import Settings


def stock(connection: sqlite3.Connection, settings: Settings) -> Iterator[dict[str, object]]:
    """Yield one line for each accession: seeds in eligible lots, the floor, and what is free."""
    for row in connection.execute("SELECT id, collection FROM accessions ORDER BY id"):
        seeds = sum(lot.seeds for lot in lots.eligible(connection, row["id"], settings))
        floor = settings.floor(row["collection"])
        yield {"accession": row["id"], "seeds": seeds, "floor": floor, "free": max(0, seeds - floor)}


def lines(connection: sqlite3.Connection, settings: Settings) -> Iterator[str]:
    """Yield the list as text."""
    yield f"{'accession':<12}{'seeds':>9}{'floor':>7}{'free':>9}"
    for row in stock(connection, settings):
        yield f"{row['accession']:<12}{row['seeds']:>9}{row['floor']:>7}{row['free']:>9}"
