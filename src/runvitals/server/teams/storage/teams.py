"""Teams and their deletion, and the adoption of what was stored before accounts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, or_, select, update

from runvitals.model.account_names import display_name as checked_display_name
from runvitals.model.account_names import domain_key
from runvitals.model.names import plain_text
from runvitals.server.accounts.storage.entities import claim_name
from runvitals.server.accounts.storage.pictures import remove_picture
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import check_room
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.accounts import (
    custom_role,
    entity,
    invitation,
    membership,
    service_account,
    team,
)
from runvitals.server.database.tables.alerts import automation, notification, raised_event
from runvitals.server.database.tables.buckets import team_bucket
from runvitals.server.database.tables.destinations import destination, team_secret
from runvitals.server.database.tables.runs import token
from runvitals.server.projects.storage.project_transfer import adopt_projects
from runvitals.store.errors import NotFound

LEGACY_ACCOUNT = "legacy-tokens"
MAX_TEAMS = 1000
MAX_COMPANY = 128
MAX_DESCRIPTION = 500
KINDS = ("work", "academic")
MAX_JOIN_DOMAINS = 20
JOINING = ("ask", "auto")
_SWITCHES = (
    "hidden",
    "members_invite",
    "public_projects",
    "public_links",
    "code_saving",
    "recommend_by_domain",
)
_OF_A_NEW_TEAM = {
    "members_invite": False,
    "public_projects": True,
    "public_links": True,
    "recommend_by_domain": False,
    "join_domains": "[]",
    "join_by_domain": "ask",
}
_VISIBILITIES = ("private", "restricted", "team", "organisation", "public", "open")


@dataclass(frozen=True, slots=True)
class TeamRow:
    """A team. `id`: its entity id. `kind`: work or academic. `deleted_ms`: since when it is in the trash.

    `join_domains`: whose users may join: at once if `join_by_domain` is `auto`, else they `ask`.
    """

    id: int
    name: str
    display_name: str
    description: str
    kind: str
    company: str
    default_visibility: str
    hidden: bool
    members_invite: bool
    public_projects: bool
    public_links: bool
    code_saving: bool
    recommend_by_domain: bool
    join_domains: tuple[str, ...]
    join_by_domain: str
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
TEAMS = (
    select(
        entity.c.id,
        entity.c.name,
        team.c.display_name,
        team.c.description,
        team.c.kind,
        team.c.company,
        team.c.default_visibility,
        *[team.c[name] for name in _SWITCHES],
        team.c.join_domains,
        team.c.join_by_domain,
        entity.c.created_ms,
        entity.c.deleted_ms,
        _MEMBERS,
    )
    .join(entity, entity.c.id == team.c.entity_id)
    .where(entity.c.purged_ms.is_(None))
)


class TeamTable(StoredTable):
    """The table of teams."""

    @in_transaction
    def create(
        self,
        connection: Connection,
        name: str,
        by: Actor,
        now_ms: int,
        *,
        administrator: int | None = None,
        display_name: str = "",
        default_visibility: str = "team",
        kind: str = "work",
        company: str = "",
        hidden: bool = False,
        code_saving: bool = False,
        bucket_id: int | None = None,
    ) -> TeamRow:
        """Create a team; `administrator` is its first member, `bucket_id` the bucket that keeps its files.

        Raises:
            ValueError: an invalid or reserved name, or another invalid value.
            NameTaken: a user or team has, or had, the name.
            LimitReached: there are too many teams.
        """
        shown_name = checked_display_name(display_name or name)
        labels = checked_labels({"kind": kind, "company": company, "default_visibility": default_visibility})
        _check_count(connection)
        owner = claim_name(connection, "team", name, now_ms)
        values = {
            "entity_id": owner[0],
            "display_name": shown_name,
            "description": "",
            **labels,
            "profile": "{}",
            "created_by": by.user_id,
            "hidden": hidden,
            "code_saving": code_saving,
            **_OF_A_NEW_TEAM,
        }
        connection.execute(insert(team).values(values))
        if bucket_id is not None:
            connection.execute(insert(team_bucket).values(team_id=owner[0], bucket_id=bucket_id))
        if administrator is not None:
            _add_administrator(connection, owner[0], administrator, by, now_ms)
        about = None if bucket_id is None else {"bucket": bucket_id}
        record(connection, now_ms, by, "team.create", entity=owner, after=about)
        rights_changed(connection)
        return _team(connection, owner[1])

    def by_name(self, name: str) -> TeamRow:
        """Return a team, also one in the trash, or raise NotFound."""
        with self._database.read() as connection:
            return _team(connection, name)

    def all(self) -> list[TeamRow]:
        """Return all teams by name, including those in the trash."""
        with self._database.read() as connection:
            return [team_row(row) for row in connection.execute(TEAMS.order_by(entity.c.name))]

    def of_user(self, user_id: int, now_ms: int) -> list[tuple[TeamRow, str, str | None]]:
        """Return the teams that a user is in, by name, each with the role there and the custom role."""
        mine = (
            TEAMS.add_columns(membership.c.role, custom_role.c.name.label("custom_role"))
            .join(membership, membership.c.team_id == team.c.entity_id)
            .outerjoin(custom_role, custom_role.c.id == membership.c.custom_role_id)
            .where(membership.c.user_id == user_id, entity.c.deleted_ms.is_(None))
            .where(or_(membership.c.expires_ms.is_(None), membership.c.expires_ms > now_ms))
        )
        with self._database.read() as connection:
            return [
                (team_row(row), row.role, row.custom_role)
                for row in connection.execute(mine.order_by(entity.c.name))
            ]

    def profile(self, team_id: int) -> dict[str, Any]:
        """Return what a team's page shows: intro, links and pins, as it was set."""
        with self._database.read() as connection:
            body = connection.execute(select(team.c.profile).where(team.c.entity_id == team_id)).scalar_one()
        return stored_object(body, f"the page of team {team_id}")

    @in_transaction
    def set_profile(
        self, connection: Connection, name: str, by: Actor, now_ms: int, changes: Mapping[str, Any]
    ) -> None:
        """Change fields of the team's page, from values that were checked. The audit log gets their names."""
        row = living_team(connection, name)
        mine = team.c.entity_id == row.id
        before = json.loads(connection.execute(select(team.c.profile).where(mine)).scalar_one())
        after = json.dumps({**before, **changes})
        connection.execute(update(team).where(mine).values(profile=after))
        about = {"fields": sorted(changes)}
        record(connection, now_ms, by, "team.update", entity=(row.id, row.name), after=about)

    def without_administrator(self) -> list[str]:
        """Teams that nobody administers."""
        administered = select(membership.c.team_id).where(membership.c.role == "admin")
        orphaned = TEAMS.where(entity.c.deleted_ms.is_(None), entity.c.id.not_in(administered))
        with self._database.read() as connection:
            return [row.name for row in connection.execute(orphaned.order_by(entity.c.name))]

    @in_transaction
    def update(
        self,
        connection: Connection,
        name: str,
        by: Actor,
        now_ms: int,
        /,
        **changes: str | bool | Sequence[str],
    ) -> TeamRow:
        """Change a text, `default_visibility`, `join_domains`, `join_by_domain` or a privacy switch.

        Raises:
            ValueError: an unknown field or invalid value. The name cannot be changed.
        """
        for field, value in changes.items():
            if field in _SWITCHES and isinstance(value, bool):
                continue
            if field not in _TEXTS or isinstance(value, bool):
                raise ValueError(f"invalid field {field!r} or value of a team")
        changes = {**changes, **checked_labels({n: v for n, v in changes.items() if n in _TEXTS})}
        before = living_team(connection, name)
        changed = {field: value for field, value in changes.items() if getattr(before, field) != value}
        if changed:
            columns = {field: _to_column(value) for field, value in changed.items()}
            connection.execute(update(team).where(team.c.entity_id == before.id).values(columns))
            old = {field: getattr(before, field) for field in changed}
            owner = (before.id, before.name)
            privacy = bool(changed.keys() & set(_SWITCHES))
            action = "team.update_privacy" if privacy else "team.update"
            record(connection, now_ms, by, action, entity=owner, before=old, after=changed)
            rights_changed(connection)
        return _team(connection, name)

    def delete(self, name: str, by: Actor, now_ms: int) -> None:
        """Move a team to the trash with all it owns. Its name stays taken."""
        self._set_deleted(name, by, now_ms, now_ms, "team.delete")

    def restore(self, name: str, by: Actor, now_ms: int) -> None:
        """Take a team out of the trash."""
        self._set_deleted(name, by, now_ms, None, "team.restore")

    @in_transaction
    def _set_deleted(
        self, connection: Connection, name: str, by: Actor, now_ms: int, deleted_ms: int | None, action: str
    ) -> None:
        team = _team(connection, name)
        if (team.deleted_ms is None) == (deleted_ms is None):
            return
        connection.execute(update(entity).where(entity.c.id == team.id).values(deleted_ms=deleted_ms))
        revoke_invitations(connection, now_ms, invitation.c.team_id == team.id)
        record(connection, now_ms, by, action, entity=(team.id, team.name))
        rights_changed(connection)

    def trashed_before(self, before_ms: int) -> list[TeamRow]:
        """Return the teams that were moved to the trash before a time."""
        with self._database.read() as connection:
            rows = connection.execute(TEAMS.where(entity.c.deleted_ms < before_ms).order_by(entity.c.id))
            return [team_row(row) for row in rows]

    @in_transaction
    def purge(self, connection: Connection, team_id: int, by: Actor, now_ms: int) -> None:
        """Remove a team from the trash for good, with members, invitations, service accounts and keys.

        Remove its projects first. Its name stays taken, and the audit log stays.
        """
        owner = connection.execute(
            select(entity.c.id, entity.c.name)
            .where(entity.c.id == team_id, entity.c.deleted_ms.is_not(None))
            .with_for_update()
        ).first()
        if owner is None:
            raise NotFound(f"there is no team with id {team_id} in the trash")
        remove_picture(connection, team_id)
        connection.execute(delete(team).where(team.c.entity_id == team_id))
        for owned in (automation, raised_event, notification, destination, team_secret):
            connection.execute(delete(owned).where(owned.c.team_id == team_id))
        connection.execute(update(entity).where(entity.c.id == team_id).values(purged_ms=now_ms))
        record(connection, now_ms, by, "team.purge", entity=(owner.id, owner.name))
        rights_changed(connection)

    @in_transaction
    def adopt(self, connection: Connection, team_id: int, by: Actor, now_ms: int) -> int:
        """Give a team all projects from before accounts, and the tokens; returns how many projects.

        Doing it twice changes nothing more. The tokens stay valid, as keys of a service account of the team,
        which a server that never had tokens does not get.
        Names of projects become part of addresses: in them, slashes and control characters become `-`. A
        project whose name the team has already gets a number: `digits-2`.

        Raises:
            NotFound: there is no such team.
            NameTaken: the team has a run with the run id of one from before accounts.
        """
        owner = connection.execute(TEAMS.where(entity.c.id == team_id)).first()
        if owner is None:
            raise NotFound(f"there is no team with id {team_id}")
        projects = adopt_projects(connection, team_id)
        legacy = select(service_account.c.id).where(service_account.c.kind == "legacy")
        has_tokens = connection.execute(select(token.c.id).limit(1)).first() is not None
        if has_tokens and connection.execute(legacy).first() is None:
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


