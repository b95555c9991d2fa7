"""The files of versions of artifacts, and the contents that projects have for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Select,
    bindparam,
    delete,
    func,
    select,
    update,
)

from runvitals.model.artifact_names import checked_digest
from runvitals.model.names import plain_text
from runvitals.server.artifacts.storage.manifest import checked_entries, checked_size
from runvitals.server.artifacts.storage.rows import NO_MANIFEST, ArtifactConflict, Entry, UnknownArtifact
from runvitals.server.database.database import Database, StoredTable, in_transaction, put_rows
from runvitals.server.database.shared_commits import SharedCommits
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.artifacts import (
    artifact_collection,
    artifact_content,
    artifact_entry,
    artifact_membership,
    artifact_version,
)
from runvitals.server.database.tables.runs import run_file, stored_file
from runvitals.server.files.storage.stored_files import STORED_FILE, StoredFile, ensure_files

_ROWS: Final = 2000
"""Entries in one transaction: others that write wait no longer than for these."""
_DIGESTS: Final = 500
MAX_PATHS: Final = 500
_OWNER: Final = artifact_collection.alias("owner")
"""The sequence that a version was logged to; it may be a member of portfolios of other projects."""


class EntryTable(StoredTable):
    """The entries of versions, by path."""

    @in_transaction
    def begin(
        self, connection: Connection, version_id: int, manifest_kind: str, base_id: int | None, now_ms: int
    ) -> None:
        """Note of a draft whether its manifest, which follows, has all entries, or adds to those of a base.

        Raises:
            UnknownArtifact, ArtifactConflict: there is no such draft, or the base is in another project.
        """
        project_id = _draft_project(connection, version_id)
        if base_id is not None and _project_of(connection, base_id) != project_id:
            raise ArtifactConflict(f"there is no artifact {base_id} in this project to be added to")
        values = {"manifest_kind": manifest_kind, "base_id": base_id, "updated_ms": now_ms}
        values["files"] = NO_MANIFEST
        same = artifact_version.c.id == version_id
        connection.execute(update(artifact_version).where(same).values(values))

    def put(self, version_id: int, entries: Iterable[Entry], run_id: int | None = None) -> None:
        """Add the entries of a manifest to a draft; those with the same path are replaced.

        All are checked before the first is added. Many are added in several transactions: who is
        interrupted sends the manifest again.

        Args:
            run_id: the run that has sent the contents, which the entries name by `sha256`; None: the project
                has them, by their digests.

        Raises:
            ValueError: an invalid entry, or too many; then the draft cannot be committed.
            UnknownArtifact, ArtifactConflict: there is no such draft.
        """
        try:
            sent = checked_entries(entries)
            for first in range(0, len(sent), _ROWS):
                self._put(version_id, sent[first : first + _ROWS], run_id)
        except ArtifactConflict:
            raise
        except ValueError:
            self._note_manifest(version_id, NO_MANIFEST)
            raise
        self._note_manifest(version_id, len(sent))

    @in_transaction
    def _put(
        self, connection: Connection, version_id: int, entries: Sequence[Entry], run_id: int | None
    ) -> None:
        rows = [_row(version_id, entry) for entry in entries]
        project_id = _draft_project(connection, version_id)
        local = [(row, entry) for row, entry in zip(rows, entries, strict=True) if entry.reference is None]
        if run_id is None:
            files = _files(connection, project_id, {entry.digest for _, entry in local})
        else:
            files = _files_of_run(connection, run_id, {entry.sha256 or "" for _, entry in local})
        for row, entry in local:
            file = files.get(entry.digest if run_id is None else entry.sha256 or "")
            if file is not None:
                row["file_id"], row["bytes"] = file.id, checked_size(entry, file.bytes)
        put_rows(connection, artifact_entry, rows)

    def _note_manifest(self, version_id: int, files: int) -> None:
        """Note how many files the manifest of a draft has, or that it is not valid."""
        draft = (artifact_version.c.id == version_id) & (artifact_version.c.state == "draft")
        noted = update(artifact_version).where(draft).values(files=files)
        self._database.write(lambda connection: connection.execute(noted))

    def get(self, version_id: int, path: str) -> Entry | None:
        """An entry of a version; None if it has none with this path."""
        return next(iter(self.named(version_id, [path])), None)

    def named(self, version_id: int, paths: Sequence[str]) -> list[Entry]:
        """Those entries of a version that have one of these paths, at most `MAX_PATHS`, by path."""
        parameters = {"version": version_id, "paths": list(map(plain_text, paths[:MAX_PATHS]))}
        with self._database.read() as connection:
            return [_entry(row) for row in connection.execute(_NAMED, parameters)]

    def page(self, version_id: int, after: str, limit: int) -> list[Entry]:
        """Entries of a version by path, those after one."""
        statement = _entries(version_id).where(artifact_entry.c.path > plain_text(after)).limit(limit)
        with self._database.read() as connection:
            return [_entry(row) for row in connection.execute(statement)]

    def all(self, version_id: int) -> Iterator[Entry]:
        """All entries of a version by path, read in parts."""
        after = ""
        while page := self.page(version_id, after, _ROWS):
            yield from page
            after = page[-1].path

    def with_digest(
        self, project_id: int, digest: str, collection: str | None = None
    ) -> tuple[int, str] | None:
        """The newest version of a project that has a file with this digest, and its path there.

        Args:
            collection: the name of a collection that has the version; None: any.
        """
        columns, digest = artifact_entry.c, plain_text(digest)
        statement = (
            select(columns.version_id, columns.path)
            .join(artifact_membership, artifact_membership.c.version_id == columns.version_id)
            .join(artifact_collection, artifact_collection.c.id == artifact_membership.c.collection_id)
            .join(artifact_version, artifact_version.c.id == columns.version_id)
            .join(_OWNER, _OWNER.c.id == artifact_version.c.collection_id)
            .join(artifact_content, artifact_content.c.file_id == columns.file_id)
            .where(
                artifact_collection.c.project_id == project_id,
                # The few rows to begin with: there is no index of entries by digest.
                artifact_content.c.project_id == _OWNER.c.project_id,
                artifact_content.c.digest == digest,
                columns.digest == digest,
            )
            .order_by(columns.version_id.desc(), columns.path)
            .limit(1)
        )
        if collection is not None:
            statement = statement.where(artifact_collection.c.name == plain_text(collection))
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        return None if row is None else (row.version_id, row.path)

    def in_version(self, version_id: int, digest: str) -> str | None:
        """The path of a file of a version with this digest; None if it has none."""
        columns, digest = artifact_entry.c, plain_text(digest)
        same = (columns.version_id == version_id, columns.digest == digest, columns.file_id.is_not(None))
        with self._database.read() as connection:
            return connection.execute(select(columns.path).where(*same).limit(1)).scalar()


class _AddedContent(NamedTuple):
    """A content that a project has got."""

    project_id: int
    digest: str
    file: StoredFile
    now_ms: int


class ContentTable:
    """The contents that projects have for their artifacts, by the digest that clients use.

    Nobody gets a content of another project by knowing its digest.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._added = SharedCommits(self._add_all)

    def known(self, project_id: int, digests: Iterable[str], now_ms: int) -> set[str]:
        """Those of some contents that a project has; they are kept for some days from now on."""
        checked = sorted({checked_digest(digest) for digest in digests})

        def work(connection: Connection) -> set[str]:
            files = _files(connection, project_id, checked)
            names = sorted(files)
            for first in range(0, len(names), _DIGESTS):
                part = artifact_content.c.digest.in_(names[first : first + _DIGESTS])
                same = (artifact_content.c.project_id == project_id, part)
                connection.execute(update(artifact_content).where(*same).values(used_ms=now_ms))
            return set(files)

        return self._database.write(work) if checked else set()

    def add(self, project_id: int, digest: str, file: StoredFile, now_ms: int) -> None:
        """Note that a project has a content, which is in the file store. Durable.

        Those of requests that arrive at the same time are written together.
        """
        self._added.add(_AddedContent(project_id, checked_digest(digest), file, now_ms))

    def _add_all(self, added: Sequence[_AddedContent]) -> None:
        def work(connection: Connection) -> None:
            numbers = ensure_files(connection, {content.file: content.now_ms for content in added})
            rows = [
                {
                    "project_id": content.project_id,
                    "digest": content.digest,
                    "file_id": numbers[content.file.sha256, content.file.place],
                    "used_ms": content.now_ms,
                }
                for content in added
            ]
            put_rows(connection, artifact_content, rows)

        self._database.write(work)

    def get(self, project_id: int, digest: str) -> StoredFile | None:
        """A content of a project; None if it has none with this digest."""
        statement = (
            select(*STORED_FILE)
            .join(artifact_content, artifact_content.c.file_id == stored_file.c.id)
            .where(
                artifact_content.c.project_id == project_id, artifact_content.c.digest == plain_text(digest)
            )
        )
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        return None if row is None else StoredFile(*row)

    def forget_unused(self, before_ms: int) -> int:
        """Forget contents that no version uses and nobody asked for since a time; return how many.

        `StoredFileTable.forget_unused` removes files that no project has any more.
        """
        columns = artifact_content.c
        used = (
            select(artifact_entry.c.version_id)
            .join(artifact_version, artifact_version.c.id == artifact_entry.c.version_id)
            .join(artifact_collection, artifact_collection.c.id == artifact_version.c.collection_id)
            .where(
                artifact_entry.c.file_id == columns.file_id,
                artifact_collection.c.project_id == columns.project_id,
            )
            .exists()
        )
        unused = delete(artifact_content).where(columns.used_ms < before_ms, ~used)
        return self._database.write(lambda connection: connection.execute(unused).rowcount)

    def project_bytes(self, project_id: int) -> int:
        """The size of the contents of a project's artifacts, each counted once."""
        files = select(artifact_content.c.file_id).where(artifact_content.c.project_id == project_id)
        total = select(func.coalesce(func.sum(stored_file.c.bytes), 0)).where(stored_file.c.id.in_(files))
        with self._database.read() as connection:
            return int(connection.execute(total).scalar_one())


