"""The table of reports and that of their versions."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    delete,
    insert,
    or_,
    select,
    update,
)

from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import check_room
from runvitals.server.database.tables.accounts import entity, service_account, user_account
from runvitals.server.database.tables.reports import report, report_share, report_version
from runvitals.server.database.tables.runs import project
from runvitals.server.reports.document import Document, words_of
from runvitals.server.reports.merge import Conflict, merge
from runvitals.server.reports.own_edits import SavedDocument
from runvitals.server.reports.storage.rows import (
    ReportAuthor,
    ReportEdited,
    ReportRow,
    ReportVersion,
    SavedReport,
    ShareRole,
    UnknownReport,
)
from runvitals.server.reports.storage.versions import coalesced, prune_versions, versions_of
from runvitals.store.errors import LimitReached

MAX_REPORTS: Final = 10_000
"""In a project, with those in the trash."""
_ATTEMPTS: Final = 5
_SAVES_PER_PRUNING: Final = 10
_MAX_DOCUMENTS: Final = 100
_MAX_DOCUMENTS_BYTES: Final = 8_000_000
_AUTHOR_ENTITY = entity.alias()


class ReportTable(StoredTable):
    """The reports of all projects, and their versions.

    Example:
        >>> row = reports.create(3, document, ReportAuthor(user_id=1), now_ms)
        >>> reports.save(row.id, 1, changed, ReportAuthor(user_id=1), now_ms).row.head_revision
        2
    """

    def get(self, report_id: int) -> ReportRow:
        """Return a report, also one in the trash, or raise UnknownReport."""
        with self._database.read() as connection:
            return _read(connection, report_id)

    def document(self, report_id: int, revision: int) -> Document:
        """Return a revision of a report, or raise UnknownReport."""
        document = self.kept_document(report_id, revision)
        if document is None:
            raise UnknownReport(report_id)
        return document

    def kept_document(self, report_id: int, revision: int | None) -> Document | None:
        """Return a revision of a report; None if it is not kept."""
        if revision is None:
            return None
        with self._database.read() as connection:
            return _document(connection, report_id, revision)

    @in_transaction
    def create(
        self, connection: Connection, project_id: int, document: Document, author: ReportAuthor, now_ms: int
    ) -> ReportRow:
        """Create a draft, or raise LimitReached."""
        refusal = f"the project has {MAX_REPORTS:,} reports: delete some for good"
        in_project = report.c.project_id == project_id
        check_room(connection, report, MAX_REPORTS, refusal, in_project, owner_id=project_id)
        values = {
            "project_id": project_id,
            "author_id": author.user_id,
            "service_account_id": author.service_account_id,
            **_listed_columns(document),
            "head_revision": 1,
            "created_ms": now_ms,
            "changed_ms": now_ms,
        }
        report_id = connection.execute(insert(report).values(values).returning(report.c.id)).scalar_one()
        _add_version(connection, report_id, 1, document, author, now_ms)
        return _read(connection, report_id)

    @in_transaction
    def save(
        self,
        connection: Connection,
        report_id: int,
        base_revision: int,
        document: Document,
        author: ReportAuthor,
        now_ms: int,
    ) -> SavedReport:
        """Store changes of the working copy; those of others since the base revision are merged.

        Raises:
            UnknownReport: there is none.
            ReportEdited: others changed the same blocks.
        """
        for _ in range(_ATTEMPTS):
            saved = _save(connection, report_id, base_revision, document, author, now_ms)
            if saved is not None:
                return saved
        raise LimitReached("too many people save this report at once: try again")

    @in_transaction
    def publish(self, connection: Connection, report_id: int, revision: int, now_ms: int) -> ReportRow:
        """Show a revision to readers, or raise UnknownReport if it is not kept."""
        document = _document(connection, report_id, revision)
        if document is None:
            raise UnknownReport(report_id)
        connection.execute(
            update(report)
            .where(report.c.id == report_id)
            .values(published_revision=revision, published_ms=now_ms, **_listed_columns(document))
        )
        same = (report_version.c.report_id == report_id, report_version.c.revision == revision)
        connection.execute(update(report_version).where(*same).values(is_published=True))
        return _read(connection, report_id)

    def versions(self, report_id: int) -> list[ReportVersion]:
        """Return the versions of a report, the newest first: of each author the last of ten minutes."""
        with self._database.read() as connection:
            return coalesced(versions_of(connection, report_id))

    def newest_documents(self, report_id: int) -> list[SavedDocument]:
        """Return the newest versions that are kept, the oldest first: at most 100, of 8 MB."""
        statement = (
            select(report_version)
            .where(report_version.c.report_id == report_id)
            .order_by(report_version.c.revision.desc())
            .limit(_MAX_DOCUMENTS)
        )
        with self._database.read() as connection:
            rows = connection.execute(statement).all()
        documents: list[SavedDocument] = []
        remaining_bytes = _MAX_DOCUMENTS_BYTES
        for row in rows:
            packed = zlib.decompress(row.document)
            remaining_bytes -= len(packed)
            if remaining_bytes < 0:
                break
            documents.append(SavedDocument(row.revision, row.author_id, row.created_ms, json.loads(packed)))
        return documents[::-1]

    @in_transaction
    def restore_version(
        self, connection: Connection, report_id: int, revision: int, author: ReportAuthor, now_ms: int
    ) -> SavedReport:
        """Make an older version the working copy; what was there stays as a version.

        Raises:
            UnknownReport: the version is not kept.
        """
        row, document = _read(connection, report_id), _document(connection, report_id, revision)
        if document is None:
            raise UnknownReport(report_id)
        saved = _save(connection, report_id, row.head_revision, document, author, now_ms)
        if saved is None:
            raise LimitReached("somebody else saves this report now: try again")
        return saved

    def of_project(
        self, project_id: int, user_id: int | None, text: str = "", deleted: bool = False
    ) -> list[ReportRow]:
        """Return the reports of a project that are published, or the user's own, or shared with the user.

        Args:
            text: only those that contain all its words.
            deleted: those in the trash instead.
        """
        is_readable = or_(report.c.published_revision.is_not(None), own_or_shared(user_id))
        trash = report.c.deleted_ms.is_not(None) if deleted else report.c.deleted_ms.is_(None)
        words = [report.c.words.contains(word, autoescape=True) for word in text.lower().split()]
        statement = select_reports().where(report.c.project_id == project_id, is_readable, trash, *words)
        with self._database.read() as connection:
            return [row_of(row) for row in connection.execute(statement.order_by(report.c.changed_ms.desc()))]

    def share_role(self, report_id: int, user_id: int) -> ShareRole | None:
        """Return the role in which a report is shared with a user; None: it is not."""
        same = (report_share.c.report_id == report_id, report_share.c.user_id == user_id)
        with self._database.read() as connection:
            role: ShareRole | None = connection.execute(select(report_share.c.role).where(*same)).scalar()
        return role

    def delete(self, report_id: int, now_ms: int) -> None:
        """Move a report to the trash, or raise UnknownReport."""
        self._set_deleted(report_id, now_ms)

    def restore(self, report_id: int) -> None:
        """Take a report out of the trash, or raise UnknownReport."""
        self._set_deleted(report_id, None)

    def purge(self, report_id: int) -> None:
        """Remove a report for good; without effect if there is none."""
        self._database.write(
            lambda connection: connection.execute(delete(report).where(report.c.id == report_id))
        )

    def purge_trashed(self, before_ms: int) -> int:
        """Remove reports for good that were moved to the trash before a time; returns how many."""
        old = delete(report).where(report.c.deleted_ms < before_ms)
        return self._database.write(lambda connection: connection.execute(old).rowcount)

    def _set_deleted(self, report_id: int, deleted_ms: int | None) -> None:
        statement = update(report).where(report.c.id == report_id).values(deleted_ms=deleted_ms)
        if not self._database.write(lambda connection: connection.execute(statement)).rowcount:
            raise UnknownReport(report_id)


def _save(
    connection: Connection,
    report_id: int,
    base_revision: int,
    document: Document,
    author: ReportAuthor,
    now_ms: int,
) -> SavedReport | None:
    """Store changes; None if somebody else did so meanwhile."""
    row = _read(connection, report_id)
    others: Sequence[str] = ()
    current = _document(connection, report_id, row.head_revision)
    if current is None:
        raise UnknownReport(report_id)
    if base_revision != row.head_revision:
        base = _document(connection, report_id, base_revision)
        merged: Any = [] if base is None else merge(base, current, document)
        if isinstance(merged, list):
            conflicts: list[Conflict] = merged
            raise ReportEdited(row, conflicts, current)
        document, others = merged
    if document == current:
        return SavedReport(row, document, others)
    revision = row.head_revision + 1
    values: dict[str, Any] = {"head_revision": revision, "changed_ms": now_ms}
    if row.is_draft:
        values |= _listed_columns(document)
    same = (report.c.id == report_id, report.c.head_revision == row.head_revision)
    if not connection.execute(update(report).where(*same).values(values)).rowcount:
        return None
    _add_version(connection, report_id, revision, document, author, now_ms)
    if revision % _SAVES_PER_PRUNING == 0:
        prune_versions(connection, report_id, revision)
    return SavedReport(_read(connection, report_id), document, others)


def _listed_columns(document: Document) -> dict[str, str]:
    """Return what lists show: of the published revision, or of a draft."""
    return {
        "title": document["title"],
        "description": document["description"],
        "words": words_of(document),
    }


def _add_version(
    connection: Connection,
    report_id: int,
    revision: int,
    document: Document,
    author: ReportAuthor,
    now_ms: int,
) -> None:
    values = {
        "report_id": report_id,
        "revision": revision,
        "document": zlib.compress(json.dumps(document, ensure_ascii=False).encode()),
        "author_id": author.user_id,
        "created_ms": now_ms,
        "is_published": False,
    }
    connection.execute(insert(report_version).values(values))


def _document(connection: Connection, report_id: int, revision: int) -> Document | None:
    same = (report_version.c.report_id == report_id, report_version.c.revision == revision)
    packed = connection.execute(select(report_version.c.document).where(*same)).scalar()
    if packed is None:
        return None
    document: Document = json.loads(zlib.decompress(packed))
    return document


def own_or_shared(user_id: int | None) -> ColumnElement[bool]:
    """Return which reports are a user's own, or shared with the user by name."""
    shared = select(report_share.c.report_id).where(report_share.c.user_id == user_id)
    return or_(report.c.author_id == user_id, report.c.id.in_(shared))


def select_reports() -> Select[Any]:
    """Return the query of `ReportRow`s, to which conditions are added."""
    columns = [column for column in report.c if column.name != "words"]
    joined = (
        report.join(project, project.c.id == report.c.project_id)
        .join(entity, entity.c.id == project.c.entity_id)
        .outerjoin(user_account, user_account.c.id == report.c.author_id)
        .outerjoin(
            _AUTHOR_ENTITY,
            and_(_AUTHOR_ENTITY.c.id == user_account.c.entity_id, user_account.c.deleted_ms.is_(None)),
        )
        .outerjoin(service_account, service_account.c.id == report.c.service_account_id)
    )
    return select(
        *columns,
        project.c.name.label("project"),
        project.c.entity_id,
        entity.c.name.label("entity"),
        _AUTHOR_ENTITY.c.name.label("author"),
        service_account.c.name.label("service_account"),
    ).select_from(joined)


def _read(connection: Connection, report_id: int) -> ReportRow:
    row = connection.execute(select_reports().where(report.c.id == report_id)).first()
    if row is None:
        raise UnknownReport(report_id)
    return row_of(row)


def row_of(row: Row[Any]) -> ReportRow:
    """Return a row of `select_reports`."""
    return ReportRow(**row._asdict())
