"""A small bank in memory or in a file."""

import sqlite3
import tempfile
import unittest
from datetime import date
from pathlib import Path

from seedhold import migrate
from seedhold.config import Settings
from seedhold.db import connect

TODAY = date(2026, 3, 2)
SETTINGS = Settings(
    site="test", db=":memory:", floor_base=1500, floor_active=250, min_viability=85, retest_months=60
)


class BankTest(unittest.TestCase):
    """Two accessions: A-1 (base, lots 1 and 2), B-1 (active, lot 3, and lot 4 in quarantine)."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = str(Path(folder.name) / "bank.db")
        self.connection = self.open()
        migrate.up(self.connection)
        self.connection.executescript(
            """
            INSERT INTO accessions VALUES ('A-1', 'Avena fatua', 'base', 'D-07'), ('B-1', 'Bellis annua', 'active', 'D-11');
            INSERT INTO lots VALUES (1, 'A-1', 'F2', '2011-05-01', 20000, 20000, 'active'),
              (2, 'A-1', 'F3', '2014-05-01', 30000, 20000, 'active'),
              (3, 'B-1', 'F2', '2019-05-01', 90, 150, 'active'),
              (4, 'B-1', 'F9', '2018-05-01', 900, 150, 'quarantine');
            INSERT INTO germination_tests VALUES (1, 1, '2023-04-01', 100, 91), (2, 2, '2023-04-01', 100, 85),
              (3, 3, '2024-04-01', 50, 48), (4, 4, '2024-04-01', 50, 49);
            """
        )

    def open(self) -> sqlite3.Connection:
        """Return a further connection to the same bank."""
        connection = connect(self.path)
        connection.execute("PRAGMA synchronous = OFF")  # a test need not survive a power cut
        self.addCleanup(connection.close)
        return connection
