"""When versions are deleted: by their own time to live, or else that of the collection they were logged to.

A version that is linked does not expire, whatever its time to live is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, select

from runvitals.server.database.database import among
from runvitals.server.database.tables.artifacts import (
    artifact_collection,
    artifact_membership,
    artifact_version,
)


def expires_ms() -> ColumnElement[Any]:
    """Return when a version expires, in a query of `artifact_version` and the collection it was logged to."""
    version = artifact_version.c
    ttl_s = func.coalesce(version.ttl_s, artifact_collection.c.ttl_s)
    return case(
        (and_(version.state == "committed", ttl_s > 0, ~_linked()), version.created_ms + ttl_s * 1000)
    )


def _linked() -> ColumnElement[bool]:
    others = artifact_collection.alias()
    return (
        select(artifact_membership.c.id)
        .join(others, others.c.id == artifact_membership.c.collection_id)
        .where(artifact_membership.c.version_id == artifact_version.c.id, others.c.kind == "portfolio")
        .exists()
    )


def versions_query(*columns: Any) -> Select[Any]:
    """Return a query of columns of versions and the collections that they were logged to."""
    return (
        select(*columns)
        .select_from(artifact_version)
        .join(artifact_collection, artifact_collection.c.id == artifact_version.c.collection_id)
    )


def expiries(connection: Connection, version_ids: Iterable[int]) -> dict[int, int]:
    """Return when some versions expire, ms UTC; those that do not are left out."""
    expires = expires_ms()
    statement = versions_query(artifact_version.c.id, expires).where(
        among(connection, artifact_version.c.id, version_ids), expires.is_not(None)
    )
    return {number: int(time_ms) for number, time_ms in connection.execute(statement)}
