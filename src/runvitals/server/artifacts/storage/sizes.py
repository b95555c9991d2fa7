"""What the artifacts of a project take, and what their time to live will take of it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import case, func

from runvitals.server.artifacts.storage.expiry import expires_ms, versions_query
from runvitals.server.database.database import Database
from runvitals.server.database.tables.artifacts import artifact_collection, artifact_version
from runvitals.server.database.tables.runs import project


@dataclass(frozen=True, slots=True)
class CollectionSize:
    """The versions that were logged to a collection. Content that several have counts in each of them.

    Args:
        expiring_bytes: of versions that are deleted after some time, the first of them at `expires_ms`.
        oldest_ms, newest_ms: when the oldest and newest version was logged.
        read_day: the last day on which a file of one was read; see `ReadDays`.
    """

    name: str
    type: str
    versions: int
    bytes: int
    expiring_bytes: int
    expires_ms: int | None
    oldest_ms: int
    newest_ms: int
    read_day: int | None


@dataclass(frozen=True, slots=True)
class ProjectArtifacts:
    """The versions of all artifacts of a project. See `CollectionSize`.

    Args:
        expiring: how many of them are deleted after some time.
    """

    project_id: int
    expiring: int
    expiring_bytes: int
    expires_ms: int | None
    oldest_ms: int
    newest_ms: int
    read_day: int | None


def collection_sizes(database: Database, project_id: int) -> list[CollectionSize]:
    """Return the artifacts of a project, the largest first. What is linked does not expire."""
    version, collection, expires = artifact_version.c, artifact_collection.c, expires_ms()
    total = func.coalesce(func.sum(version.bytes), 0)
    statement = (
        versions_query(
            collection.name,
            collection.type,
            func.count(),
            total,
            func.coalesce(func.sum(case((expires.is_not(None), version.bytes))), 0),
            func.min(expires),
            func.min(version.created_ms),
            func.max(version.created_ms),
            func.max(version.read_day),
        )
        .where(collection.project_id == project_id, version.state == "committed")
        .group_by(collection.id, collection.name, collection.type)
        .order_by(total.desc(), collection.name)
    )
    with database.read() as connection:
        rows = connection.execute(statement)
        return [
            CollectionSize(name, kind, int(count), int(size), int(expiring), *times)
            for name, kind, count, size, expiring, *times in rows
        ]


def artifacts_of_projects(database: Database, entity_id: int | None) -> list[ProjectArtifacts]:
    """Return the artifacts of the projects of a team or user that have any."""
    version, collection, expires = artifact_version.c, artifact_collection.c, expires_ms()
    statement = (
        versions_query(
            collection.project_id,
            func.count(expires),
            func.coalesce(func.sum(case((expires.is_not(None), version.bytes))), 0),
            func.min(expires),
            func.min(version.created_ms),
            func.max(version.created_ms),
            func.max(version.read_day),
        )
        .join(project, project.c.id == collection.project_id)
        .where(project.c.entity_id == entity_id, version.state == "committed")
        .group_by(collection.project_id)
    )
    with database.read() as connection:
        return [
            ProjectArtifacts(number, int(expiring), int(size), *others)
            for number, expiring, size, *others in connection.execute(statement)
        ]
