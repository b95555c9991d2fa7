"""Links: versions in portfolios, which are the collections of registries."""

from __future__ import annotations

from collections.abc import Collection as Some
from typing import Final

from sqlalchemy import Connection, delete, select

from runvitals.model.artifact_names import LATEST, checked_aliases, checked_label
from runvitals.server.artifacts.storage.collections import ensure_collection, get_collection
from runvitals.server.artifacts.storage.memberships import (
    add_member,
    known_membership,
    record_aliases,
    set_aliases,
)
from runvitals.server.artifacts.storage.protection import (
    NOBODY,
    Changer,
    check_aliases,
    check_members,
    record_change,
)
from runvitals.server.artifacts.storage.reading import read_memberships, read_version
from runvitals.server.artifacts.storage.rows import ArtifactConflict, CollectionVersion, UnknownArtifact
from runvitals.server.database.database import StoredTable, add_rows, in_transaction
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.artifacts import (
    artifact_collection,
    artifact_membership,
    artifact_version,
)
from runvitals.server.database.tables.registry import model_version, registry_type
from runvitals.server.database.tables.runs import project
from runvitals.server.events.automation_events import raise_version

NO_STAGE: Final = "None"
"""As MLflow's clients call it."""


class LinkTable(StoredTable):
    """Links versions to portfolios.

    Example:
        >>> artifacts.links.link(version.id, registry_id, "digits", ["staging"], now_ms).number
        0
    """

    @in_transaction
    def link(
        self,
        connection: Connection,
        version_id: int,
        project_id: int,
        name: str,
        aliases: Some[str],
        now_ms: int,
        by: Changer = NOBODY,
    ) -> CollectionVersion:
        """Link a committed version to a portfolio, as its latest; create the portfolio if it does not exist.

        Raises:
            ValueError: an invalid name or alias.
            ArtifactConflict: the version is not committed, or the name is that of a sequence or of another
                type.
            UnknownArtifact: there is no such version.
            ProtectedAlias: an alias that `by` may not change.
        """
        checked = checked_label("name of a portfolio", name)
        names = checked_aliases([*aliases, LATEST])
        version = read_version(connection, version_id)
        _check_committed(version_id, version.state)
        collection_id = ensure_collection(
            connection, project_id, "portfolio", checked, version.collection.type, now_ms
        )
        check_aliases(connection, collection_id, names, by, version_id)
        membership_id = known_membership(connection, collection_id, version_id)
        if membership_id is None:
            membership_id = add_link(connection, collection_id, version_id, now_ms, by)
        record_aliases(connection, collection_id, membership_id, names, now_ms, by)
        set_aliases(connection, collection_id, membership_id, names)
        same = select(artifact_membership).where(artifact_membership.c.id == membership_id)
        return read_memberships(connection, same)[0]

    def unlink(self, version_id: int, collection_id: int, now_ms: int, by: Changer = NOBODY) -> None:
        """Remove a version from a portfolio; without effect if it is not there.

        The newest of those that are left becomes the latest.

        Raises:
            ArtifactConflict: the collection is a sequence, from which versions are deleted.
            UnknownArtifact: there is no such collection.
            ProtectedAlias: the version has an alias that `by` may not change.
        """
        self._database.write(
            lambda connection: remove_link(connection, version_id, collection_id, now_ms, by)
        )


def remove_link(
    connection: Connection, version_id: int, collection_id: int, now_ms: int, by: Changer
) -> None:
    """Remove a version from a portfolio, as `LinkTable.unlink`."""
    if get_collection(connection, collection_id).kind != "portfolio":
        raise ArtifactConflict("a version cannot be unlinked from where it was logged: delete it")
    columns = artifact_membership.c
    theirs = (columns.collection_id == collection_id) & (columns.version_id == version_id)
    number = connection.execute(select(columns.number).where(theirs)).scalar()
    if number is None:
        return
    check_members(connection, theirs, by)
    before = {"version": number}
    record_change(connection, collection_id, "registry.unlink", now_ms, by, before=before)
    connection.execute(delete(artifact_membership).where(theirs))
    newest = select(columns.id).where(columns.collection_id == collection_id)
    newest_id = connection.execute(newest.order_by(columns.number.desc()).limit(1)).scalar()
    if newest_id is not None:
        set_aliases(connection, collection_id, newest_id, [LATEST])


def add_link(
    connection: Connection,
    collection_id: int,
    version_id: int,
    now_ms: int,
    by: Changer,
    **values: str | None,
) -> int:
    """Add a version to a portfolio; returns the id of its membership.

    Args:
        values: what the registry says of it: columns of `model_version`.

    Raises:
        UnknownArtifact: its project or team was deleted meanwhile.
        ArtifactConflict: it was itself, or the registry does not take artifacts of its type.
    """
    _hold(connection, version_id)
    _check_type(connection, collection_id)
    membership_id, number = add_member(connection, collection_id, version_id, now_ms)
    row: dict[str, object] = {
        "membership_id": membership_id,
        "author_id": None if by.actor is None else by.actor.user_id,
        "author": "" if by.actor is None else by.actor.name,
        "stage": NO_STAGE,
        "source": "",
        "location": "",
        "properties": "{}",
        "downloads": 0,
        "changed_ms": now_ms,
    }
    add_rows(connection, model_version, [{**row, **values}])
    record_change(connection, collection_id, "registry.link", now_ms, by, after={"version": number})
    raise_version(connection, "registry.link", membership_id, now_ms)
    return membership_id


def _check_type(connection: Connection, collection_id: int) -> None:
    statement = (
        select(artifact_collection.c.type, registry_type.c.type)
        .join(registry_type, registry_type.c.project_id == artifact_collection.c.project_id)
        .where(artifact_collection.c.id == collection_id)
        .order_by(registry_type.c.type)
    )
    rows = connection.execute(statement).all()
    if rows and all(own != allowed for own, allowed in rows):
        types = ", ".join(allowed for _, allowed in rows)
        raise ArtifactConflict(f"the registry takes artifacts of the types {types}, not {rows[0][0]!r}")


def _hold(connection: Connection, version_id: int) -> None:
    """Keep a version, its collection, project and team from being deleted until the transaction ends.

    Deletions change these rows before they look for links.

    Raises:
        ArtifactConflict: the version is not committed.
        UnknownArtifact: there is none, or its project or team is in the trash.
    """
    source = (
        select(artifact_version.c.state, project.c.deleted_ms, project.c.entity_id)
        .join(artifact_collection, artifact_collection.c.id == artifact_version.c.collection_id)
        .join(project, project.c.id == artifact_collection.c.project_id)
        .where(artifact_version.c.id == version_id)
    )
    row = connection.execute(source.with_for_update(read=True)).first()
    if row is not None and row.entity_id is not None:
        owner = select(entity.c.deleted_ms).where(entity.c.id == row.entity_id)
        if connection.execute(owner.with_for_update(read=True)).scalar() is not None:
            row = None
    if row is None or row.deleted_ms is not None:
        raise UnknownArtifact(f"there is no artifact {version_id}: it was deleted")
    _check_committed(version_id, row.state)


def _check_committed(version_id: int, state: str) -> None:
    if state != "committed":
        raise ArtifactConflict(f"the artifact {version_id} is {state}: it cannot be linked")
