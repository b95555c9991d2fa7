"""Versions in collections of registries, with what the registry says of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, delete, func, insert, select, update

from runvitals.model.artifact_names import LATEST
from runvitals.server.artifacts.storage.links import NO_STAGE, add_link, remove_link
from runvitals.server.artifacts.storage.manifest import Contents
from runvitals.server.artifacts.storage.memberships import set_aliases
from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.artifacts.storage.rows import Entry
from runvitals.server.database.database import StoredTable, add_rows, ensure_ids, in_transaction
from runvitals.server.database.stored_json import stored_list, stored_object
from runvitals.server.database.tables.artifacts import (
    artifact_collection,
    artifact_entry,
    artifact_membership,
    artifact_version,
)
from runvitals.server.database.tables.registry import model_version
from runvitals.server.database.tables.runs import run, stored_file
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.registry.storage.registered_models import merged

SCHEME: Final = "mlflow-artifacts:/"
FILES: Final = "registry"
"""The first part of the paths of files that are read through a registry."""


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """A version in a collection of a registry. Times are ms UTC.

    Args:
        membership_id, version_id: of the tables of artifacts.
        source: where its files are, as MLflow's client named it; `location`: as it can be downloaded.
        run_uid: the run that made it.
        logged_model: the model that a training logged, by its id.
        tags: those with a value, and with an empty value those that are only names.
        author: who linked or registered it.
    """

    membership_id: int
    version_id: int
    version: int
    description: str | None
    stage: str
    source: str
    location: str
    run_uid: str | None
    run_link: str | None
    logged_model: str | None
    tags: Mapping[str, str]
    author: str
    downloads: int
    created_ms: int
    changed_ms: int


@dataclass(frozen=True, slots=True)
class NewModelVersion:
    """A version that a client registers. See `ModelVersion`.

    Args:
        files: by path, each with its MD5 as clients write it.
        copy_of: the version whose files it has, instead of `files`.
        run_id: of the run that made it, by the number in the metadata store.
    """

    source: str
    location: str
    description: str
    tags: Mapping[str, str]
    files: Mapping[str, tuple[str, StoredFile]]
    copy_of: int | None = None
    run_id: int | None = None
    run_uid: str | None = None
    run_link: str | None = None
    logged_model: str | None = None


class ModelVersionTable(StoredTable):
    """The versions in collections of registries.

    Example:
        >>> metadata_store.model_versions.of_collection(model.id)[-1].version
        3
    """

    def of_collection(self, collection_id: int) -> list[ModelVersion]:
        """The versions of a collection, in ascending order."""
        statement = _versions().where(artifact_membership.c.collection_id == collection_id)
        with self._database.read() as connection:
            rows = connection.execute(statement.order_by(artifact_membership.c.number))
            return [_version(row) for row in rows]

    def numbered(self, collection_id: int, number: int) -> ModelVersion | None:
        """A version of a collection by its number; None if there is none."""
        columns = artifact_membership.c
        statement = _versions().where(columns.collection_id == collection_id, columns.number == number)
        with self._database.read() as connection:
            return next(map(_version, connection.execute(statement)), None)

    def of_memberships(self, ids: Sequence[int]) -> dict[int, ModelVersion]:
        """Versions by the ids of their memberships."""
        with self._database.read() as connection:
            statement = _versions().where(artifact_membership.c.id.in_(list(ids)))
            return {row.id: _version(row) for row in connection.execute(statement)}

    @in_transaction
    def register(
        self, connection: Connection, collection_id: int, new: NewModelVersion, now_ms: int, by: Changer
    ) -> ModelVersion:
        """Add a version, which becomes the latest; its number is one that no version of the collection had.

        A copy of a version that the collection does not have is a link to it.
        """
        columns = artifact_membership.c
        linked = select(columns.id).where(
            columns.collection_id == collection_id, columns.version_id == new.copy_of
        )
        if new.copy_of is None or connection.execute(linked).first() is not None:
            version_id = _add_version(connection, collection_id, new, now_ms, by)
        else:
            version_id = new.copy_of
        same = ("source", "location", "description", "run_uid", "run_link", "logged_model")
        values = {name: getattr(new, name) for name in same}
        values["properties"] = json.dumps(dict(new.tags))
        membership_id = add_link(connection, collection_id, version_id, now_ms, by, **values)
        set_aliases(connection, collection_id, membership_id, [LATEST])
        return _version(connection.execute(_versions().where(columns.id == membership_id)).one())

    @in_transaction
    def change(
        self,
        connection: Connection,
        /,
        version: ModelVersion,
        now_ms: int,
        archived: str | None = None,
        **values: str | None,
    ) -> None:
        """Set the `description` or `stage` of a version.

        Args:
            archived: other versions of the collection in the same stage get this one.
        """
        columns = model_version.c
        collection = select(artifact_membership.c.collection_id).where(
            artifact_membership.c.id == version.membership_id
        )
        others = select(artifact_membership.c.id).where(
            artifact_membership.c.collection_id == collection.scalar_subquery(),
            artifact_membership.c.id != version.membership_id,
        )
        if archived is not None:
            in_stage = (columns.membership_id.in_(others), columns.stage == values["stage"])
            change = update(model_version).where(*in_stage)
            connection.execute(change.values(stage=archived, changed_ms=now_ms))
        _ensure(connection, version, now_ms)
        same = update(model_version).where(columns.membership_id == version.membership_id)
        connection.execute(same.values(**values, changed_ms=now_ms))
        changed = artifact_collection.c.id == collection.scalar_subquery()
        connection.execute(update(artifact_collection).where(changed).values(updated_ms=now_ms))

    @in_transaction
    def change_tags(
        self, connection: Connection, version: ModelVersion, tags: Mapping[str, str | None], now_ms: int
    ) -> None:
        """Set tags of a version; None removes one, also of those that are only names."""
        same = model_version.c.membership_id == version.membership_id
        artifact = artifact_version.c.id == version.version_id
        _ensure(connection, version, now_ms)
        encoded = connection.execute(
            select(model_version.c.properties).where(same).with_for_update()
        ).scalar_one()
        changed = json.dumps(merged(json.loads(encoded), tags))
        connection.execute(update(model_version).where(same).values(properties=changed))
        listed = connection.execute(select(artifact_version.c.tags).where(artifact)).scalar_one()
        kept = json.dumps([name for name in json.loads(listed) if name not in tags])
        connection.execute(update(artifact_version).where(artifact).values(tags=kept))

    @in_transaction
    def delete(
        self, connection: Connection, collection_id: int, version: ModelVersion, now_ms: int, by: Changer
    ) -> None:
        """Remove a version from a collection; one that is nowhere else is deleted.

        Raises:
            ProtectedAlias: it has an alias that `by` may not change.
        """
        remove_link(connection, version.version_id, collection_id, now_ms, by)
        elsewhere = select(func.count()).where(artifact_membership.c.version_id == version.version_id)
        own = (artifact_version.c.id == version.version_id) & (
            artifact_version.c.collection_id == collection_id
        )
        if connection.execute(elsewhere).scalar_one():
            return
        deletion = update(artifact_version).where(own).values(state="deleted", updated_ms=now_ms)
        if connection.execute(deletion).rowcount:
            same = artifact_entry.c.version_id == version.version_id
            connection.execute(delete(artifact_entry).where(same))

    def count_download(self, membership_id: int) -> None:
        """Count a download of a version."""
        columns = model_version.c
        counted = update(model_version).where(columns.membership_id == membership_id)
        counted = counted.values(downloads=columns.downloads + 1)
        self._database.write(lambda connection: connection.execute(counted), durable=False)


def _ensure(connection: Connection, version: ModelVersion, now_ms: int) -> None:
    """Add the row of a version that was linked before there were such rows."""
    row = {"membership_id": version.membership_id, "author": "", "stage": NO_STAGE, "changed_ms": now_ms}
    row |= {"source": "", "location": "", "properties": "{}", "downloads": 0}
    add_rows(connection, model_version, [row])


def _add_version(
    connection: Connection, collection_id: int, new: NewModelVersion, now_ms: int, by: Changer
) -> int:
    """Add a committed version that is in no sequence, with its files; returns its id."""
    number = select(artifact_collection.c.next_version).where(artifact_collection.c.id == collection_id)
    values = {
        "collection_id": collection_id,
        "version": connection.execute(number.with_for_update()).scalar_one(),
        "state": "committed",
        "digest": "",
        "manifest_kind": "full",
        "description": new.description,
        "metadata": "{}",
        "tags": "[]",
        "aliases": "[]",
        "run_id": new.run_id,
        "author_id": None if by.actor is None else by.actor.user_id,
        "bytes": 0,
        "files": 0,
        "created_ms": now_ms,
        "updated_ms": now_ms,
    }
    added = insert(artifact_version).values(values).returning(artifact_version.c.id)
    version_id = int(connection.execute(added).scalar_one())
    if new.copy_of is not None:
        _copy_entries(connection, new.copy_of, version_id)
    else:
        add_rows(connection, artifact_entry, _entries(connection, version_id, new, now_ms))
    contents = Contents()
    columns = artifact_entry.c
    listed = select(columns.path, columns.digest, columns.bytes).where(columns.version_id == version_id)
    for path, digest, size in connection.execute(listed.order_by(columns.path)):
        contents.add(path, digest, size)
    totals = {"digest": contents.digest, "bytes": contents.bytes, "files": contents.files}
    same = artifact_version.c.id == version_id
    connection.execute(update(artifact_version).where(same).values(totals))
    return version_id


def _copy_entries(connection: Connection, source_id: int, version_id: int) -> None:
    rows = connection.execute(select(artifact_entry).where(artifact_entry.c.version_id == source_id))
    add_rows(connection, artifact_entry, [{**row._asdict(), "version_id": version_id} for row in rows])


def _entries(
    connection: Connection, version_id: int, new: NewModelVersion, now_ms: int
) -> list[dict[str, Any]]:
    """The files of a version; without any, a reference to where it is, if that is an address."""
    if not new.files:
        if "://" not in new.location:
            return []
        name = new.location.rstrip("/").rpartition("/")[2] or "files"
        reference = Entry(name, new.location, None, new.location)
        return [_row(version_id, reference, None)]
    numbers: dict[str, int] = {}
    for _, file in new.files.values():
        others = {"bytes": file.bytes, "media_type": file.media_type, "created_ms": now_ms}
        numbers |= ensure_ids(connection, stored_file.c.sha256, [file.sha256], **others)
    return [
        _row(version_id, Entry(path, digest, file.bytes), numbers[file.sha256])
        for path, (digest, file) in new.files.items()
    ]


def _row(version_id: int, entry: Entry, file_id: int | None) -> dict[str, Any]:
    return {
        "version_id": version_id,
        "path": entry.path,
        "digest": entry.digest,
        "bytes": entry.bytes,
        "reference": entry.reference,
        "file_id": file_id,
        "birth_id": None,
        "extra": None,
    }


def _versions() -> Select[Any]:
    said = ("description", "stage", "source", "location", "run_link", "logged_model", "author", "downloads")
    return (
        select(
            artifact_membership.c.id,
            artifact_membership.c.version_id,
            artifact_membership.c.number,
            artifact_membership.c.created_ms,
            artifact_version.c.tags,
            artifact_version.c.files,
            artifact_version.c.description.label("own_description"),
            run.c.uid.label("made_by"),
            model_version.c.run_uid,
            model_version.c.properties,
            model_version.c.changed_ms,
            *(model_version.c[name] for name in said),
        )
        .join(artifact_version, artifact_version.c.id == artifact_membership.c.version_id)
        .outerjoin(model_version, model_version.c.membership_id == artifact_membership.c.id)
        .outerjoin(run, run.c.id == artifact_version.c.run_id)
        .where(artifact_version.c.state == "committed")
    )


def _version(row: Any) -> ModelVersion:
    what = f"the tags of the linked version {row.id}"
    location = row.location or ""
    if not location or (location.startswith(SCHEME) and row.files):
        location = f"{SCHEME}{FILES}/{row.id}"
    names = dict.fromkeys(stored_list(row.tags, what), "")
    return ModelVersion(
        row.id,
        row.version_id,
        row.number,
        row.own_description if row.description is None else row.description,
        row.stage or NO_STAGE,
        row.source or location,
        location,
        row.run_uid or row.made_by,
        row.run_link,
        row.logged_model,
        names | stored_object(row.properties or "{}", what),
        row.author or "",
        row.downloads or 0,
        row.created_ms,
        row.changed_ms or row.created_ms,
    )
