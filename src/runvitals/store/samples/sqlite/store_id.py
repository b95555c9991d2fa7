"""The id of the store that a month file belongs to.

Run and metric ids mean something else in another store. Each file therefore has the id that the sample store
shares with its metadata store (see `runvitals.server.pairing.pairing`). Files of older versions, and of
stores without a metadata store, have none and are accepted.
"""

from __future__ import annotations

import sqlite3


def read(connection: sqlite3.Connection) -> str | None:
    """Return the id of the store that a file belongs to, if it has one."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='store'").fetchone():
        return None
    row = connection.execute("SELECT id FROM store").fetchone()
    return None if row is None else str(row[0])


def stamp(connection: sqlite3.Connection, store_id: str) -> None:
    """Write the id of the store that a file belongs to, unless it has one."""
    if read(connection) is None:
        # Not part of the format version: older versions can read and write files with this table.
        connection.execute("CREATE TABLE IF NOT EXISTS store (id TEXT NOT NULL)")
        connection.execute("INSERT INTO store VALUES (?)", (store_id,))


def is_another(stamped: str | None, store_id: str | None) -> bool:
    """Return whether a file with the id `stamped` belongs to a different store than `store_id`."""
    return stamped is not None and store_id is not None and stamped != store_id
