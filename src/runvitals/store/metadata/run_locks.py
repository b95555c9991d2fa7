"""Holding runs still while what is known of them changes."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from runvitals.store.metadata.database import among
from runvitals.store.metadata.tables import run


class UnknownRun(LookupError):
    """There is no run of this number."""


def lock_runs(connection: Connection, run_ids: Iterable[int]) -> list[int]:
    """Keep other writers from those of these runs that are there, until the transaction ends; their ids.

    On SQLite there is only one writer anyway.
    """
    statement = select(run.c.id).where(among(connection, run.c.id, run_ids)).order_by(run.c.id)
    # NO KEY UPDATE: rows that only refer to a run (its writers, its events) can be added meanwhile.
    return list(connection.execute(statement.with_for_update(key_share=True)).scalars())


def lock_known_runs(connection: Connection, run_ids: Iterable[int]) -> list[int]:
    """The same, of runs that must be there.

    Raises:
        UnknownRun: naming those that are not.
    """
    wanted = set(run_ids)
    found = lock_runs(connection, wanted)
    if len(found) < len(wanted):
        missing = ", ".join(str(run_id) for run_id in sorted(wanted.difference(found))[:5])
        raise UnknownRun(f"there is no run of number {missing}: never made, or deleted for good")
    return found
