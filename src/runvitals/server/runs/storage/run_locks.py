"""Locks runs while their data change. A leaf: tables of artifacts, files and sweeps lock runs too."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from runvitals.model.errors import UnknownRun
from runvitals.server.database.database import among
from runvitals.server.database.tables.runs import run


def lock_runs(connection: Connection, run_ids: Iterable[int]) -> list[int]:
    """Lock those of the runs that exist until the transaction ends; return their ids."""
    statement = select(run.c.id).where(among(connection, run.c.id, run_ids)).order_by(run.c.id)
    # NO KEY UPDATE: rows that only reference a run (its writers, its events) can still be added.
    return list(connection.execute(statement.with_for_update(key_share=True)).scalars())


def lock_known_runs(connection: Connection, run_ids: Iterable[int]) -> list[int]:
    """Lock runs that must all exist.

    Raises:
        UnknownRun: names those that do not exist.
    """
    ids = set(run_ids)
    existing = lock_runs(connection, ids)
    if len(existing) < len(ids):
        missing = ", ".join(str(run_id) for run_id in sorted(ids.difference(existing))[:5])
        raise UnknownRun(f"there is no run with id {missing}: it never existed, or was purged")
    return existing
