"""Projects: names that group runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import Connection, func, select, update
from sqlalchemy.exc import IntegrityError

from runvitals.model.errors import UnknownProject
from runvitals.model.filter import ReadableRuns
from runvitals.model.names import shortened
from runvitals.store.metadata.database import Database, among
from runvitals.store.metadata.tables import project, run
from runvitals.store.metadata.text import MAX_NAME, checked_name

DEFAULT_PROJECT = "default"


@dataclass(frozen=True, slots=True)
class StoredProject:
    """A project with runs. `newest_ms`: start of its newest run."""

    id: int
    name: str
    runs: int
    running: int
    newest_ms: int


def project_name(text: object) -> str:
    """The project name given by a writer: `default` if it gives none; shortened if it is too long."""
    return shortened(str(text), MAX_NAME) if text else DEFAULT_PROJECT


class ProjectTable:
    """The table of projects."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, now_ms: int, readable: ReadableRuns | None = None) -> list[StoredProject]:
        """The projects that have runs, in descending order of their newest run.

        Args:
            readable: only projects that the principal may read; None: all.
        """
        with self._database.read() as connection:
            listed = [run.c.deleted_ms.is_(None)]
            if readable is not None:
                listed.append(among(connection, run.c.project_id, readable.projects))
            by_project = (
                select(
                    run.c.project_id,
                    func.count().label("runs"),
                    func.max(run.c.started_ms).label("newest_ms"),
                )
                .where(*listed)
                .group_by(run.c.project_id)
                .subquery()
            )
            running = select(run.c.project_id).where(*listed, run.c.alive_until_ms >= now_ms)
            statement = (
                select(project.c.id, project.c.name, by_project.c.runs, by_project.c.newest_ms)
                .join(by_project, by_project.c.project_id == project.c.id)
                .order_by(by_project.c.newest_ms.desc(), project.c.id.desc())
            )
            alive = Counter(connection.execute(running).scalars())
            return [
                StoredProject(row.id, row.name, row.runs, alive[row.id], row.newest_ms)
                for row in connection.execute(statement)
            ]

    def id(self, name: str) -> int:
        """The id of a project.

        Raises:
            UnknownProject: it never had a run.
        """
        with self._database.read() as connection:
            found = connection.execute(
                select(project.c.id).where(project.c.name == project_name(name))
            ).scalar()
        if found is None:
            raise UnknownProject(f"there is no project {name!r}")
        return int(found)

    def rename(self, project_id: int, name: str) -> None:
        """Rename a project. Later runs under the old name belong to a new project.

        Raises:
            ValueError: the name is taken or invalid.
            UnknownProject: there is no project with this id.
        """
        statement = (
            update(project).where(project.c.id == project_id).values(name=checked_name("project", name))
        )

        def work(connection: Connection) -> int:
            try:
                return connection.execute(statement).rowcount
            except IntegrityError:
                raise ValueError(f"the project {name!r} already exists") from None

        if not self._database.write(work):
            raise UnknownProject(f"there is no project with id {project_id}")

    def delete(self, project_id: int, now_ms: int) -> int:
        """Move all runs of a project to the trash, like `RunTable.delete`; returns how many."""

        theirs = (run.c.project_id == project_id, run.c.deleted_ms.is_(None))
        statement = update(run).where(*theirs).values(deleted_ms=now_ms)
        return self._database.write(lambda connection: connection.execute(statement).rowcount)
