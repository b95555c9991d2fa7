"""Sets of columns: each is stored once per file, and referenced by its id."""

from __future__ import annotations

import sqlite3
from functools import lru_cache

import numpy as np

Columns = tuple[int, ...]
_NUMBER_BYTES = 4


def add_columns(connection: sqlite3.Connection, metrics: Columns) -> int:
    """Return the id of a set of columns in the table `columns`; adds it if it is new."""
    packed = np.array(metrics, "<u4").tobytes()
    connection.execute("INSERT OR IGNORE INTO columns (metrics) VALUES (?)", (packed,))
    (column_id,) = connection.execute("SELECT id FROM columns WHERE metrics=?", (packed,)).fetchone()
    return int(column_id)


def read_columns(connection: sqlite3.Connection) -> dict[int, Columns]:
    """Return all sets of columns of a file, by id."""
    rows = connection.execute("SELECT id, metrics FROM columns")
    return {column_id: unpack_columns(packed) for column_id, packed in rows}


@lru_cache(maxsize=1024)
def unpack_columns(packed: bytes | None) -> Columns:
    """Return the columns of a packed set; none if its row is missing (None), or damaged."""
    if not isinstance(packed, bytes) or len(packed) % _NUMBER_BYTES:
        return ()
    return tuple(np.frombuffer(packed, "<u4").tolist())