def _row(version_id: int, entry: Entry) -> dict[str, Any]:
    """An entry as a row; `file_id` is added later."""
    return {
        "version_id": version_id,
        "path": entry.path,
        "digest": entry.digest,
        "bytes": entry.bytes,
        "reference": entry.reference,
        "birth_id": entry.birth_id,
        "extra": json.dumps(entry.extra) if entry.extra else None,
        "file_id": None,
    }


def _draft_project(connection: Connection, version_id: int) -> int:
    """The project of a draft, which is locked until the transaction ends."""
    statement = select(artifact_version.c.state).where(artifact_version.c.id == version_id)
    state = connection.execute(statement.with_for_update(key_share=True)).scalar()
    project_id = _project_of(connection, version_id)
    if state is None or project_id is None:
        raise UnknownArtifact(f"there is no artifact {version_id}")
    if state != "draft":
        raise ArtifactConflict(f"the artifact {version_id} is {state}: its files cannot be changed")
    return project_id


def _project_of(connection: Connection, version_id: int) -> int | None:
    statement = (
        select(artifact_collection.c.project_id)
        .join(artifact_version, artifact_version.c.collection_id == artifact_collection.c.id)
        .where(artifact_version.c.id == version_id)
    )
    return connection.execute(statement).scalar()


class _File(NamedTuple):
    """A content in the file store."""

    id: int
    bytes: int


