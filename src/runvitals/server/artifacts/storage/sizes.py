"""What the artifacts of a project take, and what their time to live will take of it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import case, func

from runvitals.server.artifacts.storage.expiry import expires_ms, versions_query
from runvitals.server.database.database import Database
from runvitals.server.database.tables.artifacts import artifact_collection, artifact_version


@dataclass(frozen=True, slots=True)
class CollectionSize:
    """The versions that were logged to a collection. Content that several have counts in each of them.

    Args:
        expiring_bytes: of versions that are deleted after some time, the first of them at `expires_ms`.
        newest_ms: when the newest version was logged.
    """

    name: str
    type: str
    versions: int
    bytes: int
    expiring_bytes: int
    expires_ms: int | None
    newest_ms: int


def collection_sizes(database: Database, project_id: int) -> list[CollectionSize]:
    """Return the artifacts of a project, the largest first. What is linked does not expire."""
    version, collection = artifact_version.c, artifact_collection.c
    expires = expires_ms()
    total = func.coalesce(func.sum(version.bytes), 0)
    statement = (
        versions_query(
            collection.name,
            collection.type,
            func.count(),
            total,
            func.coalesce(func.sum(case((expires.is_not(None), version.bytes))), 0),
            func.min(expires),
            func.max(version.created_ms),
        )
        .where(collection.project_id == project_id, version.state == "committed")
        .group_by(collection.id, collection.name, collection.type)
        .order_by(total.desc(), collection.name)
    )
    with database.read() as connection:
        rows = connection.execute(statement)
        return [
            CollectionSize(name, kind, int(count), int(size), int(expiring), first, newest)
            for name, kind, count, size, expiring, first, newest in rows
        ]
