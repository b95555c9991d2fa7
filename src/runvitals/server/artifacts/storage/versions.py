"""Versions of artifacts: drafts that clients complete and commit."""

from __future__ import annotations

import json
from collections.abc import Collection as Some
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Connection, Integer, delete, func, insert, literal, select, update

from runvitals.model.artifact_names import (
    LATEST,
    MAX_METADATA_BYTES,
    checked_aliases,
    checked_description,
    checked_label,
    checked_tags,
)
from runvitals.model.names import plain_text
from runvitals.server.artifacts.storage.collections import ensure_collection
from runvitals.server.artifacts.storage.dependents import check_unlinked
from runvitals.server.artifacts.storage.expiry import expires_ms, expiries, versions_query
from runvitals.server.artifacts.storage.manifest import Contents
from runvitals.server.artifacts.storage.memberships import add_member, set_aliases
from runvitals.server.artifacts.storage.reading import read_version, read_versions
from runvitals.server.artifacts.storage.rows import (
    NO_MANIFEST,
    ArtifactConflict,
    NewVersion,
    UnknownArtifact,
    Version,
)
from runvitals.server.database.database import StoredTable, among, in_transaction
from runvitals.server.database.tables.artifacts import (
    artifact_alias,
    artifact_entry,
    artifact_membership,
    artifact_version,
)
from runvitals.server.database.text import check_integers
from runvitals.server.events.automation_events import raise_version

_MAX_TEXT: Final = 256
_ROWS: Final = 1000


class VersionTable(StoredTable):
    """Versions, from the draft to the deletion.

    Example:
        >>> draft = artifacts.versions.begin(NewVersion(project_id, "dataset", "mnist", digest), now_ms)
        >>> artifacts.entries.put(draft.id, entries, "full", None, now_ms)
        >>> artifacts.versions.commit(draft.id, now_ms).version
        0
    """

    def get(self, version_id: int) -> Version:
        """Return a version, or raise UnknownArtifact."""
        with self._database.read() as connection:
            return read_version(connection, version_id)

    def with_client_id(self, client_id: str) -> Version | None:
        """The newest version that a client gave this id before it sent it."""
        columns = artifact_version.c
        statement = (
            select(columns.id).where(columns.client_id == plain_text(client_id)).order_by(columns.id.desc())
        )
        with self._database.read() as connection:
            number = connection.execute(statement.limit(1)).scalar()
            return None if number is None else read_version(connection, number)

    def made_by(self, run_id: int, skip: int, limit: int) -> tuple[list[Version], int]:
        """A page of the committed versions that a run made, the oldest first, and how many there are."""
        columns = artifact_version.c
        conditions = (columns.run_id == run_id, columns.state == "committed")
        count = select(func.count()).select_from(artifact_version).where(*conditions)
        page = select(columns.id).where(*conditions).order_by(columns.id).offset(skip).limit(limit)
        with self._database.read() as connection:
            ids = list(connection.execute(page).scalars())
            versions = read_versions(connection, ids)
            return [versions[number] for number in ids if number in versions], int(
                connection.execute(count).scalar_one()
            )

    def expiries(self, version_ids: Iterable[int]) -> dict[int, int]:
        """Return when some versions expire, ms UTC; those that do not are left out."""
        with self._database.read() as connection:
            return expiries(connection, version_ids)

    # Logging

    @in_transaction
    def begin(self, connection: Connection, new: NewVersion, now_ms: int) -> Version:
        """Return the version with this content: a committed one, a draft that was begun, or a new draft.

        One that was there gets the aliases and tags.

        Raises:
            ValueError: an invalid value.
            ArtifactConflict: the collection is of another type, or no sequence.
        """
        values = _check_new(new, now_ms)
        aliases = checked_aliases(new.aliases)
        name, kind = values["name"], values["type"]
        collection_id = ensure_collection(connection, new.project_id, "sequence", name, kind, now_ms)
        same = _same_content(connection, collection_id, new)
        if same is None:
            row = {key: value for key, value in values.items() if key not in ("name", "type")}
            added = insert(artifact_version).values({**row, "collection_id": collection_id})
            same = connection.execute(added.returning(artifact_version.c.id)).scalar_one()
            return read_version(connection, same)
        if aliases:
            _add_wanted(connection, same, aliases)
        if new.tags:
            _change_tags(connection, same, new.tags, ())
        return read_version(connection, same)

    def commit(self, version_id: int, now_ms: int) -> Version:
        """Complete a draft: it gets its number and aliases, and becomes the latest; do nothing if it is.

        Raises:
            UnknownArtifact: there is none.
            ArtifactConflict: it was deleted, a content is missing, or it is not what was announced; then the
                draft is deleted, so that it can be logged again.
        """

        def work(connection: Connection) -> tuple[Version, str | None]:
            row = _lock(connection, version_id)
            if row.state == "committed":
                return read_version(connection, version_id), None
            if row.state == "deleted":
                raise ArtifactConflict(f"the artifact {version_id} was deleted")
            if row.manifest_kind != "full" and row.base_id is not None:
                _add_base(connection, version_id, row.base_id)
            problem = _commit(connection, row, now_ms)
            if problem is not None:
                _remove(connection, version_id, now_ms)
            return read_version(connection, version_id), problem

        version, problem = self._database.write(work)
        if problem is not None:
            raise ArtifactConflict(problem)
        return version

    # Changes

    @in_transaction
    def change(
        self,
        connection: Connection,
        version_id: int,
        now_ms: int,
        description: str | None = None,
        metadata: dict[str, Any] | None = None,
        ttl_s: int | None = None,
        add_tags: Some[str] = (),
        remove_tags: Some[str] = (),
    ) -> Version:
        """Change what is said about a version. None: unchanged.

        Args:
            ttl_s: -1: nothing is said any more; other values that are not positive: it is kept.

        Raises:
            ValueError: an invalid value.
            UnknownArtifact: there is none.
        """
        check_integers("artifact", ttl_s=ttl_s)
        values: dict[str, Any] = {"updated_ms": now_ms}
        if description is not None:
            values["description"] = checked_description(description)
        if metadata is not None:
            values["metadata"] = _metadata(metadata)
        if ttl_s is not None:
            values["ttl_s"] = None if ttl_s == -1 else ttl_s
        _change_tags(connection, version_id, add_tags, remove_tags)
        same = artifact_version.c.id == version_id
        connection.execute(update(artifact_version).where(same).values(values))
        return read_version(connection, version_id)

    @in_transaction
    def delete(
        self, connection: Connection, version_id: int, now_ms: int, with_aliases: bool = False
    ) -> Version:
        """Delete a version. Its number is not used again; the one before it becomes the latest.

        Raises:
            UnknownArtifact: there is none.
            ArtifactConflict: it has aliases, and they are not to be deleted with it.
            LinkedVersions: it is linked: it must be unlinked first.
        """
        _lock(connection, version_id)
        check_unlinked(connection, artifact_version.c.id == version_id)
        aliases = _aliases_of(connection, version_id)
        if aliases and not with_aliases:
            raise ArtifactConflict(
                f"the artifact has the aliases {', '.join(aliases[:10])}: delete them first, or with it"
            )
        _remove(connection, version_id, now_ms)
        return read_version(connection, version_id)

    @in_transaction
    def delete_expired(
        self, connection: Connection, now_ms: int, drafts_before_ms: int, most: int = 1000
    ) -> int:
        """Delete drafts from before a time and expired versions; return the number deleted, `most` at a time.

        Versions that are linked do not expire.
        """
        columns, expires = artifact_version.c, expires_ms()
        drafts = (columns.state == "draft") & (columns.updated_ms < drafts_before_ms)
        over = versions_query(columns.id).where(drafts | (expires < now_ms))
        query = over.order_by(columns.id).limit(most).with_for_update(of=artifact_version)
        locked = list(connection.execute(query).scalars())
        # Again: one may have been linked, or completed, before it was locked.
        version_ids = list(connection.execute(over.where(among(connection, columns.id, locked))).scalars())
        for version_id in version_ids:
            _remove(connection, version_id, now_ms)
        return len(version_ids)


