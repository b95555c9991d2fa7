"""Who was added to a project, and whose it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from runvitals.model.errors import UnknownProject
from runvitals.server.accounts.storage.entities import name_of
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import take_turns
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import (
    entity,
    membership,
    project_member,
    service_account,
    user_account,
)
from runvitals.server.database.tables.reports import report, report_share
from runvitals.server.database.tables.runs import project, run
from runvitals.server.database.team_places import require_same_place
from runvitals.server.projects.storage.guest_links import revoke_links, to_projects
from runvitals.server.projects.storage.project_redirects import remember_address
from runvitals.server.projects.storage.project_transfer import give_project
from runvitals.server.runs.storage.events import move_event, tell_runs
from runvitals.server.teams.storage.members import resolve_role
from runvitals.store.errors import NotAllowed, NotFound


@dataclass(frozen=True, slots=True)
class OwnedProject:
    """A project with what decides who may see it."""

    id: int
    name: str
    entity_id: int | None
    owner_id: int | None
    visibility: str
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class ListedProject:
    """A project in a list. `owner`: a user name. `runs`: without those in the trash."""

    id: int
    name: str
    visibility: str
    owner: str | None
    created_ms: int
    deleted_ms: int | None
    runs: int
    newest_ms: int | None


class ProjectMemberTable(StoredTable):
    """Members of projects, and whose projects are."""

    def get(self, project_id: int) -> OwnedProject:
        """Return a project, or raise UnknownProject."""
        with self._database.read() as connection:
            return _to_owned_project(_project(connection, project_id))

    def all(self) -> list[OwnedProject]:
        """All projects, also those that no team has adopted."""
        with self._database.read() as connection:
            return [
                _to_owned_project(row) for row in connection.execute(select(project).order_by(project.c.id))
            ]

    def of_entity(self, entity_id: int, deleted: bool = False) -> list[ListedProject]:
        """All projects of a team or user, the one with the newest run first.

        Args:
            deleted: those in the trash instead, without their runs.
        """
        where = project.c.deleted_ms.is_not(None) if deleted else project.c.deleted_ms.is_(None)
        counted = (
            select(
                run.c.project_id, func.count().label("runs"), func.max(run.c.started_ms).label("newest_ms")
            )
            .where(run.c.deleted_ms.is_(None))
            .group_by(run.c.project_id)
            .subquery()
        )
        statement = (
            select(
                project.c.id,
                project.c.name,
                func.coalesce(project.c.visibility, "team").label("visibility"),
                entity.c.name.label("owner"),
                project.c.created_ms,
                project.c.deleted_ms,
                func.coalesce(counted.c.runs, 0).label("runs"),
                counted.c.newest_ms,
            )
            .outerjoin(counted, counted.c.project_id == project.c.id)
            .outerjoin(user_account, user_account.c.id == project.c.owner_id)
            .outerjoin(entity, entity.c.id == user_account.c.entity_id)
            .where(project.c.entity_id == entity_id, where)
            .order_by(func.coalesce(counted.c.newest_ms, 0).desc(), project.c.id.desc())
        )
        with self._database.read() as connection:
            return [ListedProject(**row._asdict()) for row in connection.execute(statement)]

    def sole_author(self, project_id: int) -> bool:
        """Return whether every run of a project is its owner's, who may then delete it; read all runs."""
        with self._database.read() as connection:
            owner_id = _project(connection, project_id).owner_id
            runs_of_others = select(run.c.id).where(
                run.c.project_id == project_id, run.c.author_id.is_distinct_from(owner_id)
            )
            return owner_id is not None and connection.execute(runs_of_others.limit(1)).first() is None

    @in_transaction
    def add(
        self,
        connection: Connection,
        project_id: int,
        by: Actor,
        now_ms: int,
        *,
        user_id: int | None = None,
        service_account_id: int | None = None,
        role: str | None = None,
    ) -> None:
        """Add a member of the team, or a service account, to a project, or change the role there.

        `role` None: the role in the team.

        Raises:
            NotAllowed: the user is not in the team.
            NotFound: there is no such role.
        """
        row = _project(connection, project_id)
        if user_id is not None:
            mine = (membership.c.team_id == row.entity_id, membership.c.user_id == user_id)
            if connection.execute(select(membership.c.id).where(*mine)).first() is None:
                raise NotAllowed("only members of the team can be added to its projects")
        base, role_id = (None, None) if role is None else resolve_role(connection, role)
        mine = _mine(project_id, user_id, service_account_id)
        take_turns(connection, "project_member", project_id)
        present = connection.execute(delete(project_member).where(*mine)).rowcount
        values = {
            "project_id": project_id,
            "user_id": user_id,
            "service_account_id": service_account_id,
            "role": base,
            "custom_role_id": role_id,
            "created_ms": now_ms,
        }
        connection.execute(insert(project_member).values(values))
        target = _member_name(connection, user_id, service_account_id)
        action = "project.member_role" if present else "project.member_add"
        _record(connection, now_ms, by, action, row, target=target, after={"role": role})
        rights_changed(connection)

    @in_transaction
    def remove(
        self,
        connection: Connection,
        project_id: int,
        by: Actor,
        now_ms: int,
        *,
        user_id: int | None = None,
        service_account_id: int | None = None,
    ) -> None:
        """Remove a member from a project.

        Raises:
            NotFound: there is no such member.
        """
        mine = _mine(project_id, user_id, service_account_id)
        if not connection.execute(delete(project_member).where(*mine)).rowcount:
            raise NotFound("this user or service account is not a member of the project")
        row, target = (
            _project(connection, project_id),
            _member_name(connection, user_id, service_account_id),
        )
        _record(connection, now_ms, by, "project.member_remove", row, target=target)
        rights_changed(connection)

    @in_transaction
    def transfer(
        self, connection: Connection, project_id: int, entity_id: int, by: Actor, now_ms: int
    ) -> None:
        """Give a project to another team or user.

        Members who are not in the new team are dropped, reports are no longer shared with them, and guest
        links are revoked: the new owner did not make them.

        Raises:
            NameTaken: the new owner has a project of the same name, or a run with the run id of one of its
                runs.
            OtherStorage: the files of the two are in different places.
        """
        row = _project(connection, project_id)
        require_same_place(connection, row.entity_id, entity_id)
        remember_address(connection, project_id, now_ms)
        owner = None if row.entity_id is None else name_of(connection, row.entity_id)
        mine = to_projects(select(project.c.id).where(project.c.id == project_id))
        revoke_links(connection, mine, by, now_ms, owner)
        give_project(connection, project_id, entity_id)
        team = select(membership.c.user_id).where(membership.c.team_id == entity_id)
        strangers = (project_member.c.user_id.is_(None)) | (project_member.c.user_id.not_in(team))
        connection.execute(delete(project_member).where(project_member.c.project_id == project_id, strangers))
        reports = select(report.c.id).where(report.c.project_id == project_id)
        shared = (report_share.c.report_id.in_(reports), report_share.c.user_id.not_in(team))
        connection.execute(delete(report_share).where(*shared))
        stays = connection.execute(team.where(membership.c.user_id == row.owner_id)).first() is not None
        of_space = select(user_account.c.id).where(user_account.c.entity_id == entity_id)
        new_owner = row.owner_id if stays else connection.execute(of_space).scalar()
        connection.execute(update(project).where(project.c.id == project_id).values(owner_id=new_owner))
        old = {"entity": name_of(connection, row.entity_id)[1]}
        new = {"entity": name_of(connection, entity_id)[1]}
        theirs = (run.c.project_id == project_id) & run.c.deleted_ms.is_(None)
        tell_runs(connection, theirs, by, now_ms, move_event(new["entity"], row.name))
        for side in (row, _project(connection, project_id)):
            _record(connection, now_ms, by, "project.transfer", side, before=old, after=new)
        rights_changed(connection)


