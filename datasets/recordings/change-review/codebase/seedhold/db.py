"""Connections. Autocommit everywhere; what belongs together goes into `transaction`."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


def connect(path: str) -> sqlite3.Connection:
    """Open a database. Writers do not wait: a locked database is an error at once."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing. Takes the write lock at the start, so that what is read stays true."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
