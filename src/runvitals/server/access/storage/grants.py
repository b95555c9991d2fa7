"""The rights of a user, a service account or an entity, read at one time for decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, or_, select

from runvitals.model.names import plain_text
from runvitals.server.database.database import Database
from runvitals.server.database.tables.accounts import (
    custom_role_action,
    entity,
    membership,
    project_member,
    service_account,
    team,
    user_account,
)
from runvitals.server.database.tables.registry import registry_admin, registry_team


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """A role and the actions that a custom role adds. `role` None: the role in the team."""

    role: str | None
    actions: frozenset[str]


@dataclass(frozen=True, slots=True)
class UserGrants:
    """A user's rights.

    `teams`: by entity id; `projects`: by project id, those of registries also by their teams; `registries`:
    those they administer, by project id; `entity_id`: the user's own space; `default_entity_id`: the team for
    runs that name none.
    """

    id: int
    name: str
    state: str
    org_role: str
    access: str
    billing_role: str
    entity_id: int
    default_entity_id: int | None
    teams: dict[int, RoleGrant]
    projects: dict[int, RoleGrant]
    registries: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ServiceGrants:
    """A service account's rights. `projects`: also the registries in which its team links."""

    id: int
    name: str
    kind: str
    team_id: int | None
    default_team_id: int | None
    reads_only: bool
    projects: frozenset[int]


@dataclass(frozen=True, slots=True)
class EntityFacts:
    """A team, the organisation, or a user's own space: `owner_id` is that user."""

    id: int
    name: str
    owner_id: int | None
    hidden: bool
    members_invite: bool
    public_projects: bool
    public_links: bool
    deleted: bool
    default_visibility: str = "team"
    organisation: bool = False


def user_grants(database: Database, user_id: int, now_ms: int) -> UserGrants | None:
    """Return the rights of a user; None if there is no such user."""
    columns = ("id", "state", "org_role", "access", "billing_role", "entity_id", "default_entity_id")
    with database.read() as connection:
        mine = (
            select(entity.c.name, *[user_account.c[name] for name in columns])
            .join(entity, entity.c.id == user_account.c.entity_id)
            .where(user_account.c.id == user_id)
        )
        row = connection.execute(mine).first()
        if row is None:
            return None
        living = or_(membership.c.expires_ms.is_(None), membership.c.expires_ms > now_ms)
        teams = select(membership.c.team_id, membership.c.role, membership.c.custom_role_id).where(
            membership.c.user_id == user_id, living
        )
        projects = select(
            project_member.c.project_id, project_member.c.role, project_member.c.custom_role_id
        ).where(project_member.c.user_id == user_id)
        roles: dict[int, frozenset[str]] = {}
        registries = select(registry_admin.c.project_id).where(registry_admin.c.user_id == user_id)
        administered = set(connection.execute(registries).scalars())
        of_teams = {
            team: _grant(connection, role, custom, roles) for team, role, custom in connection.execute(teams)
        }
        of_projects = {
            project: _grant(connection, role, custom, roles)
            for project, role, custom in connection.execute(projects)
        }
        for project, role in _registry_roles(connection, of_teams):
            if role == "admin":
                administered.add(project)
            elif role == "member" or project not in of_projects:  # the higher one of several counts
                of_projects[project] = RoleGrant(role, frozenset())
        return UserGrants(
            **row._asdict(),
            registries=frozenset(administered),
            teams=of_teams,
            projects=of_projects,
        )


def _registry_roles(connection: Connection, teams: Mapping[int, RoleGrant]) -> Iterator[tuple[int, str]]:
    """Yield the roles in registries that a user has by their teams. Who may only look there reads only."""
    columns = registry_team.c
    living = (
        select(columns.project_id, columns.team_id, columns.role)
        .join(entity, entity.c.id == columns.team_id)
        .where(columns.team_id.in_(teams), entity.c.deleted_ms.is_(None))
    )
    for project, team_id, role in connection.execute(living) if teams else ():
        grant = teams[team_id]
        writes = grant.role != "viewer" or "registry:link" in grant.actions
        yield project, role if writes else "viewer"


def service_grants(database: Database, account_id: int) -> ServiceGrants | None:
    """Return the rights of a service account; None if it, or its team, is disabled or deleted."""
    mine = (
        select(
            service_account.c.id,
            service_account.c.name,
            service_account.c.kind,
            service_account.c.team_id,
            service_account.c.default_team_id,
            service_account.c.reads_only,
        )
        .outerjoin(entity, entity.c.id == service_account.c.team_id)
        .where(
            service_account.c.id == account_id,
            service_account.c.disabled_ms.is_(None),
            service_account.c.deleted_ms.is_(None),
            entity.c.deleted_ms.is_(None),
        )
    )
    projects = select(project_member.c.project_id).where(project_member.c.service_account_id == account_id)
    with database.read() as connection:
        row = connection.execute(mine).first()
        if row is None:
            return None
        of_team = select(registry_team.c.project_id).where(
            registry_team.c.team_id == row.team_id, registry_team.c.role != "viewer"
        )
        numbers = connection.execute(projects.union(of_team)).scalars()
        return ServiceGrants(**row._asdict(), projects=frozenset(numbers))


def entity_id_of(database: Database, name: str) -> int | None:
    """Return the id of a team or user by its name; None if there is none."""
    with database.read() as connection:
        query = select(entity.c.id).where(
            entity.c.name == plain_text(name).lower(), entity.c.purged_ms.is_(None)
        )
        entity_id: int | None = connection.execute(query).scalar()
        return entity_id


def entity_facts(database: Database, entity_id: int) -> EntityFacts | None:
    """Return a team, a user's own space or the organisation; None if there is none with this id."""
    switches = ("hidden", "members_invite", "public_projects", "public_links", "default_visibility")
    mine = (
        select(entity, user_account.c.id.label("owner_id"), *[team.c[name] for name in switches])
        .outerjoin(user_account, user_account.c.entity_id == entity.c.id)
        .outerjoin(team, team.c.entity_id == entity.c.id)
        .where(entity.c.id == entity_id)
    )
    with database.read() as connection:
        row = connection.execute(mine).first()
    if row is None:
        return None
    deleted = row.deleted_ms is not None or row.purged_ms is not None
    if row.kind == "user":
        return EntityFacts(row.id, row.name, row.owner_id, False, False, True, True, deleted)
    if row.kind == "organisation":
        return EntityFacts(row.id, row.name, None, False, False, False, False, deleted, organisation=True)
    return EntityFacts(
        row.id,
        row.name,
        None,
        row.hidden,
        row.members_invite,
        row.public_projects,
        row.public_links,
        deleted,
        row.default_visibility,
    )


def _grant(
    connection: Connection, role: str | None, custom: int | None, roles: dict[int, frozenset[str]]
) -> RoleGrant:
    if custom is None:
        return RoleGrant(role, frozenset())
    if custom not in roles:
        actions = select(custom_role_action.c.action).where(custom_role_action.c.role_id == custom)
        roles[custom] = frozenset(connection.execute(actions).scalars())
    return RoleGrant(role, roles[custom])