_TEXTS = (
    "display_name",
    "description",
    "kind",
    "company",
    "default_visibility",
    "join_domains",
    "join_by_domain",
)


def _to_column(value: object) -> object:
    return json.dumps(value) if isinstance(value, tuple) else value


def _check_count(connection: Connection) -> None:
    refusal = f"there are {MAX_TEAMS} teams, which is the most that a server has"
    purged = select(entity.c.id).where(entity.c.purged_ms.is_not(None))
    check_room(connection, team, MAX_TEAMS, refusal, team.c.entity_id.not_in(purged))


def checked_labels(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a team in the form in which they are stored.

    Raises:
        ValueError: one of them is invalid.
    """
    checked = dict(fields)
    for name, value in fields.items():
        if name == "display_name":
            checked[name] = checked_display_name(value)
        elif name == "join_domains":
            checked[name] = _checked_domains(value)
        elif name in _LONGEST:
            checked[name] = plain_text(value).strip()
            if len(checked[name]) > _LONGEST[name]:
                raise ValueError(f"the {name} is too long; expected at most {_LONGEST[name]} characters")
        elif value not in _CHOICES[name]:
            field_text = (
                "visibility" if name == "default_visibility" else f"{name.replace('_', ' ')} of a team"
            )
            raise ValueError(f"invalid {field_text} {value!r}; expected one of {', '.join(_CHOICES[name])}")
    return checked


def _checked_domains(domains: Iterable[str]) -> tuple[str, ...]:
    checked = sorted({domain_key(domain) for domain in domains})
    if len(checked) > MAX_JOIN_DOMAINS:
        raise ValueError(f"too many mail domains; expected at most {MAX_JOIN_DOMAINS}")
    return tuple(checked)


_LONGEST = {"description": MAX_DESCRIPTION, "company": MAX_COMPANY}
_CHOICES = {"kind": KINDS, "default_visibility": _VISIBILITIES, "join_by_domain": JOINING}


def team_row(row: Any) -> TeamRow:
    """Return a team from a row of `TEAMS`, which may have further columns."""
    fields = {name: getattr(row, name) for name in TeamRow.__dataclass_fields__}
    return TeamRow(**{**fields, "join_domains": tuple(json.loads(row.join_domains))})


def _add_administrator(connection: Connection, team_id: int, user_id: int, by: Actor, now_ms: int) -> None:
    values = {"team_id": team_id, "user_id": user_id, "role": "admin"}
    added = {"added_by": by.user_id, "created_ms": now_ms}
    connection.execute(insert(membership).values(**values, **added))


def _team(connection: Connection, name: str) -> TeamRow:
    row = connection.execute(TEAMS.where(entity.c.name == plain_text(name).lower())).first()
    if row is None:
        raise NotFound(f"there is no team {name!r}")
    return team_row(row)


def living_team(connection: Connection, name: str) -> TeamRow:
    """Return a team that is not in the trash, or raise NotFound."""
    team = _team(connection, name)
    if team.deleted_ms is not None:
        raise NotFound(f"there is no team {name!r}")
    return team


def revoke_invitations(connection: Connection, now_ms: int, *conditions: ColumnElement[bool]) -> None:
    """End the pending invitations that fit: with the team, or with the right of the inviter."""
    pending = update(invitation).where(invitation.c.state == "pending", *conditions)
    connection.execute(pending.values(state="revoked", ended_ms=now_ms))
