"""Teams and their deletion, and the adoption of what was stored before accounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, or_, select, update

from runvitals.model.account_names import display_name as checked_display_name
from runvitals.store.errors import UnknownAccount
from runvitals.store.metadata.accounts.audit import Actor, record
from runvitals.store.metadata.accounts.entities import claim_name
from runvitals.store.metadata.accounts.generation import rights_changed
from runvitals.store.metadata.accounts.project_transfer import adopt_projects
from runvitals.store.metadata.accounts.tables import (
    custom_role,
    entity,
    invitation,
    membership,
    service_account,
    team,
)
from runvitals.store.metadata.database import Database

LEGACY_ACCOUNT = "legacy-tokens"
_SWITCHES = ("hidden", "members_invite", "public_projects", "public_links", "code_saving")
_VISIBILITIES = ("private", "restricted", "team", "organisation", "public", "open")


@dataclass(frozen=True, slots=True)
class TeamRow:
    """A team. `id`: its entity id. `deleted_ms`: since when it is in the trash."""

    id: int
    name: str
    display_name: str
    description: str
    default_visibility: str
    hidden: bool
    members_invite: bool
    public_projects: bool
    public_links: bool
    code_saving: bool
    created_ms: int
    deleted_ms: int | None
    members: int


_MEMBERS = (
    select(func.count())
    .where(membership.c.team_id == team.c.entity_id)
    .correlate(team)
    .scalar_subquery()
    .label("members")
)
_TEAMS = (
    select(
        entity.c.id,
        entity.c.name,
        team.c.display_name,
        team.c.description,
        team.c.default_visibility,
        *[team.c[name] for name in _SWITCHES],
        entity.c.created_ms,
        entity.c.deleted_ms,
        _MEMBERS,
    )
    .join(entity, entity.c.id == team.c.entity_id)
    .where(entity.c.purged_ms.is_(None))
)


class TeamTable:
    """The table of teams."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        name: str,
        by: Actor,
        now_ms: int,
        *,
        administrator: int | None = None,
        display_name: str = "",
        default_visibility: str = "team",
    ) -> TeamRow:
        """Create a team; `administrator` is its first member.

        Raises:
            ValueError: an invalid or reserved name.
            NameTaken: a user or team has, or had, the name.
        """
        shown = checked_display_name(display_name or name)
        _check_visibility(default_visibility)

        def work(connection: Connection) -> TeamRow:
            owner = claim_name(connection, "team", name, now_ms)
            values = {
                "entity_id": owner[0],
                "display_name": shown,
                "description": "",
                "created_by": by.user_id,
                "default_visibility": default_visibility,
                "hidden": False,
                "members_invite": False,
                "public_projects": True,
                "public_links": True,
                "code_saving": False,
            }
            connection.execute(insert(team).values(values))
            if administrator is not None:
                first = {
                    "team_id": owner[0],
                    "user_id": administrator,
                    "role": "admin",
                    "added_by": by.user_id,
                }
                connection.execute(insert(membership).values(**first, created_ms=now_ms))
            record(connection, now_ms, by, "team.create", entity=owner)
            rights_changed(connection)
            return _team(connection, owner[1])

        return self._database.write(work)

    def by_name(self, name: str) -> TeamRow:
        """A team, also one in the trash.

        Raises:
            UnknownAccount: there is no team with this name.
        """
        with self._database.read() as connection:
            return _team(connection, name)

    def all(self) -> list[TeamRow]:
        """All teams by name, including those in the trash."""
        with self._database.read() as connection:
            return [TeamRow(**row._asdict()) for row in connection.execute(_TEAMS.order_by(entity.c.name))]

    def of_user(self, user_id: int, now_ms: int) -> list[tuple[TeamRow, str, str | None]]:
        """The teams that a user is a member of, by name, each with the role there and the custom role."""
        mine = (
            _TEAMS.add_columns(membership.c.role, custom_role.c.name.label("custom_role"))
            .join(membership, membership.c.team_id == team.c.entity_id)
            .outerjoin(custom_role, custom_role.c.id == membership.c.custom_role_id)
            .where(membership.c.user_id == user_id, entity.c.deleted_ms.is_(None))
            .where(or_(membership.c.expires_ms.is_(None), membership.c.expires_ms > now_ms))
        )
        with self._database.read() as connection:
            return [_with_role(row._asdict()) for row in connection.execute(mine.order_by(entity.c.name))]

    def without_administrator(self) -> list[str]:
        """Teams that nobody administers."""
        administered = select(membership.c.team_id).where(membership.c.role == "admin")
        orphaned = _TEAMS.where(entity.c.deleted_ms.is_(None), entity.c.id.not_in(administered))
        with self._database.read() as connection:
            return [row.name for row in connection.execute(orphaned.order_by(entity.c.name))]

    def update(self, name: str, by: Actor, now_ms: int, /, **changes: str | bool) -> TeamRow:
        """Change display_name, description, default_visibility or a privacy switch.

        Raises:
            ValueError: an unknown field or invalid value. The name cannot be changed.
        """
        for field, value in changes.items():
            if field in _SWITCHES and isinstance(value, bool):
                continue
            if field not in ("display_name", "description", "default_visibility") or isinstance(value, bool):
                raise ValueError(f"invalid field {field!r} or value of a team")
        if "display_name" in changes:
            changes["display_name"] = checked_display_name(str(changes["display_name"]))
        if "default_visibility" in changes:
            _check_visibility(str(changes["default_visibility"]))

        def work(connection: Connection) -> TeamRow:
            before = _team(connection, name)
            changed = {field: value for field, value in changes.items() if getattr(before, field) != value}
            if changed:
                connection.execute(update(team).where(team.c.entity_id == before.id).values(changed))
                old = {field: getattr(before, field) for field in changed}
                owner = (before.id, before.name)
                privacy = bool(changed.keys() & set(_SWITCHES))
                action = "team.update_privacy" if privacy else "team.update"
                record(connection, now_ms, by, action, entity=owner, before=old, after=changed)
                rights_changed(connection)
            return _team(connection, name)

        return self._database.write(work)

    def delete(self, name: str, by: Actor, now_ms: int) -> None:
        """Move a team to the trash with all it owns. Its name stays taken."""
        self._set_deleted(name, by, now_ms, now_ms, "team.delete")

    def restore(self, name: str, by: Actor, now_ms: int) -> None:
        """Take a team out of the trash."""
        self._set_deleted(name, by, now_ms, None, "team.restore")

    def _set_deleted(self, name: str, by: Actor, now_ms: int, deleted_ms: int | None, action: str) -> None:
        def work(connection: Connection) -> None:
            found = _team(connection, name)
            connection.execute(update(entity).where(entity.c.id == found.id).values(deleted_ms=deleted_ms))
            revoke_invitations(connection, invitation.c.team_id == found.id)
            record(connection, now_ms, by, action, entity=(found.id, found.name))
            rights_changed(connection)

        self._database.write(work)

    def adopt(self, team_id: int, by: Actor, now_ms: int) -> int:
        """Give a team all projects from before accounts, and the tokens; returns how many projects.

        Doing it twice changes nothing more. The tokens stay valid, as keys of a service account of the team.
        Names of projects become part of addresses: in them, slashes and control characters become `-`. A
        project whose name the team has already gets a number: `digits-2`.

        Raises:
            UnknownAccount: there is no such team.
            NameTaken: the team has a run with the run id of one from before accounts.
        """

        def work(connection: Connection) -> int:
            owner = connection.execute(_TEAMS.where(entity.c.id == team_id)).first()
            if owner is None:
                raise UnknownAccount(f"there is no team with id {team_id}")
            projects = adopt_projects(connection, team_id)
            legacy = select(service_account.c.id).where(service_account.c.kind == "legacy")
            if connection.execute(legacy).first() is None:
                values = {
                    "name": LEGACY_ACCOUNT,
                    "kind": "legacy",
                    "team_id": team_id,
                    "default_team_id": team_id,
                    "reads_only": False,
                    "created_by": by.user_id,
                    "created_ms": now_ms,
                }
                connection.execute(insert(service_account).values(values))
            entity_ = (team_id, owner.name)
            record(connection, now_ms, by, "team.adopt", entity=entity_, after={"projects": projects})
            rights_changed(connection)
            return projects

        return self._database.write(work)


def _check_visibility(value: str) -> None:
    if value not in _VISIBILITIES:
        raise ValueError(f"invalid visibility {value!r}; expected one of {', '.join(_VISIBILITIES)}")


def _team(connection: Connection, name: str) -> TeamRow:
    row = connection.execute(_TEAMS.where(entity.c.name == name.lower())).first()
    if row is None:
        raise UnknownAccount(f"there is no team {name!r}")
    return TeamRow(**row._asdict())


def living_team(connection: Connection, name: str) -> TeamRow:
    """A team that is not in the trash.

    Raises:
        UnknownAccount: there is none with this name.
    """
    found = _team(connection, name)
    if found.deleted_ms is not None:
        raise UnknownAccount(f"there is no team {name!r}")
    return found


def revoke_invitations(connection: Connection, *conditions: ColumnElement[bool]) -> None:
    """End the pending invitations that fit: with the team, or with the right of the inviter."""
    pending = update(invitation).where(invitation.c.state == "pending", *conditions)
    connection.execute(pending.values(state="revoked"))


def _with_role(row: dict[str, Any]) -> tuple[TeamRow, str, str | None]:
    role, custom = row.pop("role"), row.pop("custom_role")
    return TeamRow(**row), role, custom