def _check_new(new: NewVersion, now_ms: int) -> dict[str, Any]:
    check_integers("artifact", ttl_s=new.ttl_s, history_step=new.history_step)
    for text in (new.digest, new.client_id, new.distributed_id):
        if text is not None and (not text.isprintable() or not 1 <= len(text) <= _MAX_TEXT):
            raise ValueError(f"invalid digest or id {text[:60]!r} of an artifact")
    return {
        "name": checked_label("name of an artifact", new.name),
        "type": checked_label("type of artifacts", new.type),
        "state": "draft",
        "digest": new.digest,
        "manifest_kind": "full",
        "description": checked_description(new.description),
        "metadata": _metadata(new.metadata or {}),
        "tags": json.dumps(checked_tags(new.tags)),
        "aliases": json.dumps(checked_aliases(new.aliases)),
        "ttl_s": None if new.ttl_s == -1 else new.ttl_s,
        "history_step": new.history_step,
        "run_id": new.run_id,
        "author_id": new.author_id,
        "client_id": new.client_id,
        "distributed_id": new.distributed_id,
        "bytes": 0,
        "files": NO_MANIFEST,
        "created_ms": now_ms,
        "updated_ms": now_ms,
    }


def _metadata(metadata: dict[str, Any]) -> str:
    text = json.dumps(metadata, allow_nan=False)
    if len(text) > MAX_METADATA_BYTES:
        raise ValueError(f"metadata of {len(text):,} bytes; expected at most {MAX_METADATA_BYTES:,}")
    return text


def _same_content(connection: Connection, collection_id: int, new: NewVersion) -> int | None:
    """The version of a collection that has the content of a new one, a committed one first."""
    columns = artifact_version.c
    statement = select(columns.id).where(columns.collection_id == collection_id)
    if new.distributed_id is not None:
        statement = statement.where(columns.distributed_id == new.distributed_id, columns.state == "draft")
    else:
        statement = statement.where(columns.digest == new.digest, columns.state.in_(("committed", "draft")))
    return connection.execute(statement.order_by(columns.state, columns.id.desc()).limit(1)).scalar()


