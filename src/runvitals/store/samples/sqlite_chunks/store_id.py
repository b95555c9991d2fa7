"""Which store a month's file belongs to.

Its samples are under numbers of runs and metrics that mean something else in another store. So each file
has the id that the store shares with its catalogue (see `runvitals.store.pairing`). Files from before this
was written, and those of a store that no catalogue was used with, have none, and are taken as they are.
"""

from __future__ import annotations

import sqlite3


def of(connection: sqlite3.Connection) -> str | None:
    """The id of the store that a file belongs to; None: it has none."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='store'").fetchone():
        return None
    row = connection.execute("SELECT id FROM store").fetchone()
    return None if row is None else str(row[0])


def stamp(connection: sqlite3.Connection, store_id: str) -> None:
    """Note in a file, if it has none, the id of the store that it belongs to."""
    if of(connection) is None:
        # Not in the format: older versions can read and write a file that has this table.
        connection.execute("CREATE TABLE IF NOT EXISTS store (id TEXT NOT NULL)")
        connection.execute("INSERT INTO store VALUES (?)", (store_id,))


def is_another(stamped: str | None, store_id: str | None) -> bool:
    """Whether a file with this id belongs to another store than the one with that id."""
    return stamped is not None and store_id is not None and stamped != store_id
