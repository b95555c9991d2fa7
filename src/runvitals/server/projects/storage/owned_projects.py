"""Projects of teams and users: what they show about themselves, their trash, stars and moved runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from runvitals.model.errors import UnknownProject, UnknownRun
from runvitals.model.names import PROJECT_NAME_ALLOWED, can_be_created, plain_text
from runvitals.server.accounts.storage.entities import name_of
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import take_turns
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import (
    custom_role,
    entity,
    project_member,
    service_account,
    user_account,
)
from runvitals.server.database.tables.projects import guest_link, project_star
from runvitals.server.database.tables.runs import project, run
from runvitals.server.database.team_places import require_same_place
from runvitals.server.database.text import checked_name
from runvitals.server.projects.storage.guest_links import revoke_links
from runvitals.server.projects.storage.project_redirects import remember_address
from runvitals.server.projects.storage.projects import ProjectOwner, ensure_projects, find_projects
from runvitals.server.runs.storage.events import DELETED, RESTORED, move_event, tell_runs
from runvitals.server.runs.storage.run_places import copy_entities
from runvitals.store.errors import NameTaken

MAX_PROJECT_NAME = 128
MAX_DESCRIPTION = 500
MAX_OVERVIEW = 20_000
"""As much Markdown as is shown."""
_UNCHECKED = ("visibility", "owner_id")


@dataclass(frozen=True, slots=True)
class ProjectDetail:
    """A project of a team or user. `owner`: a user name. `deleted_ms`: since when it is in the trash."""

    id: int
    name: str
    entity_id: int
    entity: str
    description: str
    overview: str
    visibility: str
    owner_id: int | None
    owner: str | None
    created_ms: int
    deleted_ms: int | None
    runs: int
    newest_ms: int | None


@dataclass(frozen=True, slots=True)
class ProjectMember:
    """Who was added to a project: a user, or a service account. `role` None: the role in the team."""

    name: str
    display_name: str
    service_account: bool
    role: str | None
    custom_role: str | None
    created_ms: int


_owner, _owner_name = user_account.alias(), entity.alias()
_living = (run.c.project_id == project.c.id, run.c.deleted_ms.is_(None))
_COMPUTED = {
    "entity": entity.c.name,
    "visibility": func.coalesce(project.c.visibility, "team"),
    "owner": _owner_name.c.name,
    "runs": select(func.count()).where(*_living).correlate(project).scalar_subquery(),
    "newest_ms": select(func.max(run.c.started_ms)).where(*_living).correlate(project).scalar_subquery(),
}
_PROJECTS = (
    select(
        *[
            _COMPUTED[name].label(name) if name in _COMPUTED else project.c[name]
            for name in ProjectDetail.__dataclass_fields__
        ]
    )
    .select_from(project)
    .join(entity, entity.c.id == project.c.entity_id)
    .outerjoin(_owner, _owner.c.id == project.c.owner_id)
    .outerjoin(_owner_name, _owner_name.c.id == _owner.c.entity_id)
)


class OwnedProjectTable(StoredTable):
    """The projects of teams and users."""

    def get(self, project_id: int) -> ProjectDetail:
        """Return a project that a team or user has, or raise UnknownProject."""
        with self._database.read() as connection:
            return _detail(connection, project_id)

    def named(self, owner: str, name: str) -> ProjectDetail:
        """A project of a team or user, by both names; in the trash, too.

        Raises:
            UnknownProject: there is none.
        """
        statement = _PROJECTS.where(entity.c.name == owner.lower(), project.c.name == name)
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        if row is None:
            raise UnknownProject(f"there is no project {f'{owner}/{name}'!r}")
        return ProjectDetail(**row._asdict())

    @in_transaction
    def create(
        self,
        connection: Connection,
        entity_id: int,
        name: str,
        by: Actor,
        now_ms: int,
        *,
        owner_id: int | None = None,
        visibility: str | None = None,
        description: str = "",
    ) -> ProjectDetail:
        """Create an empty project.

        Args:
            visibility: one that was checked; None: the default of its team.

        Raises:
            ValueError: an invalid value.
            NameTaken: the team or user has a project of this name.
        """
        key = entity_id, checked_text("name", name)
        text = checked_text("description", description)
        owner = ProjectOwner(entity_id, owner_id, visibility)
        # One after the other, so that only one of two creates a name.
        connection.execute(select(entity.c.id).where(entity.c.id == entity_id).with_for_update())
        if find_projects(connection, [key]):
            raise _name_taken(connection, *key)
        number = ensure_projects(connection, [(key[1], owner)], now_ms)[key]
        connection.execute(update(project).where(project.c.id == number).values(description=text))
        row = _detail(connection, number)
        if row.visibility == "restricted":
            _add_self(connection, number, by, now_ms)
        _record(connection, now_ms, by, "project.create", row, after={"visibility": row.visibility})
        return row

    @in_transaction
    def update(
        self, connection: Connection, /, project_id: int, by: Actor, now_ms: int, **changes: Any
    ) -> ProjectDetail:
        """Change the name, description, overview, visibility or owner (`owner_id`): all of them, or none.

        The visibility must be one that was checked. Who restricts a project becomes a member of it.

        Raises:
            ValueError: an invalid value.
            NameTaken: the team or user has a project of this name.
        """
        values = {
            field: value if field in _UNCHECKED else checked_text(field, value)
            for field, value in changes.items()
        }
        before = _detail(connection, project_id)
        changed = {field: value for field, value in values.items() if getattr(before, field) != value}
        if changed:
            _change(connection, before, changed, now_ms)
            if changed.get("visibility") == "restricted":
                _add_self(connection, project_id, by, now_ms)
            _record_changes(connection, now_ms, by, before, changed)
            rights_changed(connection)
        return _detail(connection, project_id)

    @in_transaction
    def trash(self, connection: Connection, project_id: int, by: Actor, now_ms: int) -> int:
        """Move a project to the trash with all its runs; returns how many."""
        row = _detail(connection, project_id)
        if row.deleted_ms is not None:
            return 0
        connection.execute(update(project).where(project.c.id == project_id).values(deleted_ms=now_ms))
        living = (run.c.project_id == project_id) & run.c.deleted_ms.is_(None)
        tell_runs(connection, living, by, now_ms, DELETED)
        runs = connection.execute(update(run).where(living).values(deleted_ms=now_ms)).rowcount
        _record(connection, now_ms, by, "project.delete", row, after={"runs": runs})
        rights_changed(connection)
        return runs

    @in_transaction
    def restore(self, connection: Connection, project_id: int, by: Actor, now_ms: int) -> int:
        """Take a project out of the trash with the runs that went there with it; returns how many."""
        row = _detail(connection, project_id)
        if row.deleted_ms is None:
            return 0
        connection.execute(update(project).where(project.c.id == project_id).values(deleted_ms=None))
        with_it = (run.c.project_id == project_id) & (run.c.deleted_ms == row.deleted_ms)
        tell_runs(connection, with_it, by, now_ms, RESTORED)
        runs = connection.execute(update(run).where(with_it).values(deleted_ms=None)).rowcount
        _record(connection, now_ms, by, "project.restore", row, after={"runs": runs})
        rights_changed(connection)
        return runs

    def trashed_before(self, before_ms: int) -> list[int]:
        """The ids of the projects that went to the trash before a time."""
        old = select(project.c.id).where(project.c.deleted_ms < before_ms).order_by(project.c.id)
        with self._database.read() as connection:
            return list(connection.execute(old).scalars())

    def ids_of(self, entity_id: int) -> list[int]:
        """The ids of all projects of a team or user, those in the trash too."""
        theirs = select(project.c.id).where(project.c.entity_id == entity_id).order_by(project.c.id)
        with self._database.read() as connection:
            return list(connection.execute(theirs).scalars())

    def run_ids(self, project_id: int) -> list[int]:
        """The ids of all runs of a project, those in the trash too."""
        theirs = select(run.c.id).where(run.c.project_id == project_id).order_by(run.c.id)
        with self._database.read() as connection:
            return list(connection.execute(theirs).scalars())

    @in_transaction
    def purge(self, connection: Connection, project_id: int, by: Actor, now_ms: int) -> None:
        """Remove a project for good. Remove its runs first."""
        row = _detail(connection, project_id)
        connection.execute(delete(project).where(project.c.id == project_id))
        _record(connection, now_ms, by, "project.purge", row)
        rights_changed(connection)

    def members(self, project_id: int) -> list[ProjectMember]:
        """Who was added to a project, users by name first."""
        users = (
            select(
                entity.c.name,
                user_account.c.display_name,
                project_member.c.role,
                custom_role.c.name.label("custom_role"),
                project_member.c.created_ms,
            )
            .select_from(project_member)
            .join(user_account, user_account.c.id == project_member.c.user_id)
            .join(entity, entity.c.id == user_account.c.entity_id)
            .outerjoin(custom_role, custom_role.c.id == project_member.c.custom_role_id)
            .where(project_member.c.project_id == project_id)
        )
        accounts = (
            select(service_account.c.name, project_member.c.created_ms)
            .join(project_member, project_member.c.service_account_id == service_account.c.id)
            .where(project_member.c.project_id == project_id)
        )
        with self._database.read() as connection:
            members = [
                ProjectMember(row.name, row.display_name, False, row.role, row.custom_role, row.created_ms)
                for row in connection.execute(users.order_by(entity.c.name))
            ]
            return members + [
                ProjectMember(row.name, row.name, True, None, None, row.created_ms)
                for row in connection.execute(accounts.order_by(service_account.c.name))
            ]

    @in_transaction
    def set_star(self, connection: Connection, project_id: int, user_id: int, starred: bool) -> None:
        """Mark a project with a star for a user, or remove the star."""
        mine = (project_star.c.project_id == project_id, project_star.c.user_id == user_id)
        take_turns(connection, "project_star", user_id)
        connection.execute(delete(project_star).where(*mine))
        if starred:
            connection.execute(insert(project_star).values(project_id=project_id, user_id=user_id))

    def starred(self, user_id: int) -> frozenset[int]:
        """The ids of the projects that a user marked."""
        mine = select(project_star.c.project_id).where(project_star.c.user_id == user_id)
        with self._database.read() as connection:
            return frozenset(connection.execute(mine).scalars())

    @in_transaction
    def move_run(self, connection: Connection, run_id: int, project_id: int, by: Actor, now_ms: int) -> None:
        """Move a run to a project of another team or user. Its author stays, its guest links end.

        Raises:
            UnknownRun: there is no such run in a team.
            NameTaken: there is a run of the same id.
            OtherStorage: the files of the two teams are in different places.
        """
        row = _run(connection, run_id)
        source, target = _detail(connection, row.project_id), _detail(connection, project_id)
        require_same_place(connection, source.entity_id, target.entity_id)
        mine = run.c.id == run_id
        try:
            with connection.begin_nested():
                connection.execute(update(run).where(mine).values(project_id=project_id))
                copy_entities(connection, mine)
        except IntegrityError:
            raise NameTaken(f"{target.entity} already has a run {row.uid!r}") from None
        if source.entity_id != target.entity_id:
            revoke_links(
                connection,
                guest_link.c.run_id == run_id,
                by,
                now_ms,
                name_of(connection, source.entity_id),
            )
        tell_runs(connection, mine, by, now_ms, move_event(target.entity, target.name))
        old = {"entity": source.entity, "project": source.name}
        new = {"entity": target.entity, "project": target.name}
        for number in (source, target):
            _record(connection, now_ms, by, "run.move", number, run=row.uid, before=old, after=new)
        rights_changed(connection)


def checked_text(field: str, value: str) -> str:
    """The name, description or overview of a project, as it is stored.

    Raises:
        ValueError: what is wrong with it.
    """
    if field == "name":
        name = checked_name("project name", value.strip(), MAX_PROJECT_NAME)
        if not can_be_created(name):
            raise ValueError(f"invalid project name {name!a}; expected {PROJECT_NAME_ALLOWED}")
        return name
    longest = {"description": MAX_DESCRIPTION, "overview": MAX_OVERVIEW}.get(field)
    if longest is None:
        raise ValueError(f"unknown field {field!r} of a project")
    if len(value) > longest:
        raise ValueError(f"the {field} is too long; expected at most {longest} characters")
    return plain_text(value)


def _detail(connection: Connection, project_id: int) -> ProjectDetail:
    row = connection.execute(_PROJECTS.where(project.c.id == project_id)).first()
    if row is None:
        raise UnknownProject(f"there is no project with id {project_id}")
    return ProjectDetail(**row._asdict())


def _change(connection: Connection, before: ProjectDetail, changed: dict[str, Any], now_ms: int) -> None:
    if "name" in changed:
        remember_address(connection, before.id, now_ms)
    try:
        with connection.begin_nested():
            connection.execute(update(project).where(project.c.id == before.id).values(changed))
    except IntegrityError:
        if "name" not in changed:
            raise
        raise _name_taken(connection, before.entity_id, changed["name"]) from None


def _name_taken(connection: Connection, entity_id: int, name: str) -> NameTaken:
    same = (project.c.entity_id == entity_id, project.c.name == name, project.c.deleted_ms.is_not(None))
    if connection.execute(select(project.c.id).where(*same)).first() is None:
        return NameTaken(f"the project {name!r} already exists")
    return NameTaken(f"a deleted project has the name {name!r}: restore it, or choose another name")


def _add_self(connection: Connection, project_id: int, by: Actor, now_ms: int) -> None:
    """Make a user a member of a project, unless they are one."""
    mine = (project_member.c.project_id == project_id, project_member.c.user_id == by.user_id)
    if by.user_id is None or connection.execute(select(project_member.c.id).where(*mine)).first() is not None:
        return
    values = {"project_id": project_id, "user_id": by.user_id, "created_ms": now_ms}
    connection.execute(insert(project_member).values(values))


def _record_changes(
    connection: Connection, now_ms: int, by: Actor, before: ProjectDetail, changed: dict[str, Any]
) -> None:
    if "visibility" in changed:
        old, new = {"visibility": before.visibility}, {"visibility": changed["visibility"]}
        _record(connection, now_ms, by, "project.set_visibility", before, before=old, after=new)
    other_fields = changed.keys() - {"visibility"}
    if not other_fields:
        return
    # The audit log gets names, not what users wrote.
    earlier: dict[str, Any] = {"name": before.name} if "name" in changed else {}
    about: dict[str, Any] = {"fields": sorted(field.removesuffix("_id") for field in other_fields)}
    if "name" in changed:
        about["name"] = changed["name"]
    if "owner_id" in changed:
        earlier["owner"], about["owner"] = before.owner, _detail(connection, before.id).owner
    _record(connection, now_ms, by, "project.update", before, before=earlier or None, after=about)


def _run(connection: Connection, run_id: int) -> Any:
    columns = (run.c.uid, run.c.project_id, run.c.author_id, run.c.entity_id)
    row = connection.execute(select(*columns).where(run.c.id == run_id)).first()
    if row is None or row.entity_id is None:
        raise UnknownRun(f"there is no run with id {run_id} in a team")
    return row


def _record(
    connection: Connection, now_ms: int, by: Actor, action: str, row: ProjectDetail, **about: Any
) -> None:
    owner = name_of(connection, row.entity_id)
    record(connection, now_ms, by, action, entity=owner, project=row.name, **about)
