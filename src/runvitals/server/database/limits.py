"""Limits of how many rows there are. They hold when many requests come at once."""

from __future__ import annotations

import zlib
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Table, func, select, text

from runvitals.store.errors import LimitReached

_TURN: Final = text("SELECT pg_advisory_xact_lock(:what, :owner)")


def take_turns(connection: Connection, what: str, owner_id: int = 0) -> None:
    """Let transactions that add or replace something of an owner come one after the other, until they end.

    Each sees what those before have stored. SQLite has only one transaction that writes at a time.

    Args:
        what: such as the name of the table.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_TURN, {"what": zlib.crc32(what.encode()) - 2**31, "owner": owner_id})


def check_room(
    connection: Connection,
    rows: Table,
    most: int,
    refusal: str,
    *conditions: ColumnElement[Any],
    owner_id: int = 0,
) -> None:
    """Raise LimitReached if there are as many rows as allowed; others that add one wait until this one did.

    Args:
        refusal: says how many are allowed, and what to do.
        conditions: which rows are counted, such as those of one project; none: all.
        owner_id: of the project or user whose rows are counted.

    Example:
        >>> check_room(connection, sweep, 10_000, "delete some", sweep.c.project_id == 7, owner_id=7)
    """
    take_turns(connection, rows.name, owner_id)
    if connection.execute(select(func.count()).select_from(rows).where(*conditions)).scalar_one() >= most:
        raise LimitReached(refusal)
