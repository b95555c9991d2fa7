"""Collections of artifacts: sequences of logged versions, and portfolios of linked ones."""

from __future__ import annotations

import json
from collections.abc import Collection as Some
from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection, Select, delete, func, or_, select, update
from sqlalchemy.exc import IntegrityError

from runvitals.model.artifact_names import (
    checked_aliases,
    checked_description,
    checked_label,
    checked_tags,
    is_version,
)
from runvitals.model.hidden_characters import without_hidden_characters
from runvitals.model.names import plain_text
from runvitals.server.artifacts.storage.dependents import check_unlinked, lock_versions
from runvitals.server.artifacts.storage.expiry import expiries
from runvitals.server.artifacts.storage.memberships import (
    membership_number,
    membership_of,
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
from runvitals.server.artifacts.storage.reading import (
    collections_query,
    read_collections,
    read_memberships,
    read_version_id,
)
from runvitals.server.artifacts.storage.rows import (
    ArtifactConflict,
    Collection,
    CollectionVersion,
    UnknownArtifact,
)
from runvitals.server.artifacts.storage.sizes import (
    CollectionSize,
    ProjectArtifacts,
    artifacts_of_projects,
    collection_sizes,
)
from runvitals.server.database.database import (
    StoredTable,
    add_rows,
    among,
    in_transaction,
)
from runvitals.server.database.limits import check_room
from runvitals.server.database.tables.artifacts import (
    artifact_alias,
    artifact_collection,
    artifact_membership,
    artifact_version,
)
from runvitals.store.errors import NameTaken

MAX_COLLECTIONS = 100_000
"""Of a project."""
MEMBER_ORDERS: Final = {
    "created_at": artifact_version.c.created_ms,
    "artifact_size": artifact_version.c.bytes,
    "linked_at": artifact_membership.c.created_ms,
}
"""What the versions of collections can be sorted by."""


class CollectionTable(StoredTable):
    """Collections, and the names of versions in them.

    Example:
        >>> artifacts.collections.named(project_id, "mnist").type
        'dataset'
        >>> artifacts.collections.member(project_id, "mnist:latest").number
        3
    """

    def get(self, collection_id: int) -> Collection:
        """Return a collection, or raise UnknownArtifact."""
        with self._database.read() as connection:
            return get_collection(connection, collection_id)

    def named(self, project_id: int, name: str, type: str | None = None) -> Collection | None:
        """A collection of a project; None if there is none of this name and type."""
        statement = collections_query().where(
            artifact_collection.c.project_id == project_id, artifact_collection.c.name == plain_text(name)
        )
        if type is not None:
            statement = statement.where(artifact_collection.c.type == plain_text(type))
        with self._database.read() as connection:
            return next(iter(read_collections(connection, statement)), None)

    def of_project(
        self, project_id: int, type: str | None, skip: int, limit: int
    ) -> tuple[list[Collection], int]:
        """A page of the collections of a project that have versions, by name, and how many there are."""
        conditions = [artifact_collection.c.project_id == project_id, artifact_collection.c.next_version > 0]
        if type is not None:
            conditions.append(artifact_collection.c.type == plain_text(type))
        statement = collections_query().where(*conditions)
        with self._database.read() as connection:
            total = connection.execute(select(func.count()).select_from(statement.subquery())).scalar_one()
            page = statement.order_by(artifact_collection.c.name, artifact_collection.c.id)
            return read_collections(connection, page.offset(skip).limit(limit)), int(total)

    def sizes(self, project_id: int) -> list[CollectionSize]:
        """Return what the artifacts of a project take, the largest first."""
        return collection_sizes(self._database, project_id)

    def of_entity(self, entity_id: int | None) -> list[ProjectArtifacts]:
        """Return the artifacts of the projects of a team or user that have any, by project."""
        return artifacts_of_projects(self._database, entity_id)

    def portfolios(self, project_ids: Iterable[int], limit: int) -> list[Collection]:
        """The portfolios of some projects that have versions, by name; at most `limit`."""
        columns = artifact_collection.c
        with self._database.read() as connection:
            statement = collections_query().where(
                among(connection, columns.project_id, project_ids),
                columns.kind == "portfolio",
                columns.next_version > 0,
            )
            return read_collections(connection, statement.order_by(columns.name, columns.id).limit(limit))

    def with_words(
        self, words: Iterable[str], project_ids: Iterable[int] | None, limit: int
    ) -> list[Collection]:
        """Return the collections with each word in name, type, description or tags, the newest first.

        Upper and lower case are the same as far as the database knows them: ASCII in SQLite.

        Args:
            project_ids: only of these projects; None: of all.
        """
        columns = artifact_collection.c
        texts = (columns.name, columns.type, columns.description, columns.tags)
        conditions = [
            or_(*(func.lower(text).contains(plain_text(word).lower(), autoescape=True) for text in texts))
            for word in words
        ]
        with self._database.read() as connection:
            if project_ids is not None:
                conditions.append(among(connection, columns.project_id, project_ids))
            statement = collections_query().where(columns.next_version > 0, *conditions)
            newest = statement.order_by(columns.updated_ms.desc(), columns.id.desc())
            return read_collections(connection, newest.limit(limit))

    def types(self, project_id: int) -> dict[str, tuple[int, int]]:
        """The types of a project's collections by name: the id of the first collection, and its time."""
        columns = artifact_collection.c
        statement = (
            select(columns.type, func.min(columns.id), func.min(columns.created_ms))
            .where(columns.project_id == project_id)
            .group_by(columns.type)
            .order_by(columns.type)
        )
        with self._database.read() as connection:
            return {name: (first, created_ms) for name, first, created_ms in connection.execute(statement)}

    # Versions in a collection

    def member(self, project_id: int, name: str) -> CollectionVersion | None:
        """The version that `name:alias`, `name:v3` or `name:<digest>` names; without `:`, the latest."""
        collection, _, alias = name.partition(":")
        row = self.named(project_id, collection)
        return None if row is None else self.member_of(row.id, alias or "latest")

    def member_of(self, collection_id: int, alias: str) -> CollectionVersion | None:
        """The version of a collection with this alias, number or digest; None if there is none."""
        statement = select(artifact_membership).where(artifact_membership.c.collection_id == collection_id)
        if is_version(alias):
            number = int(alias[1:19])
            if number >= 1 << 31:
                return None
            statement = statement.where(artifact_membership.c.number == number)
        else:
            statement = statement.join(
                artifact_alias, artifact_alias.c.membership_id == artifact_membership.c.id
            ).where(artifact_alias.c.alias == plain_text(alias))
        with self._database.read() as connection:
            return next(iter(read_memberships(connection, statement)), None)

    def version_id(self, project_id: int, name: str, alias: str) -> int | None:
        """As `member`, but only the id of the version, which takes a fifth of the time."""
        with self._database.read() as connection:
            return read_version_id(connection, project_id, name, alias)

    def with_id(self, membership_id: int) -> CollectionVersion | None:
        """The version in a collection by the id of its membership; None if there is none."""
        statement = select(artifact_membership).where(artifact_membership.c.id == membership_id)
        with self._database.read() as connection:
            return next(iter(read_memberships(connection, statement)), None)

    def members(
        self, collection_id: int, skip: int, limit: int, oldest_first: bool
    ) -> list[CollectionVersion]:
        """A page of the versions of a collection."""
        number = artifact_membership.c.number
        statement = (
            select(artifact_membership)
            .where(artifact_membership.c.collection_id == collection_id)
            .order_by(number.asc() if oldest_first else number.desc())
            .offset(skip)
            .limit(limit)
        )
        with self._database.read() as connection:
            return read_memberships(connection, statement)

    def members_of_all(
        self,
        collection_ids: Iterable[int],
        skip: int,
        limit: int,
        order: str | None = None,
        descending: bool = False,
    ) -> list[CollectionVersion]:
        """Return a page of the versions of some collections.

        Args:
            order: one of `MEMBER_ORDERS`; None: in which they got there.
        """
        columns = artifact_membership.c
        by = columns.id if order is None else MEMBER_ORDERS[order]
        last_by = columns.id
        with self._database.read() as connection:
            statement = (
                select(artifact_membership)
                .join(artifact_version, artifact_version.c.id == columns.version_id)
                .where(among(connection, columns.collection_id, collection_ids))
                .order_by(*((by.desc(), last_by.desc()) if descending else (by, last_by)))
            )
            return read_memberships(connection, statement.offset(skip).limit(limit))

    def with_digest(self, collection_id: int, digest: str) -> list[CollectionVersion]:
        """The versions of a collection with these files, the newest first."""
        columns = artifact_membership.c
        statement = (
            select(artifact_membership)
            .join(artifact_version, artifact_version.c.id == columns.version_id)
            .where(columns.collection_id == collection_id, artifact_version.c.digest == plain_text(digest))
            .order_by(columns.number.desc())
        )
        with self._database.read() as connection:
            return read_memberships(connection, statement)

    def memberships(self, version_ids: Iterable[int]) -> dict[int, list[CollectionVersion]]:
        """The collections that have some versions, the sequence first."""
        ids = sorted(set(version_ids))
        statement = (
            select(artifact_membership)
            .where(artifact_membership.c.version_id.in_(ids))
            .order_by(artifact_membership.c.id)
        )
        memberships: dict[int, list[CollectionVersion]] = {version_id: [] for version_id in ids}
        with self._database.read() as connection:
            for membership in read_memberships(connection, statement):
                memberships[membership.version.id].append(membership)
        return memberships

    def aliases(self, collection_id: int) -> list[str]:
        """The aliases of all versions of a collection, by name."""
        statement = (
            select(artifact_alias.c.alias)
            .where(artifact_alias.c.collection_id == collection_id)
            .order_by(artifact_alias.c.alias)
        )
        with self._database.read() as connection:
            return list(connection.execute(statement).scalars())

    # Changes

    @in_transaction
    def add_aliases(
        self,
        connection: Connection,
        collection_id: int,
        version_id: int,
        aliases: Some[str],
        now_ms: int,
        by: Changer = NOBODY,
    ) -> None:
        """Give a version aliases, which other versions of the collection lose.

        Raises:
            ValueError: an invalid alias.
            UnknownArtifact: the collection does not have the version.
            ProtectedAlias: an alias that `by` may not change.
        """
        checked = checked_aliases(aliases)
        membership_id = membership_of(connection, collection_id, version_id)
        check_aliases(connection, collection_id, checked, by, version_id)
        record_aliases(connection, collection_id, membership_id, checked, now_ms, by)
        set_aliases(connection, collection_id, membership_id, checked)
        _touch(connection, collection_id, now_ms)

    @in_transaction
    def remove_aliases(
        self,
        connection: Connection,
        collection_id: int,
        version_id: int,
        aliases: Some[str],
        now_ms: int,
        by: Changer = NOBODY,
    ) -> None:
        """Remove aliases of a version; those that it does not have are ignored.

        Raises:
            UnknownArtifact: the collection does not have the version.
            ProtectedAlias: an alias that `by` may not change.
        """
        membership_id = membership_of(connection, collection_id, version_id)
        columns = artifact_alias.c
        theirs = (columns.membership_id == membership_id, columns.alias.in_(sorted(aliases)))
        removed_aliases = list(connection.execute(select(columns.alias).where(*theirs)).scalars())
        check_aliases(connection, collection_id, removed_aliases, by)
        connection.execute(delete(artifact_alias).where(*theirs))
        number = membership_number(connection, membership_id)
        for alias in removed_aliases:
            before = {"alias": alias, "version": number}
            record_change(connection, collection_id, "registry.alias", now_ms, by, before=before)
        _touch(connection, collection_id, now_ms)

    @in_transaction
    def change(
        self,
        connection: Connection,
        collection_id: int,
        now_ms: int,
        name: str | None = None,
        description: str | None = None,
        type: str | None = None,
        tags: Some[str] | None = None,
    ) -> Collection:
        """Change a collection. None: unchanged.

        Raises:
            ValueError: an invalid value.
            NameTaken: the project has another collection of this name.
            UnknownArtifact: there is no such collection.
        """
        values: dict[str, object] = {"updated_ms": now_ms}
        if name is not None:
            values["name"] = without_hidden_characters("name", checked_label("name of an artifact", name))
        if description is not None:
            values["description"] = checked_description(description)
        if type is not None:
            values["type"] = checked_label("type of artifacts", type)
        if tags is not None:
            values["tags"] = json.dumps(checked_tags(tags))
        same = update(artifact_collection).where(artifact_collection.c.id == collection_id)
        try:
            connection.execute(same.values(values))
        except IntegrityError:
            raise NameTaken(f"the project already has artifacts named {name!r}") from None
        return get_collection(connection, collection_id)

    @in_transaction
    def set_time_to_live(
        self, connection: Connection, collection_id: int, ttl_s: int | None
    ) -> tuple[Collection, int]:
        """Set after how long versions that say nothing about it are deleted; None: they are kept.

        Returns:
            The collection, and how many of its versions expire with it, now or later.
        """
        same = artifact_collection.c.id == collection_id
        connection.execute(update(artifact_collection).where(same).values(ttl_s=ttl_s))
        ids = select(artifact_version.c.id).where(artifact_version.c.collection_id == collection_id)
        expiry_times = expiries(connection, connection.execute(ids).scalars())
        return get_collection(connection, collection_id), len(expiry_times)

    @in_transaction
    def delete(
        self, connection: Connection, collection_id: int, now_ms: int = 0, by: Changer = NOBODY
    ) -> None:
        """Delete a collection; a sequence with its versions.

        Raises:
            LinkedVersions: a version of the sequence is linked: it must be unlinked first.
            ProtectedAlias: a version of the portfolio has an alias that `by` may not change.
        """
        same = artifact_collection.c.id == collection_id
        # Links that are made now wait for this, and those made before are seen.
        connection.execute(select(artifact_collection.c.id).where(same).with_for_update())
        check_members(connection, artifact_membership.c.collection_id == collection_id, by)
        lock_versions(connection, artifact_version.c.collection_id == collection_id)
        check_unlinked(connection, artifact_version.c.collection_id == collection_id)
        record_change(connection, collection_id, "registry.unlink", now_ms, by)
        connection.execute(delete(artifact_collection).where(same))


def ensure_collection(
    connection: Connection, project_id: int, kind: str, name: str, type: str, now_ms: int, first: int = 0
) -> int:
    """The id of a collection, which is created if it does not exist.

    Args:
        first: the number of its first version.

    Raises:
        ArtifactConflict: the project has one of this name and of another kind or type.
        ValueError: the project has too many, or the name of a new portfolio could pass for another.
    """
    columns = artifact_collection.c
    statement: Select[tuple[int, str, str]] = select(columns.id, columns.kind, columns.type).where(
        columns.project_id == project_id, columns.name == name
    )
    existing = connection.execute(statement).first()
    if existing is None:
        if kind == "portfolio":
            without_hidden_characters("name of a portfolio", name)
        check_collections(connection, project_id)
        row = {"project_id": project_id, "kind": kind, "name": name, "type": type, "next_version": first}
        row |= {"description": "", "tags": "[]", "created_ms": now_ms, "updated_ms": now_ms}
        add_rows(connection, artifact_collection, [row])
        existing = connection.execute(statement).one()
    if existing.kind != kind:
        raise ArtifactConflict(f"{name!r} is a {existing.kind} of artifacts in this project, not a {kind}")
    if existing.type != type:
        raise ArtifactConflict(
            f"the artifacts {name!r} of this project have the type {existing.type!r}, not {type!r}"
        )
    return int(existing.id)


def get_collection(connection: Connection, collection_id: int) -> Collection:
    """Return a collection, or raise UnknownArtifact."""
    statement = collections_query().where(artifact_collection.c.id == collection_id)
    collection = next(iter(read_collections(connection, statement)), None)
    if collection is None:
        raise UnknownArtifact(f"there is no collection of artifacts {collection_id}")
    return collection


def _touch(connection: Connection, collection_id: int, now_ms: int) -> None:
    same = artifact_collection.c.id == collection_id
    connection.execute(update(artifact_collection).where(same).values(updated_ms=now_ms))


def check_collections(connection: Connection, project_id: int) -> None:
    """Raise LimitReached if a project has as many collections as it may have."""
    refusal = f"the project has {MAX_COLLECTIONS:,} collections of artifacts: delete one first"
    theirs = artifact_collection.c.project_id == project_id
    check_room(connection, artifact_collection, MAX_COLLECTIONS, refusal, theirs, owner_id=project_id)
