"""The files of reports: images, and the values of frozen panels. Contents are in the file store."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from sqlalchemy import Connection, case, delete, func, or_, select

from runvitals.server.database.database import StoredTable, add_rows, in_transaction
from runvitals.server.database.limits import take_turns
from runvitals.server.database.tables.reports import report, report_file
from runvitals.server.database.tables.runs import project
from runvitals.server.files.storage.stored_files import StoredFile, ensure_file
from runvitals.store.errors import LimitReached

FileKind = Literal["image", "frozen"]
MAX_FILES: Final = 1000
MAX_BYTES: Final = 1_000_000_000
"""Of all files of a report."""


class ReportStorage(NamedTuple):
    """Bytes of files of the reports of a project. `trash`: of those in the trash, which `bytes` includes."""

    project_id: int
    project: str
    bytes: int
    trash: int


class ReportFileTable(StoredTable):
    """The table of files of reports.

    Example:
        >>> files.add(4, StoredFile(sha256, 190, "image/webp"), "image", user_id, now_ms)
        >>> files.get(4, sha256, "image").bytes
        190
    """

    def check_space(self, report_id: int, size: int) -> None:
        """Raise LimitReached if a report may not have another file of this size."""
        with self._database.read() as connection:
            _check_space(connection, report_id, size)

    @in_transaction
    def add(
        self,
        connection: Connection,
        report_id: int,
        file: StoredFile,
        kind: FileKind,
        author_id: int | None,
        now_ms: int,
    ) -> None:
        """Note that a report has a file, whose content is in the file store. Durable.

        Raises:
            LimitReached: it has too many, or too large ones.
        """
        row = {
            "report_id": report_id,
            "digest": file.sha256,
            "kind": kind,
            "content_type": file.media_type,
            "bytes": file.bytes,
            "created_ms": now_ms,
            "author_id": author_id,
            "place": file.place,
        }
        same = (report_file.c.report_id == report_id, report_file.c.digest == file.sha256)
        if connection.execute(select(report_file.c.digest).where(*same)).first() is None:
            _check_space(connection, report_id, file.bytes)
        ensure_file(connection, file, now_ms)
        add_rows(connection, report_file, [row])

    def get(self, report_id: int, sha256: str, kind: FileKind) -> StoredFile | None:
        """Return a file of a report; None: it has none like this."""
        columns = (report_file.c.bytes, report_file.c.content_type, report_file.c.place)
        statement = select(*columns).where(
            report_file.c.report_id == report_id,
            report_file.c.digest == sha256,
            report_file.c.kind == kind,
        )
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        return None if row is None else StoredFile(sha256, row.bytes, row.content_type, row.place)

    def remove(self, report_id: int, sha256: str) -> None:
        """Take a file from a report. Its content is removed with the last who has it."""
        same = delete(report_file).where(report_file.c.report_id == report_id, report_file.c.digest == sha256)
        self._database.write(lambda connection: connection.execute(same))

    def storage(self, entity_id: int | None) -> list[ReportStorage]:
        """Return how much files of reports take, by project of a team or user.

        Each content counts once in a report: copies of a report count again.
        """
        is_trashed = or_(report.c.deleted_ms.is_not(None), project.c.deleted_ms.is_not(None))
        size = report_file.c.bytes
        statement = (
            select(project.c.id, project.c.name, func.sum(size), func.sum(case((is_trashed, size), else_=0)))
            .join(report, report.c.project_id == project.c.id)
            .join(report_file, report_file.c.report_id == report.c.id)
            .where(project.c.entity_id == entity_id)
            .group_by(project.c.id, project.c.name)
        )
        with self._database.read() as connection:
            rows = connection.execute(statement).all()
        return [ReportStorage(number, name, int(size), int(trash)) for number, name, size, trash in rows]

    @in_transaction
    def copy(self, connection: Connection, source_id: int, report_id: int) -> None:
        """Give a report the files of another one."""
        files = select(report_file).where(report_file.c.report_id == source_id)
        rows = [{**row._asdict(), "report_id": report_id} for row in connection.execute(files)]
        add_rows(connection, report_file, rows)


def _check_space(connection: Connection, report_id: int, size: int) -> None:
    take_turns(connection, "report_file", report_id)
    used = select(func.count(), func.coalesce(func.sum(report_file.c.bytes), 0))
    count, size_before = connection.execute(used.where(report_file.c.report_id == report_id)).one()
    if count >= MAX_FILES:
        raise LimitReached(f"the report has {MAX_FILES:,} files; expected at most so many")
    if size_before + size > MAX_BYTES:
        raise LimitReached(f"the files of the report would exceed {MAX_BYTES:,} bytes")
