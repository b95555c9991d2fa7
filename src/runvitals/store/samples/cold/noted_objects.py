"""Notes in the log on cold storage: its address, and objects that may be there without being needed.

An object is noted before it is put there, and when the last chunk that needed it is gone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from runvitals.store.samples.sqlite import database
from runvitals.store.samples.sqlite.log import Log

# Not part of the format version: older versions can read and write logs with these tables.
_CREATE = (
    "CREATE TABLE IF NOT EXISTS cold_address (address TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS noted_object (sha256 TEXT PRIMARY KEY, since_ms INTEGER NOT NULL)",
)
TABLES = ("cold_address", "noted_object")


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of noted objects."""
    for statement in _CREATE:
        connection.execute(statement)


def read_address(connection: sqlite3.Connection) -> str | None:
    """Read the address of cold storage; None if there are no cold chunks."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='cold_address'").fetchone():
        return None
    row = connection.execute("SELECT address FROM cold_address").fetchone()
    return None if row is None else str(row[0])


def record_address(log: Log, address: str) -> None:
    """Record where cold chunks are. Durable."""
    with database.store_errors(log.path), database.transaction(log.connection):
        create_tables(log.connection)
        log.connection.execute("DELETE FROM cold_address")
        log.connection.execute("INSERT INTO cold_address VALUES (?)", (address,))


def read_all(log: Log) -> list[str]:
    """Return the objects that may not be needed."""
    with database.store_errors(log.path):
        return [sha256 for (sha256,) in log.connection.execute("SELECT sha256 FROM noted_object")]


def note(log: Log, digests: Iterable[str], now_ms: int) -> None:
    """Note objects that may not be needed. Durable."""
    with database.store_errors(log.path), database.transaction(log.connection):
        log.connection.executemany(
            "REPLACE INTO noted_object VALUES (?, ?)", [(sha256, now_ms) for sha256 in digests]
        )


def noted_before(log: Log, t_ms: int) -> list[str]:
    """Return the objects that were noted before a time."""
    with database.store_errors(log.path):
        rows = log.connection.execute("SELECT sha256 FROM noted_object WHERE since_ms < ?", (t_ms,))
        return [sha256 for (sha256,) in rows]


def forget(log: Log, digests: Iterable[str]) -> None:
    """Forget objects: they are needed, or were removed."""
    with database.store_errors(log.path), database.transaction(log.connection):
        log.connection.executemany(
            "DELETE FROM noted_object WHERE sha256=?", [(sha256,) for sha256 in digests]
        )
