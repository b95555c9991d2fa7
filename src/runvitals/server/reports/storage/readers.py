"""Which reports users see in lists, and which of them they starred and follow."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Table, delete, or_, select

from runvitals.server.database.database import StoredTable, add_rows, among
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.reports import report, report_follow, report_share, report_star
from runvitals.server.database.tables.runs import project
from runvitals.server.reports.storage.report_table import own_or_shared, row_of, select_reports
from runvitals.server.reports.storage.rows import ReportMarks, ReportRow, ShareRole

MAX_LISTED: Final = 1000
_MAX_WORDS: Final = 8
Of = Literal["all", "mine", "followed", "shared", "starred", "team"]


class ReportSelection(NamedTuple):
    """Which reports a list has.

    Attributes:
        of: the user's own, followed, starred, or those shared with the user by name; `team`: of an entity.
        projects: ids of those that the user may read; None: all. Reports that are shared by name may be
            in others.
        entity: only reports of this team or user.
        text: only reports with all its words, up to the eighth.
    """

    of: Of = "all"
    projects: Collection[int] | None = None
    entity: str | None = None
    text: str = ""


class ReportReaderTable(StoredTable):
    """What users have to do with reports that they read."""

    def selected(self, selection: ReportSelection, user_id: int | None) -> list[ReportRow]:
        """Return reports, the one that changed last first: published, the user's own, or shared with them."""
        with self._database.read() as connection:
            conditions = _conditions(selection, user_id)
            if selection.projects is not None:
                readable = among(connection, report.c.project_id, selection.projects)
                conditions.append(or_(readable, own_or_shared(user_id)))
            statement = select_reports().where(*conditions)
            newest = statement.order_by(report.c.changed_ms.desc(), report.c.id.desc()).limit(MAX_LISTED)
            return [row_of(row) for row in connection.execute(newest)]

    def share_roles(self, user_id: int) -> dict[int, ShareRole]:
        """Return the reports that are shared with a user by name, and in which role."""
        statement = select(report_share.c.report_id, report_share.c.role)
        with self._database.read() as connection:
            rows = connection.execute(statement.where(report_share.c.user_id == user_id)).all()
        return {row.report_id: row.role for row in rows}

    def marks(self, user_id: int) -> ReportMarks:
        """Return the ids of reports that a user has starred, and of those that the user follows."""
        with self._database.read() as connection:
            starred, followed = (
                frozenset(connection.execute(_marked(table, user_id)).scalars())
                for table in (report_star, report_follow)
            )
        return ReportMarks(starred, followed)

    def followers(self, report_id: int) -> list[int]:
        """Return the ids of the users who follow a report."""
        statement = select(report_follow.c.user_id).where(report_follow.c.report_id == report_id)
        with self._database.read() as connection:
            return list(connection.execute(statement).scalars())

    def star(self, report_id: int, user_id: int, starred: bool, now_ms: int) -> None:
        """Star a report, or take the star away."""
        self._mark(report_star, report_id, user_id, starred, now_ms)

    def follow(self, report_id: int, user_id: int, follows: bool, now_ms: int) -> None:
        """Follow a report, or stop it."""
        self._mark(report_follow, report_id, user_id, follows, now_ms)

    def _mark(self, table: Table, report_id: int, user_id: int, marked: bool, now_ms: int) -> None:
        ids = {"report_id": report_id, "user_id": user_id}
        if marked:
            row = {**ids, "created_ms": now_ms}
            self._database.write(lambda connection: add_rows(connection, table, [row]))
        else:
            same = delete(table).where(table.c.report_id == report_id, table.c.user_id == user_id)
            self._database.write(lambda connection: connection.execute(same))


def _conditions(selection: ReportSelection, user_id: int | None) -> list[ColumnElement[bool]]:
    is_readable = or_(report.c.published_revision.is_not(None), own_or_shared(user_id))
    conditions = [is_readable, report.c.deleted_ms.is_(None), project.c.deleted_ms.is_(None)]
    words = selection.text.lower().split()[:_MAX_WORDS]
    conditions += [report.c.words.contains(word, autoescape=True) for word in words]
    if selection.entity is not None:
        conditions.append(entity.c.name == selection.entity)
    if selection.of == "mine":
        conditions.append(report.c.author_id == user_id)
    marks = {"followed": report_follow, "starred": report_star, "shared": report_share}
    if selection.of in marks:
        conditions.append(report.c.id.in_(_marked(marks[selection.of], user_id)))
    return conditions


def _marked(table: Table, user_id: int | None) -> Any:
    return select(table.c.report_id).where(table.c.user_id == user_id)
