"""Memberships: which versions a collection has, with which numbers and aliases."""

from __future__ import annotations

from collections.abc import Collection as Some

from sqlalchemy import Connection, insert, select, update

from runvitals.model.artifact_names import LATEST
from runvitals.server.artifacts.storage.protection import Changer, record_change
from runvitals.server.artifacts.storage.rows import UnknownArtifact
from runvitals.server.database.database import put_rows
from runvitals.server.database.tables.artifacts import (
    artifact_alias,
    artifact_collection,
    artifact_membership,
)
from runvitals.server.events.automation_events import raise_aliases


def add_member(connection: Connection, collection_id: int, version_id: int, now_ms: int) -> tuple[int, int]:
    """Add a version to a collection; returns the ids of its membership and its number there."""
    columns = artifact_collection.c
    counted = (
        update(artifact_collection)
        .where(columns.id == collection_id)
        .values(next_version=columns.next_version + 1, updated_ms=now_ms)
        .returning(columns.next_version)
    )
    number = connection.execute(counted).scalar_one() - 1
    values = {"collection_id": collection_id, "version_id": version_id}
    added = insert(artifact_membership).values(**values, number=number, created_ms=now_ms)
    return connection.execute(added.returning(artifact_membership.c.id)).scalar_one(), number


def set_aliases(connection: Connection, collection_id: int, membership_id: int, aliases: Some[str]) -> None:
    """Give a version of a collection aliases, which others lose."""
    raise_aliases(connection, collection_id, membership_id, aliases)
    rows = [
        {"collection_id": collection_id, "alias": alias, "membership_id": membership_id}
        for alias in sorted(set(aliases))
    ]
    put_rows(connection, artifact_alias, rows)


def record_aliases(
    connection: Connection,
    collection_id: int,
    membership_id: int,
    aliases: Some[str],
    now_ms: int,
    by: Changer,
) -> None:
    """Record which aliases a version gets, and which version had them. Call it before they are stored."""
    columns = artifact_alias.c
    query = (
        select(columns.alias, artifact_membership.c.id, artifact_membership.c.number)
        .join(artifact_membership, artifact_membership.c.id == columns.membership_id)
        .where(columns.collection_id == collection_id, columns.alias.in_(sorted(aliases)))
    )
    before = {row.alias: row for row in connection.execute(query)}
    number = membership_number(connection, membership_id)
    for alias in aliases:
        holder = before.get(alias)
        if alias == LATEST or (holder is not None and holder.id == membership_id):
            continue
        last = None if holder is None else {"alias": alias, "version": holder.number}
        after = {"alias": alias, "version": number}
        record_change(connection, collection_id, "registry.alias", now_ms, by, before=last, after=after)


def membership_number(connection: Connection, membership_id: int) -> int:
    """Return the number that a version has in a collection."""
    same = select(artifact_membership.c.number).where(artifact_membership.c.id == membership_id)
    return int(connection.execute(same).scalar_one())


def known_membership(connection: Connection, collection_id: int, version_id: int) -> int | None:
    """Return the id of the membership of a version in a collection; None if it is not there."""
    columns = artifact_membership.c
    statement = select(columns.id).where(
        columns.collection_id == collection_id, columns.version_id == version_id
    )
    return connection.execute(statement).scalar()


def membership_of(connection: Connection, collection_id: int, version_id: int) -> int:
    """Return the id of the membership of a version in a collection, or raise UnknownArtifact."""
    number = known_membership(connection, collection_id, version_id)
    if number is None:
        raise UnknownArtifact("the collection does not have this version")
    return number
