"""What a migration back to an earlier revision must not lose."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, text


def check_nothing_is_lost(connection: Connection, revision: str, losses: Iterable[tuple[str, str]]) -> None:
    """Check that a downgrade of a revision loses nothing.

    Args:
        losses: queries, each with a text that says what its first value means and what to do about it. A
            query without rows has found nothing.

    Raises:
        RuntimeError: a query found something.
    """
    for query, what in losses:
        value = connection.execute(text(query)).scalar()
        if value is not None:
            raise RuntimeError(f"cannot return to the revision before {revision}: {what.format(value)}")


def rows_of(table: str, where: str = "") -> str:
    """A query for `check_nothing_is_lost` that counts rows."""
    condition = f" WHERE {where}" if where else ""
    return f"SELECT count(*) FROM {table}{condition} HAVING count(*) > 0"
