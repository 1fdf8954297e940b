"""Requests for seeds: open, approved or refused, shipped."""

import sqlite3
from datetime import date

from seedhold import lots
from seedhold.config import Settings
from seedhold.days import start_of
from seedhold.db import transaction
from seedhold.errors import NotEnough, Unknown, WrongState
from seedhold.units import mass_of


def get(connection: sqlite3.Connection, request: int) -> sqlite3.Row:
    """Return a request."""
    row = connection.execute("SELECT * FROM requests WHERE id = ?", (request,)).fetchone()
    if row is None:
        raise Unknown(f"request {request}")
    return row


def create(connection: sqlite3.Connection, accession: str, requester: str, seeds: int, today: date) -> int:
    """Enter a request and return its number."""
    lots.collection_of(connection, accession)
    cursor = connection.execute(
        "INSERT INTO requests (accession, requester, seeds, state, created_at) VALUES (?, ?, ?, 'open', ?)",
        (accession, requester, seeds, start_of(today)),
    )
    return int(cursor.lastrowid or 0)


def approve(connection: sqlite3.Connection, request: int, settings: Settings, today: date) -> None:
    """Say yes. Nothing is set aside: stock is looked at when the parcel is packed."""
    with transaction(connection):
        row = get(connection, request)
        if row["state"] != "open":
            raise WrongState(f"request {request} is {row['state']}")
        connection.execute(
            "UPDATE requests SET state = 'approved', approved_at = ? WHERE id = ?",
            (start_of(today), request),
        )


def refuse(connection: sqlite3.Connection, request: int) -> None:
    """Say no, also to what was approved before."""
    with transaction(connection):
        row = get(connection, request)
        if row["state"] not in ("open", "approved"):
            raise WrongState(f"request {request} is {row['state']}")
        connection.execute("UPDATE requests SET state = 'refused' WHERE id = ?", (request,))


def ship(connection: sqlite3.Connection, request: int, settings: Settings, today: date) -> list[tuple[int, int]]:
    """Take the seeds out of the lots; return lot and milligrams of each packet."""
    with transaction(connection):
        row = get(connection, request)
        if row["state"] != "approved":
            raise WrongState(f"request {request} is {row['state']}")
        chosen = lots.eligible(connection, row["accession"], settings)
        floor = settings.floor(lots.collection_of(connection, row["accession"]))
        if row["seeds"] > sum(lot.seeds for lot in chosen) - floor:
            raise NotEnough(f"request {request} wants {row['seeds']} of {row['accession']}")
        packets = []
        left = row["seeds"]
        for lot in chosen:
            take = min(left, lot.seeds)
            if take:
                packets.append((lot.id, take_out(connection, lot, take, request, today)))
                left -= take
        connection.execute(
            "UPDATE requests SET state = 'shipped', shipped_at = ? WHERE id = ?", (start_of(today), request)
        )
    return packets


def take_out(connection: sqlite3.Connection, lot: lots.Lot, seeds: int, request: int, today: date) -> int:
    """Book seeds out of a lot and return the milligrams."""
    mg = min(mass_of(seeds, lot.tsw_mg), lot.mg)
    connection.execute("UPDATE lots SET mg = mg - ? WHERE id = ?", (mg, lot.id))
    connection.execute(
        "INSERT INTO movements (lot, mg, reason, request, moved_at) VALUES (?, ?, 'shipped', ?, ?)",
        (lot.id, -mg, request, start_of(today)),
    )
    return mg
