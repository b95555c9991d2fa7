"""Projects: names that group runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, select, update
from sqlalchemy.exc import IntegrityError

from runvitals.model.errors import AmbiguousName, UnknownProject
from runvitals.model.filter import ReadableRuns
from runvitals.model.names import project_name
from runvitals.server.accounts.storage.entities import name_of
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, add_rows, among, in_transaction, rows_named
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import entity, team
from runvitals.server.database.tables.runs import project, run
from runvitals.server.database.text import checked_name
from runvitals.server.projects.storage.project_redirects import remember_address


@dataclass(frozen=True, slots=True)
class StoredProject:
    """A project with runs. `entity`: whose it is. `newest_ms`: start of its newest run."""

    id: int
    name: str
    runs: int
    running: int
    newest_ms: int
    entity: str | None = None


@dataclass(frozen=True, slots=True)
class ProjectOwner:
    """Whose a new project is.

    Args:
        entity_id: the team or user that gets it; None in a store without accounts.
        user_id: the user who may manage it.
        visibility: None: the default of its entity, but not beyond the team.
    """

    entity_id: int | None = None
    user_id: int | None = None
    visibility: str | None = None


NOBODY = ProjectOwner()
"""The owner of projects in a store without accounts."""
ProjectKey = tuple[int | None, str]
"""The entity of a project, and its name."""


def find_projects(connection: Connection, project_keys: Iterable[ProjectKey]) -> dict[ProjectKey, int]:
    """The ids of the existing ones of these projects."""
    keys = set(project_keys)
    rows = rows_named(connection, project.c.name, (name for _, name in keys), project.c.entity_id)
    numbers = {(entity_id, name): number for name, entity_id, number in rows}
    return {key: numbers[key] for key in keys & numbers.keys()}


def ensure_projects(
    connection: Connection, projects: Iterable[tuple[str, ProjectOwner]], created_ms: int
) -> dict[ProjectKey, int]:
    """The ids of projects by entity and name; missing ones are created. Safe with concurrent writers."""
    owners = {(owner.entity_id, name): owner for name, owner in projects}
    numbers = find_projects(connection, owners)
    # In order, so that two writers cannot deadlock.
    missing = sorted(owners.keys() - numbers.keys(), key=lambda key: (key[0] or 0, key[1]))
    if missing:
        defaults = _default_visibilities(connection, {entity_id for entity_id, _ in missing})
        rows = [
            {
                "name": key[1],
                "created_ms": created_ms,
                "entity_id": key[0],
                "owner_id": owners[key].user_id,
                "visibility": owners[key].visibility or defaults.get(key[0]),
            }
            for key in missing
        ]
        add_rows(connection, project, rows)
        rights_changed(connection)  # servers keep the list of the projects that each principal may read
        numbers |= find_projects(connection, missing)
    return numbers


def _default_visibilities(connection: Connection, entities: Iterable[int | None]) -> dict[int | None, str]:
    """The visibility of new projects of teams whose default is narrower than the team."""
    entity_ids = [entity_id for entity_id in entities if entity_id is not None]
    statement = select(team.c.entity_id, team.c.default_visibility).where(
        among(connection, team.c.entity_id, entity_ids)
    )
    # Private needs an owner, whom the caller may not know.
    return {
        entity_id: "restricted"
        for entity_id, visibility in connection.execute(statement)
        if visibility in ("private", "restricted")
    }


class ProjectTable(StoredTable):
    """The table of projects."""

    def all(self, now_ms: int, readable: ReadableRuns | None = None) -> list[StoredProject]:
        """The projects that have runs, in descending order of their newest run.

        Args:
            readable: only projects that the principal may read; None: all.
        """
        with self._database.read() as connection:
            listed: list[ColumnElement[bool]] = [run.c.deleted_ms.is_(None)]
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
                select(
                    project.c.id,
                    project.c.name,
                    by_project.c.runs,
                    by_project.c.newest_ms,
                    entity.c.name.label("entity"),
                )
                .join(by_project, by_project.c.project_id == project.c.id)
                .outerjoin(entity, entity.c.id == project.c.entity_id)
                .order_by(by_project.c.newest_ms.desc(), project.c.id.desc())
            )
            alive = Counter(connection.execute(running).scalars())
            return [
                StoredProject(row.id, row.name, row.runs, alive[row.id], row.newest_ms, row.entity)
                for row in connection.execute(statement)
            ]

    def id(self, name: str, readable: ReadableRuns | None = None) -> int:
        """Return the id of a readable project; raise UnknownProject, or AmbiguousName for several."""
        numbers = [
            number for _, number in self.named(name) if readable is None or number in readable.projects
        ]
        if len(numbers) > 1:
            raise AmbiguousName(f"several teams or users have a project {name!r}; name one of them")
        if not numbers:
            raise UnknownProject(f"there is no project {name!r}")
        return numbers[0]

    def named(self, name: str) -> list[tuple[int | None, int]]:
        """The entity and the id of each project with this name."""
        statement = select(project.c.entity_id, project.c.id).where(project.c.name == project_name(name))
        with self._database.read() as connection:
            return [(entity_id, number) for entity_id, number in connection.execute(statement)]

    def name_of(self, project_id: int) -> str:
        """The name of a project.

        Raises:
            UnknownProject: there is no project with this id.
        """
        statement = select(project.c.name).where(project.c.id == project_id)
        with self._database.read() as connection:
            project_name: str | None = connection.execute(statement).scalar()
        if project_name is None:
            raise UnknownProject(f"there is no project with the number {project_id}")
        return project_name

    def created_ms(self, project_id: int) -> int:
        """When a project was created, ms UTC.

        Raises:
            UnknownProject: there is no project with this id.
        """
        statement = select(project.c.created_ms).where(project.c.id == project_id)
        with self._database.read() as connection:
            created: int | None = connection.execute(statement).scalar()
        if created is None:
            raise UnknownProject(f"there is no project with the number {project_id}")
        return created

    @in_transaction
    def ensure(
        self, connection: Connection, name: str, owner: ProjectOwner, now_ms: int, by: Actor | None = None
    ) -> int:
        """The id of a project of an entity; it is created if it does not exist.

        Args:
            by: who creates it, for the audit log.
        """
        checked = project_name(name)
        key = (owner.entity_id, checked)
        present = find_projects(connection, [key]).get(key)
        if present is not None:
            return present
        created = ensure_projects(connection, [(checked, owner)], now_ms)[key]
        if by is not None and owner.entity_id is not None:
            entity_name = name_of(connection, owner.entity_id)
            record(connection, now_ms, by, "project.create", entity=entity_name, project=checked)
        return created

    def rename(self, project_id: int, name: str, now_ms: int) -> None:
        """Rename a project. Later runs under the old name belong to a new project.

        Raises:
            ValueError: the name is taken in its entity, or invalid.
            UnknownProject: there is no project with this id.
        """
        statement = (
            update(project).where(project.c.id == project_id).values(name=checked_name("project", name))
        )

        def work(connection: Connection) -> int:
            remember_address(connection, project_id, now_ms)
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
