"""Recovers the readable rows of a damaged SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_MAX_ROWID = 2**63 - 1
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"
_MAX_BYTES = 1 << 40
"""A file whose header claims a larger size is not extended: the header is damaged, too."""


def open_damaged(path: str) -> sqlite3.Connection:
    """Open a damaged file that no process uses. Invalid UTF-8 is replaced.

    A truncated file is extended to its former length with zeros, because SQLite rejects a file that is too
    short.
    """
    with open(path, "rb") as file:
        header = file.read(_HEADER_BYTES)
    if len(header) == _HEADER_BYTES and header.startswith(_MAGIC):
        size = (int.from_bytes(header[16:18], "big") or 1) * int.from_bytes(header[28:32], "big")
        if os.path.getsize(path) < size <= _MAX_BYTES:
            os.truncate(path, size)
    connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    connection.row_factory = sqlite3.Row
    return connection


def rows(connection: sqlite3.Connection, table: str) -> Iterator[Row]:
    """Yield the readable rows of a table, each once, in no particular order."""
    try:
        connection.execute(f"SELECT rowid FROM {table} LIMIT 1").fetchone()
    except sqlite3.OperationalError:  # the table does not exist, or has no rowid
        yield from _from_both_ends(connection, table)
    except sqlite3.DatabaseError:
        yield from _by_rowid(connection, table)
    else:
        yield from _by_rowid(connection, table)


def _by_rowid(connection: sqlite3.Connection, table: str) -> Iterator[Row]:
    """Read in rowid order; after an unreadable page, skip ahead in growing steps."""
    after, step = -1, 1
    while after < _MAX_ROWID:
        try:
            readable = connection.execute(
                f"SELECT rowid AS _rowid, * FROM {table} WHERE rowid > ? ORDER BY rowid", (after,)
            )
            for row in readable:
                values = dict(row)
                after, step = values.pop("_rowid"), 1
                yield values
            return
        except sqlite3.DatabaseError:
            after, step = min(after + step, _MAX_ROWID), 2 * step


def _from_both_ends(connection: sqlite3.Connection, table: str) -> Iterator[Row]:
    """Read in primary key order from either end, up to the first unreadable page."""
    try:
        key = [name for name, position in connection.execute(_KEY, (table,)) if position]
    except sqlite3.DatabaseError:
        return
    identities: set[tuple[Any, ...]] = set()
    for direction in ("ASC", "DESC"):
        order = ", ".join(f'"{name}" {direction}' for name in key)
        try:
            for row in connection.execute(
                f"SELECT * FROM {table} ORDER BY {order}" if key else "SELECT 1 WHERE 0"
            ):
                identity = tuple(row[column] for column in key)
                if identity in identities:
                    return
                identities.add(identity)
                yield dict(row)
        except sqlite3.DatabaseError:
            continue
        return


_KEY = "SELECT name, pk FROM pragma_table_info(?) ORDER BY pk"
