"""Moves runs to the trash and back. The section `run` keeps when, for changes that arrive late."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select, update

from runvitals.server.database.database import among
from runvitals.server.database.section_documents import (
    SectionDocument,
    SectionKey,
    read_documents,
    write_documents,
)
from runvitals.server.database.tables.runs import run
from runvitals.server.runs.storage.run_locks import lock_known_runs

_DELETED = "deleted"


def set_in_trash(
    connection: Connection, run_ids: Collection[int], in_trash: bool, now_ms: int, at_ms: int | None
) -> int:
    """Move runs to the trash or back; return how many were moved.

    Args:
        at_ms: when a user did that, if it was before: a later change stays.

    Raises:
        UnknownRun: one of them does not exist.
    """
    ids = lock_known_runs(connection, run_ids)
    rows = connection.execute(
        select(run.c.id, run.c.deleted_ms).where(among(connection, run.c.id, ids))
    ).all()
    documents = read_documents(connection, ids, ["run"])
    changed: dict[SectionKey, SectionDocument] = {}
    moved: list[int] = []
    for run_id, deleted_ms in rows:
        key = SectionKey(run_id, "run", "")
        document = documents.get(key, SectionDocument())
        was_in_trash = document.values.get(_DELETED)
        latest_ms = document.time_of(_DELETED) if was_in_trash is not None else 0
        if deleted_ms is not None and was_in_trash is not True:  # it went there with its project
            latest_ms = max(latest_ms, deleted_ms)
        set_ms = max(now_ms, latest_ms) if at_ms is None else min(at_ms, now_ms)
        if set_ms < latest_ms:
            continue
        document.merge({_DELETED: in_trash}, set_ms)
        changed[key] = document
        if (deleted_ms is not None) != in_trash:
            moved.append(run_id)
    write_documents(connection, changed)
    values = {"deleted_ms": now_ms if in_trash else None}
    connection.execute(update(run).where(among(connection, run.c.id, moved)).values(values))
    return len(moved)