def _add_wanted(connection: Connection, version_id: int, aliases: list[str]) -> None:
    """Give a version aliases: now if it is committed, otherwise once it is."""
    row = _lock(connection, version_id)
    if row.state == "draft":
        encoded = json.dumps(checked_aliases([*json.loads(row.aliases), *aliases]))
        same = artifact_version.c.id == version_id
        connection.execute(update(artifact_version).where(same).values(aliases=encoded))
        return
    columns = artifact_membership.c
    own = select(columns.id).where(
        columns.version_id == version_id, columns.collection_id == row.collection_id
    )
    set_aliases(connection, row.collection_id, connection.execute(own).scalar_one(), aliases)


def _change_tags(connection: Connection, version_id: int, add: Some[str], remove: Some[str]) -> None:
    before = json.loads(_lock(connection, version_id).tags)
    tags = checked_tags([*(tag for tag in before if tag not in remove), *add])
    same = artifact_version.c.id == version_id
    connection.execute(update(artifact_version).where(same).values(tags=json.dumps(tags)))


def _lock(connection: Connection, version_id: int) -> Any:
    statement = select(artifact_version).where(artifact_version.c.id == version_id)
    row = connection.execute(statement.with_for_update(key_share=True)).first()
    if row is None:
        raise UnknownArtifact(f"there is no artifact {version_id}")
    return row


def _add_base(connection: Connection, version_id: int, base_id: int) -> None:
    """Add the entries of the base that a draft does not have."""
    columns = artifact_entry.c
    here = artifact_entry.alias()
    overridden = (
        select(here.c.path).where(here.c.version_id == version_id, here.c.path == columns.path).exists()
    )
    names = [column.name for column in artifact_entry.columns if column.name != "version_id"]
    others = select(literal(version_id, Integer), *(columns[name] for name in names)).where(
        columns.version_id == base_id, ~overridden
    )
    connection.execute(insert(artifact_entry).from_select(["version_id", *names], others))


def _commit(connection: Connection, row: Any, now_ms: int) -> str | None:
    """Commit a draft; what is wrong with it, if it cannot be."""
    columns = artifact_entry.c
    theirs = columns.version_id == row.id
    if row.files == NO_MANIFEST:
        return "the manifest was not received, or was refused: log the artifact again"
    missing = select(columns.path).where(theirs, columns.reference.is_(None), columns.file_id.is_(None))
    path = connection.execute(missing.limit(1)).scalar()
    if path is not None:
        return f"the content of {path!r} was not uploaded: log the artifact again"
    contents = _contents(connection, row.id)
    digest, fault = contents.digest, contents.fault()
    if fault is not None:
        return fault
    if row.manifest_kind == "full" and row.distributed_id is None and digest != row.digest:
        return f"the manifest has the digest {digest}, not {row.digest} as was announced: log it again"
    membership_id, number = add_member(connection, row.collection_id, row.id, now_ms)
    set_aliases(connection, row.collection_id, membership_id, [*json.loads(row.aliases), LATEST])
    values = {"state": "committed", "version": number, "digest": digest}
    values |= {"files": contents.files, "bytes": contents.bytes, "updated_ms": now_ms}
    same = artifact_version.c.id == row.id
    connection.execute(update(artifact_version).where(same).values(values))
    raise_version(connection, "artifact.version", membership_id, now_ms)
    return None


def _contents(connection: Connection, version_id: int) -> Contents:
    columns = artifact_entry.c
    statement = select(columns.path, columns.digest, columns.bytes).where(columns.version_id == version_id)
    contents = Contents()
    with connection.execute(statement.order_by(columns.path).execution_options(yield_per=_ROWS)) as rows:
        for path, digest, size in rows:
            contents.add(path, digest, size)
    return contents


def _aliases_of(connection: Connection, version_id: int) -> list[str]:
    statement = (
        select(artifact_alias.c.alias)
        .join(artifact_membership, artifact_membership.c.id == artifact_alias.c.membership_id)
        .where(artifact_membership.c.version_id == version_id)
        .order_by(artifact_alias.c.alias)
    )
    return list(connection.execute(statement).scalars())


def _remove(connection: Connection, version_id: int, now_ms: int) -> None:
    """Delete a version, and let the newest of what is left be the latest."""
    columns = artifact_membership.c
    latest = (
        select(columns.collection_id)
        .join(artifact_alias, artifact_alias.c.membership_id == columns.id)
        .where(columns.version_id == version_id, artifact_alias.c.alias == LATEST)
    )
    collections = list(connection.execute(latest).scalars())
    connection.execute(delete(artifact_membership).where(columns.version_id == version_id))
    connection.execute(delete(artifact_entry).where(artifact_entry.c.version_id == version_id))
    same = artifact_version.c.id == version_id
    connection.execute(update(artifact_version).where(same).values(state="deleted", updated_ms=now_ms))
    newest = (
        select(columns.collection_id, func.max(columns.id))
        .where(among(connection, columns.collection_id, collections))
        .group_by(columns.collection_id)
    )
    for collection_id, membership_id in connection.execute(newest).all():
        set_aliases(connection, collection_id, membership_id, [LATEST])
