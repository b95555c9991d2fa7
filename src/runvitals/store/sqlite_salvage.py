"""Reading what can be read of a damaged SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_LARGEST = 2**63 - 1
_HEAD = 100
_MAGIC = b"SQLite format 3\0"
_LONGEST = 1 << 40
"""Bytes. A file that says it was longer is not made so: what says so is damaged too."""


def opened(path: str) -> sqlite3.Connection:
    """A connection to a damaged file that nobody uses any longer. Texts that are no UTF-8 are mended.

    One that was cut off gets its length back, without content: SQLite reads nothing of a file that is too
    short.
    """
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if len(head) == _HEAD and head.startswith(_MAGIC):
        size = (int.from_bytes(head[16:18], "big") or 1) * int.from_bytes(head[28:32], "big")
        if os.path.getsize(path) < size <= _LONGEST:
            os.truncate(path, size)
    connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    connection.row_factory = sqlite3.Row
    return connection


def rows(connection: sqlite3.Connection, table: str) -> Iterator[Row]:
    """The rows of a table, in no order, each once; those that cannot be read are passed over."""
    try:
        connection.execute(f"SELECT rowid FROM {table} LIMIT 1").fetchone()
    except sqlite3.OperationalError:  # there is no such table, or it has a key of its own
        yield from _from_both_ends(connection, table)
    except sqlite3.DatabaseError:
        yield from _by_rowid(connection, table)
    else:
        yield from _by_rowid(connection, table)


def _by_rowid(connection: sqlite3.Connection, table: str) -> Iterator[Row]:
    """Row after row; behind a page that cannot be read in steps that grow."""
    after, step = -1, 1
    while after < _LARGEST:
        try:
            some = connection.execute(
                f"SELECT rowid AS _rowid, * FROM {table} WHERE rowid > ? ORDER BY rowid", (after,)
            )
            for row in some:
                values = dict(row)
                after, step = values.pop("_rowid"), 1
                yield values
            return
        except sqlite3.DatabaseError:
            after, step = min(after + step, _LARGEST), 2 * step


def _from_both_ends(connection: sqlite3.Connection, table: str) -> Iterator[Row]:
    try:
        key = [name for name, place in connection.execute(_KEY, (table,)) if place]
    except sqlite3.DatabaseError:
        return
    seen: set[tuple[Any, ...]] = set()
    for direction in ("ASC", "DESC"):
        order = ", ".join(f'"{name}" {direction}' for name in key)
        try:
            for row in connection.execute(
                f"SELECT * FROM {table} ORDER BY {order}" if key else "SELECT 1 WHERE 0"
            ):
                name = tuple(row[one] for one in key)
                if name in seen:
                    return
                seen.add(name)
                yield dict(row)
        except sqlite3.DatabaseError:
            continue
        return


_KEY = "SELECT name, pk FROM pragma_table_info(?) ORDER BY pk"