def _files(connection: Connection, project_id: int, digests: Iterable[str]) -> dict[str, _File]:
    """The files of contents that a project has, by digest."""
    statement = (
        select(artifact_content.c.digest, stored_file.c.id, stored_file.c.bytes)
        .join(stored_file, stored_file.c.id == artifact_content.c.file_id)
        .where(artifact_content.c.project_id == project_id)
    )
    return _files_by_digest(connection, statement, artifact_content.c.digest, digests)


def _files_of_run(connection: Connection, run_id: int, digests: Iterable[str]) -> dict[str, _File]:
    """The files that a run has sent, by SHA-256."""
    statement = (
        select(stored_file.c.sha256, stored_file.c.id, stored_file.c.bytes)
        .join(run_file, run_file.c.file_id == stored_file.c.id)
        .where(run_file.c.run_id == run_id)
    )
    return _files_by_digest(connection, statement, stored_file.c.sha256, digests)


def _files_by_digest(
    connection: Connection, statement: Select[Any], column: ColumnElement[str], digests: Iterable[str]
) -> dict[str, _File]:
    ordered = sorted(digests)
    return {
        digest: _File(number, size)
        for first in range(0, len(ordered), _DIGESTS)
        for digest, number, size in connection.execute(
            statement.where(column.in_(ordered[first : first + _DIGESTS]))
        )
    }


def _entries(version_id: int | BindParameter[Any]) -> Select[Any]:
    return (
        select(artifact_entry, *(column.label(f"stored_{column.name}") for column in STORED_FILE))
        .outerjoin(stored_file, stored_file.c.id == artifact_entry.c.file_id)
        .where(artifact_entry.c.version_id == version_id)
        .order_by(artifact_entry.c.path)
    )


# Made once: that takes as long as to carry it out.
_NAMED: Final = _entries(bindparam("version")).where(
    artifact_entry.c.path.in_(bindparam("paths", expanding=True))
)


def _entry(row: Any) -> Entry:
    extra = None if row.extra is None else stored_object(row.extra, f"the note of {row.path!r}")
    sha256 = row.stored_sha256
    stored = (
        None
        if sha256 is None
        else StoredFile(sha256, row.stored_bytes, row.stored_media_type, row.stored_place)
    )
    return Entry(row.path, row.digest, row.bytes, row.reference, row.birth_id, extra, sha256, stored)
