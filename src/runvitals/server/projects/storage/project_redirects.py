"""The addresses that projects had before they were renamed or given to another team or user."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, delete, insert, select

from runvitals.model.durations import DAY_MS
from runvitals.model.names import plain_text
from runvitals.server.database.database import StoredTable
from runvitals.server.database.limits import take_turns
from runvitals.server.database.tables.projects import project_redirect
from runvitals.server.database.tables.runs import project, run

REDIRECT_MS: Final = 90 * DAY_MS
"""How long an address leads to where the project is now."""


def remember_address(connection: Connection, project_id: int, now_ms: int) -> None:
    """Let the present address of a project lead to it after it gets another. Call it before the change."""
    present = select(project.c.entity_id, project.c.name).where(project.c.id == project_id)
    row = connection.execute(present).first()
    if row is None or row.entity_id is None:
        return
    here = (project_redirect.c.entity_id == row.entity_id, project_redirect.c.name == row.name)
    take_turns(connection, "project_redirect", row.entity_id)
    connection.execute(delete(project_redirect).where(*here))
    values = {
        "entity_id": row.entity_id,
        "name": row.name,
        "project_id": project_id,
        "created_ms": now_ms,
    }
    connection.execute(insert(project_redirect).values(values))


class ProjectRedirectTable(StoredTable):
    """The table of former addresses of projects."""

    def target(self, entity_id: int, name: str, now_ms: int) -> int | None:
        """The id of the project that had this name there; None if none had, or it is too long ago."""
        statement = select(project_redirect.c.project_id).where(
            project_redirect.c.entity_id == entity_id,
            project_redirect.c.name == plain_text(name),
            project_redirect.c.created_ms > now_ms - REDIRECT_MS,
        )
        with self._database.read() as connection:
            return connection.execute(statement).scalar()

    def projects_of_run(self, entity_id: int, uid: str, now_ms: int) -> list[int]:
        """The ids of the projects that were in this team or user's space and have a run with this run id."""
        statement = (
            select(run.c.project_id)
            .join(project_redirect, project_redirect.c.project_id == run.c.project_id)
            .where(
                run.c.uid == plain_text(uid),
                run.c.entity_id != entity_id,
                run.c.deleted_ms.is_(None),
                project_redirect.c.entity_id == entity_id,
                project_redirect.c.created_ms > now_ms - REDIRECT_MS,
            )
            .distinct()
            .order_by(run.c.project_id)
        )
        with self._database.read() as connection:
            return list(connection.execute(statement).scalars())

    def purge(self, now_ms: int) -> None:
        """Forget the addresses that no longer lead anywhere."""
        old = delete(project_redirect).where(project_redirect.c.created_ms <= now_ms - REDIRECT_MS)
        self._database.write(lambda connection: connection.execute(old))
