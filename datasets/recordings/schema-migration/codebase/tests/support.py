"""A database in memory, with two kiosks and the rates."""

import sqlite3
from pathlib import Path

from tollwick.api import Api
from tollwick.config import Settings
from tollwick.db import connect
from tollwick.migrate import runner

NOON = 1772190000  # 2026-02-27 11:00:00 UTC, 12:00 local


def database(to: int | None = None, path: str | Path = ":memory:") -> sqlite3.Connection:
    connection = connect(path)
    runner.up(connection, to=to)
    with connection:
        connection.executemany(
            "INSERT INTO kiosks VALUES (?, ?, ?)", [("K001", "Harbour Gate", 1), ("K002", "Millbrook", 0)]
        )
        connection.executemany(
            "INSERT INTO deposit_rates VALUES (?, ?, ?)",
            [("PET05", "2024-01-01", 25), ("GLS05", "2024-01-01", 8), ("GLS05", "2025-12-01", 9)],
        )
    return connection


def api(mode: str = "legacy") -> Api:
    return Api(database(), Settings("test", ":memory:", returns_mode=mode))


def printed(api: Api, voucher: str = "K001-0227-0001", items: str = "PET05:3;GLS05:2") -> int:
    started = api.call("start", {"kiosk": "K001", "started": "2026-02-27 11:00:00"}, NOON)
    api.call("finish", {"return_id": started["return_id"], "items": items, "voucher": voucher}, NOON + 40)
    return int(started["return_id"])