def _mine(project_id: int, user_id: int | None, service_account_id: int | None) -> tuple[Any, ...]:
    if user_id is not None:
        return project_member.c.project_id == project_id, project_member.c.user_id == user_id
    return (
        project_member.c.project_id == project_id,
        project_member.c.service_account_id == service_account_id,
    )


def _record(connection: Connection, now_ms: int, by: Actor, action: str, row: Any, **about: Any) -> None:
    owner = None if row.entity_id is None else name_of(connection, row.entity_id)
    record(connection, now_ms, by, action, entity=owner, project=row.name, **about)


def _member_name(connection: Connection, user_id: int | None, service_account_id: int | None) -> str:
    if user_id is None:
        name = select(service_account.c.name).where(service_account.c.id == service_account_id)
    else:
        name = (
            select(entity.c.name)
            .join(user_account, user_account.c.entity_id == entity.c.id)
            .where(user_account.c.id == user_id)
        )
    return str(connection.execute(name).scalar())


def _to_owned_project(row: Any) -> OwnedProject:
    deleted = row.deleted_ms is not None
    return OwnedProject(row.id, row.name, row.entity_id, row.owner_id, row.visibility or "team", deleted)


def _project(connection: Connection, project_id: int) -> Any:
    row = connection.execute(select(project).where(project.c.id == project_id)).first()
    if row is None:
        raise UnknownProject(f"there is no project with id {project_id}")
    return row
